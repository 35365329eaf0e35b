"""Inconsistency Dynamic Attention: typed attention between facts and the entities they name."""

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from gsid_service.score.attend import Down, Up
from gsid_service.score.batch import Batch, Edges


class IDA(nn.Module):
    """out_v = Σ_t Σ_{u ∈ N_t(v) ∪ {v}} α_uv L_t h_u, over the types t that v has an edge of, with

    e_uv = a_tᵀ LeakyReLU(L_t h_u + R_t h_v) and α = softmax of e over N_t(v) ∪ {v}, per head.

    A type is a role τ and a direction. Towards a fact (*down*) there is one neighbour beside the
    fact itself, so that the softmax is a sigmoid; towards an entity (*up*) there are as many as
    facts name it. [L_t ‖ R_t] is the paper's W_τ, and the neighbour's half of it the message.
    """

    def __init__(self, roles: int, width: int, heads: int) -> None:
        super().__init__()
        # Side by side: R_down, L_down, L_up, R_up. Facts need the first three, entities the last.
        self.transform = nn.Parameter(torch.empty(roles, width, 4 * width))
        self.down = nn.Parameter(torch.empty(roles, width))
        self.up = nn.Parameter(torch.empty(roles, width))
        nn.init.normal_(self.transform, std=width**-0.5)
        nn.init.normal_(self.down, std=(width / heads) ** -0.5)
        nn.init.normal_(self.up, std=(width / heads) ** -0.5)
        block = torch.arange(width) // (width // heads)
        self.head: Tensor
        self.register_buffer("head", one_hot(block).float(), persistent=False)  # [n, H]

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        entities, facts = h[: batch.entities], h[batch.entities :]
        down, up = self.transform.chunk(2, dim=2)
        to_facts = self._to_facts(facts, entities, down, batch.edges)
        a = self.up[:, :, None] * self.head
        return torch.cat((Up.apply(facts, entities, up, a, batch.edges), to_facts))

    def read(self, h: Tensor, batch: Batch) -> Tensor:
        """Of the same, only what the facts with a parameter get."""
        down, _ = self.transform.chunk(2, dim=2)
        facts = h[batch.entities + batch.read]
        return self._to_facts(facts, h[: batch.entities], down, batch.read_edges)

    def _to_facts(self, facts: Tensor, entities: Tensor, down: Tensor, edges: Edges) -> Tensor:
        a = self.down[:, :, None] * self.head
        out: Tensor = Down.apply(facts, entities, down, a, edges, torch.is_grad_enabled())
        return out
