"""Inconsistency Dynamic Attention: typed attention between facts and the entities they name."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, one_hot

from gsid_service.score.batch import Batch, Edges

SLOPE = 0.2


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
        edges, width = batch.edges, h.shape[1]
        seated = entities[edges.sitting].split(edges.entities)
        of_facts = torch.cat(
            [
                facts[:n] @ w[:, : 3 * width]
                for n, w in zip(edges.facts, self.transform, strict=True)
            ]
        )  # [edges, 3n]
        of_entities = torch.cat(
            [seat @ w[:, width:] for seat, w in zip(seated, self.transform, strict=True)]
        )  # [seats, 3n]
        query, own, message = of_facts.split(width, dim=1)
        neighbour, itself, asking = of_entities.split(width, dim=1)
        to_facts = self._down(query, own, neighbour[edges.seat], edges)
        to_seats = self._up(message, itself, asking, edges)
        to_entities = torch.zeros_like(entities).index_add(0, edges.sitting, to_seats)
        return torch.cat((to_entities, stacked(to_facts.split(edges.facts))))

    def _down(self, query: Tensor, own: Tensor, neighbour: Tensor, edges: Edges) -> Tensor:
        """[edges, n]: each fact weighs the one entity of a role against itself."""
        advantage = leaky(neighbour + query) - leaky(own + query)
        share = torch.sigmoid(self._score(advantage, self.down, edges.facts))
        return own + self._weigh(neighbour - own, share)

    def _up(self, message: Tensor, itself: Tensor, asking: Tensor, edges: Edges) -> Tensor:
        """[seats, n]: each entity weighs the facts that name it in a role, and itself."""
        score = self._score(leaky(message + asking[edges.seat]), self.up, edges.facts)
        own_score = self._score(leaky(itself + asking), self.up, edges.entities)
        return self._gather(score, own_score, message, itself, edges.seat)

    def _score(self, x: Tensor, a: Tensor, counts: tuple[int, ...]) -> Tensor:
        """[R, H]: aᵀx per head, with the vector of each row's role."""
        parts = zip(x.split(counts), a, strict=True)
        return torch.cat([part @ (vector[:, None] * self.head) for part, vector in parts])

    def _gather(
        self, score: Tensor, own_score: Tensor, message: Tensor, itself: Tensor, seat: Tensor
    ) -> Tensor:
        """[seats, n]: messages weighted by the softmax of their scores and the entity's own."""
        at = seat[:, None].expand_as(score)
        top = own_score.detach().scatter_reduce(0, at, score.detach(), "amax")
        weight, own_weight = (score - top[seat]).exp(), (own_score - top).exp()
        total = own_weight.index_add(0, seat, weight)
        summed = self._weigh(itself, own_weight).index_add(0, seat, self._weigh(message, weight))
        return self._weigh(summed, 1 / total)

    def _weigh(self, x: Tensor, weight: Tensor) -> Tensor:
        """Multiply the part of each head by that head's weight: [R, n] by [R, H]."""
        rows, heads = weight.shape
        return (x.reshape(rows, heads, -1) * weight[:, :, None]).reshape(rows, -1)


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of which each covers the first rows of the one before."""
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = torch.cat((part[: len(total)] + total, part[len(total) :]))
    return total


def leaky(x: Tensor) -> Tensor:
    return leaky_relu(x, SLOPE)
