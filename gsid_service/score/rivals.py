"""What GSID is compared with: attention that is static, or none; and detectors without a model."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from gsid_service.assemble.scale import scale
from gsid_service.records import BoolArray, FloatArray, Graph, Scores
from gsid_service.schema import SCHEMA, Schema
from gsid_service.score.attend import SLOPE
from gsid_service.score.batch import Batch, Edges
from gsid_service.score.ida import IDA


class Plain(IDA):
    """Every transform of every edge at once, for attentions that say only what to weigh by."""

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

    def kept(self, h: Tensor, batch: Batch) -> Tensor:
        out: Tensor = self(h, batch)
        return out[batch.kept]

    def read(self, h: Tensor, batch: Batch) -> Tensor:
        out: Tensor = self(h, batch)
        return out[batch.entities + batch.read]

    @abstractmethod
    def _down(self, query: Tensor, own: Tensor, neighbour: Tensor, edges: Edges) -> Tensor:
        """[edges, n]: what each fact gets from the one entity of a role, and from itself."""

    @abstractmethod
    def _up(self, message: Tensor, itself: Tensor, asking: Tensor, edges: Edges) -> Tensor:
        """[seats, n]: what each entity gets from the facts that name it in a role, and itself."""

    def _score(self, x: Tensor, a: Tensor, counts: tuple[int, ...]) -> Tensor:
        """[R, H]: aᵀx per head, with the vector of each row's role."""
        parts = zip(x.split(counts), a, strict=True)
        return torch.cat([part @ (vector * self.head).T for part, vector in parts])

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


class GAT(Plain):
    """The attention of GAT: e_uv = LeakyReLU(a_lᵀ L_t h_u + a_rᵀ L_t h_v), static in the neighbour.

    The query half R_t is there but not used: GAT has one transform a type.
    """

    def __init__(self, roles: int, width: int, heads: int) -> None:
        super().__init__(roles, width, heads)
        self.down_own = nn.Parameter(self.down.detach().clone())
        self.up_own = nn.Parameter(self.up.detach().clone())

    def _down(self, query: Tensor, own: Tensor, neighbour: Tensor, edges: Edges) -> Tensor:  # noqa: ARG002
        asked = self._score(own, self.down_own, edges.facts)
        theirs = leaky(self._score(neighbour, self.down, edges.facts) + asked)
        mine = leaky(self._score(own, self.down, edges.facts) + asked)
        return own + self._weigh(neighbour - own, torch.sigmoid(theirs - mine))

    def _up(self, message: Tensor, itself: Tensor, asking: Tensor, edges: Edges) -> Tensor:  # noqa: ARG002
        asked = self._score(itself, self.up_own, edges.entities)
        score = leaky(self._score(message, self.up, edges.facts) + asked[edges.seat])
        own_score = leaky(self._score(itself, self.up, edges.entities) + asked)
        return self._gather(score, own_score, message, itself, edges.seat)


class GCN(Plain):
    """out_v = Σ_t mean over N_t(v) ∪ {v} of L_t h_u: no attention at all."""

    def _down(self, query: Tensor, own: Tensor, neighbour: Tensor, edges: Edges) -> Tensor:  # noqa: ARG002
        return (own + neighbour) / 2

    def _up(self, message: Tensor, itself: Tensor, asking: Tensor, edges: Edges) -> Tensor:  # noqa: ARG002
        summed = itself.index_add(0, edges.seat, message)
        return summed / (1 + torch.bincount(edges.seat, minlength=len(itself)))[:, None]


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of which each covers the first rows of the one before."""
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = torch.cat((part[: len(total)] + total, part[len(total) :]))
    return total


def leaky(x: Tensor) -> Tensor:
    return leaky_relu(x, SLOPE)


def diff(graph: Graph, schema: Schema = SCHEMA) -> Scores:
    """1 for a value that differs from its reference, 0 for any other."""
    scaled = scale(graph, schema)
    differs = (scaled.has_reference & ~scaled.equal).astype(np.float64)
    return _scores("diff", graph, differs, scaled.applies, schema)


def sibling(graph: Graph, schema: Schema = SCHEMA) -> Scores:
    """1 for a value that no other fact of the same predicate and second entity shares.

    For routes these are the routes to the same network.
    """
    applies = scale(graph, schema).applies
    alone = np.zeros(applies.shape)
    values = graph.features[len(graph.entities) :, [p.column for p in schema.monitored]]
    for parameter in range(applies.shape[1]):
        rows = np.flatnonzero(applies[:, parameter])
        groups = [(*graph.facts[r][:1], graph.facts[r].args[1], values[r, parameter]) for r in rows]
        count = Counter(groups)
        alone[rows, parameter] = [count[group] == 1 for group in groups]
    return _scores("sibling", graph, alone, applies, schema)


def _scores(
    method: str, graph: Graph, score: FloatArray, applies: BoolArray, schema: Schema
) -> Scores:
    names = tuple(parameter.name for parameter in schema.monitored)
    return Scores(method, graph.facts, names, np.where(applies, score, np.nan))
