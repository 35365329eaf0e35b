"""What GSID is compared with: attention that is static, or none; and detectors without a model."""

from collections import Counter

import numpy as np
import torch
from torch import Tensor, nn

from gsid_service.assemble.scale import scale
from gsid_service.records import BoolArray, FloatArray, Graph, Scores
from gsid_service.schema import SCHEMA, Schema
from gsid_service.score.batch import Edges
from gsid_service.score.ida import IDA, leaky


class GAT(IDA):
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


class GCN(IDA):
    """out_v = Σ_t mean over N_t(v) ∪ {v} of L_t h_u: no attention at all."""

    def _down(self, query: Tensor, own: Tensor, neighbour: Tensor, edges: Edges) -> Tensor:  # noqa: ARG002
        return (own + neighbour) / 2

    def _up(self, message: Tensor, itself: Tensor, asking: Tensor, edges: Edges) -> Tensor:  # noqa: ARG002
        summed = itself.index_add(0, edges.seat, message)
        return summed / (1 + torch.bincount(edges.seat, minlength=len(itself)))[:, None]


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
