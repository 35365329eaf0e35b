"""Adaptive Configuration Encoder: from a batch's features to a vector for every node."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear

from gsid_service.schema import Schema
from gsid_service.score.batch import Batch, Vocabulary, counts

GAMMA = 32.0
EPSILON = (10.0, 0.1)


class Encoder(nn.Module, ABC):
    """h⁰ = Σ_d table_d[x_d] + f(values) + g(evidence) over what applies to the node.

    f is the encoder's own; g is a small MLP, the same for all.
    """

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(Vocabulary(schema).size, width, padding_idx=0)
        self.evidence = nn.Sequential(
            nn.Linear(2 * counts(schema), width), nn.ReLU(), nn.Linear(width, width)
        )

    def forward(self, batch: Batch) -> Tensor:
        looked_up = embedding_bag(
            batch.categories, self.table.weight, mode="sum", padding_idx=0
        )  # [N, n]
        facts = self.values(batch) + self.evidence(batch.evidence)  # [F, n]
        return torch.cat((looked_up[: batch.entities], looked_up[batch.entities :] + facts))

    @abstractmethod
    def values(self, batch: Batch) -> Tensor:
        """[F, n]: f of the values of each fact."""


class ACE(Encoder):
    """f = Σ_p Θ_p [ε₁ x_p/γ, ε₂ (x_p/γ)², 1] over the parameters that the fact carries.

    The reference copy goes through an encoder of the same form. Both are fused linearly, together
    with the signed difference, whether the two are equal or next to each other, and how much of the
    network changed; a missing reference adds nothing.
    """

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__(schema, width)
        parameters = len(schema.monitored)
        self.observed = nn.Linear(3 * parameters, width, bias=False)
        self.reference = nn.Linear(3 * parameters, width, bias=False)
        self.fuse = nn.Linear(2 * width + 8 * parameters, width)

    def values(self, batch: Batch) -> Tensor:
        difference = (batch.value - batch.reference) * batch.has_reference / GAMMA
        differs = batch.has_reference - batch.equal
        near = differs * torch.exp(-((difference * GAMMA) ** 2) / 2)
        terms = (
            _terms(batch.value, batch.applies),
            _terms(batch.reference, batch.has_reference),
            *(difference * EPSILON[0], batch.equal, differs, near),
            *(batch.exchanged, batch.changed, batch.changes, batch.shared),
        )
        return linear(torch.cat(terms, dim=1), self._fused(), self.fuse.bias)

    def _fused(self) -> Tensor:
        """[n, 14P]: the encoders and their fusion are linear, hence one map."""
        n = len(self.fuse.weight)
        observed, reference, compared = self.fuse.weight.tensor_split((n, 2 * n), dim=1)
        encoders = (observed @ self.observed.weight, reference @ self.reference.weight)
        return torch.cat((*encoders, compared), dim=1)


class Lookup(Encoder):
    """The rivals' encoder, LKP: every value is a row of a table, and so is its reference."""

    BINS = 160  # scaled values, rounded, from -64 on

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__(schema, width)
        parameters = len(schema.monitored)
        self.observed = nn.Embedding(1 + parameters * self.BINS, width, padding_idx=0)
        self.reference = nn.Embedding(1 + parameters * self.BINS, width, padding_idx=0)
        self.fuse = nn.Linear(2 * width, width)

    def values(self, batch: Batch) -> Tensor:
        observed = self.observed(self._rows(batch.value, batch.applies)).sum(dim=1)
        reference = self.reference(self._rows(batch.reference, batch.has_reference)).sum(dim=1)
        fused: Tensor = self.fuse(torch.cat((observed, reference), dim=1))
        return fused

    def _rows(self, value: Tensor, applies: Tensor) -> Tensor:
        bins = (value.round().long() + 64).clamp(0, self.BINS - 1)
        first = 1 + self.BINS * torch.arange(value.shape[1])
        return (bins + first) * applies.long()


def _terms(value: Tensor, applies: Tensor) -> Tensor:
    """[F, 3P]: the linear and the quadratic term of each parameter, and that it is there."""
    small = value / GAMMA
    return torch.cat((EPSILON[0] * small, EPSILON[1] * small * small, applies), dim=1)
