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
        if in_parts(batch):
            return self._in_parts(h, batch, batch.edges)
        down, up = self.transform.chunk(2, dim=2)
        facts, seated = h[batch.entities :], h.index_select(0, batch.edges.sitting)
        to_entities = self._to_entities(facts, seated, up, batch)
        return torch.cat((to_entities, self._to_facts(facts, seated, down, batch.edges)))

    def kept(self, h: Tensor, batch: Batch) -> Tensor:
        """Of the same, what entities and the facts with a parameter get."""
        if in_parts(batch):
            return self._in_parts(h, batch, batch.read_edges, batch.read)
        down, up = self.transform.chunk(2, dim=2)
        facts, seated = h[batch.entities :], h.index_select(0, batch.edges.sitting)
        to_entities = self._to_entities(facts, seated, up, batch)
        return torch.cat((to_entities, self._to_read(h, down, batch)))

    def read(self, h: Tensor, batch: Batch) -> Tensor:
        """Of the same, only what the facts with a parameter get."""
        if in_parts(batch):
            out = h.new_zeros(len(batch.read), h.shape[1])
            return self._add_to_facts(out, h, batch, batch.read_edges, batch.read)
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

    def _in_parts(
        self, h: Tensor, batch: Batch, edges: Edges, read: Tensor | None = None
    ) -> Tensor:
        """What entities and all facts get, or those that are read; by these edges of theirs.

        Beside h and what is returned, no table is as large as the network.
        """
        facts = len(batch.value) if read is None else len(read)
        out = h.new_zeros(batch.entities + facts, h.shape[1])
        self._add_to_entities(out, h, batch)
        self._add_to_facts(out[batch.entities :], h, batch, edges, read)
        return out

    def _add_to_entities(self, out: Tensor, h: Tensor, batch: Batch) -> None:
        up, a = self.transform.chunk(2, dim=2)[1], self.up[:, None] * self.head
        for role, rows, edges in batch.edges.parts:
            facts = h.index_select(0, rows + batch.entities)
            seated = h.index_select(0, edges.sitting)
            out.index_add_(
                0, edges.sitting, Up.apply(facts, seated, up[role], a[role], edges, False)
            )

    def _add_to_facts(
        self, out: Tensor, h: Tensor, batch: Batch, edges: Edges, read: Tensor | None
    ) -> Tensor:
        down, a = self.transform.chunk(2, dim=2)[0], self.down[:, None] * self.head
        for role, rows, part in edges.parts:
            named = rows if read is None else read.index_select(0, rows)
            facts = h.index_select(0, named + batch.entities)
            seated = h.index_select(0, part.sitting)
            out.index_add_(0, rows, Down.apply(facts, seated, down[role], a[role], part, False))
        return out


def in_parts(batch: Batch) -> bool:
    """Whether to save memory; parts keep nothing for a gradient."""
    return batch.edges.is_large and not torch.is_grad_enabled()
