"""Inconsistency Dynamic Attention: typed attention between facts and the entities they name."""

import torch
from torch import Tensor, nn

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
        head = torch.eye(heads).repeat_interleave(width // heads, dim=1)  # [H, n]
        self.head: Tensor
        self.register_buffer("head", head, persistent=False)

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        down, up = self.transform.chunk(2, dim=2)
        facts, seated = h[batch.entities :], h.index_select(0, batch.edges.sitting)
        to_entities = self._to_entities(facts, seated, up, batch)
        return torch.cat((to_entities, self._to_facts(facts, seated, down, batch.edges)))

    def kept(self, h: Tensor, batch: Batch) -> Tensor:
        """Of the same, what entities and the facts with a parameter get."""
        down, up = self.transform.chunk(2, dim=2)
        facts, seated = h[batch.entities :], h.index_select(0, batch.edges.sitting)
        to_entities = self._to_entities(facts, seated, up, batch)
        return torch.cat((to_entities, self._to_read(h, down, batch)))

    def read(self, h: Tensor, batch: Batch) -> Tensor:
        """Of the same, only what the facts with a parameter get."""
        down, _ = self.transform.chunk(2, dim=2)
        return self._to_read(h, down, batch)

    def _to_read(self, h: Tensor, down: Tensor, batch: Batch) -> Tensor:
        facts, edges = h[batch.entities + batch.read], batch.read_edges
        return self._to_facts(facts, h.index_select(0, edges.sitting), down, edges)

    def _to_facts(self, facts: Tensor, seated: Tensor, down: Tensor, edges: Edges) -> Tensor:
        a = self.down[:, None] * self.head
        out: Tensor = Down.apply(facts, seated, down, a, edges, torch.is_grad_enabled())
        return out

    def _to_entities(self, facts: Tensor, seated: Tensor, up: Tensor, batch: Batch) -> Tensor:
        a, edges = self.up[:, None] * self.head, batch.edges
        to_seats = Up.apply(facts, seated, up, a, edges, torch.is_grad_enabled())
        return facts.new_zeros(batch.entities, len(up[0])).index_add(0, edges.sitting, to_seats)
