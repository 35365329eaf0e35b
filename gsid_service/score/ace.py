"""Adaptive Configuration Encoder: from a batch's features to a vector for every node."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear

from gsid_service.assemble import siblings
from gsid_service.schema import Schema
from gsid_service.score.batch import Batch, Vocabulary, counts

GAMMA = 32.0
EPSILON = (10.0, 0.1)
AT_ONCE = 1 << 15  # facts that are encoded together where no gradient is asked for


class Encoder(nn.Module, ABC):
    """h⁰ = Σ_d table_d[x_d] + f(values) + g(evidence, siblings) over what applies to the node.

    f is the encoder's own; g is a small MLP, which may see more where an encoder has it.
    """

    more = 0  # what g sees beside evidence and siblings, a parameter

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(Vocabulary(schema).size, width, padding_idx=0)
        seen = 2 * counts(schema) + siblings.width(schema) + self.more * len(schema.monitored)
        self.evidence = nn.Sequential(
            nn.Linear(seen, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def forward(self, batch: Batch) -> Tensor:
        looked_up = embedding_bag(
            batch.categories, self.table.weight, mode="sum", padding_idx=0
        )  # [N, n]
        if torch.is_grad_enabled():
            facts = self._facts(batch, slice(None))
            return torch.cat((looked_up[: batch.entities], looked_up[batch.entities :] + facts))
        for low in range(0, len(batch.value), AT_ONCE):
            rows = slice(low, low + AT_ONCE)
            looked_up[batch.entities :][rows].add_(self._facts(batch, rows))
        return looked_up

    @abstractmethod
    def _facts(self, batch: Batch, rows: slice) -> Tensor:
        """[rows, n]: f and g of some facts."""

    def _evidence(self, batch: Batch, rows: slice, *more: Tensor) -> Tensor:
        """[rows, n]: g of some facts."""
        seen = torch.cat((batch.evidence[rows], batch.siblings[rows].float(), *more), dim=1)
        found: Tensor = self.evidence(seen)
        return found


class ACE(Encoder):
    """f = Σ_p Θ_p [ε₁ x_p/γ, ε₂ (x_p/γ)², 1] over the parameters that the fact carries.

    The reference copy goes through an encoder of the same form. Both are fused linearly, together
    with the signed difference, whether the two are equal or next to each other, how much of the
    network changed, and in what pattern; a missing reference adds nothing. g sees the same terms.
    """

    more = 19

    def __init__(self, schema: Schema, width: int) -> None:
        super().__init__(schema, width)
        parameters = len(schema.monitored)
        self.observed = nn.Linear(3 * parameters, width, bias=False)
        self.reference = nn.Linear(3 * parameters, width, bias=False)
        self.fuse = nn.Linear(2 * width + 13 * parameters, width)

    def _facts(self, batch: Batch, rows: slice) -> Tensor:
        terms = self._values(batch, rows)
        fused = linear(terms, self._fused(), self.fuse.bias)
        return fused + self._evidence(batch, rows, terms)

    def _values(self, batch: Batch, rows: slice) -> Tensor:
        """[rows, 19P]: the terms of observed and approved values, and how these compare."""
        value, reference, known = (
            batch.value[rows],
            batch.reference[rows],
            batch.has_reference[rows],
        )
        difference, equal = (value - reference) * known / GAMMA, batch.equal[rows]
        differs = known - equal
        near = differs * torch.exp(-((difference * GAMMA) ** 2) / 2)
        patterns = batch.exchanged, batch.mistyped, batch.alike, batch.alone, batch.shared
        counts = batch.changed, batch.changes, batch.slips, batch.others
        terms = (
            _terms(value, batch.applies[rows]),
            _terms(reference, known),
            *(difference * EPSILON[0], equal, differs, near),
            *(table[rows] for table in (*counts, *patterns)),
        )
        return torch.cat(terms, dim=1)

    def _fused(self) -> Tensor:
        """[n, 19P]: the encoders and their fusion are linear, hence one map."""
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

    def _facts(self, batch: Batch, rows: slice) -> Tensor:
        mine = self._rows(batch.value[rows], batch.applies[rows])
        theirs = self._rows(batch.reference[rows], batch.has_reference[rows])
        observed, reference = self.observed(mine).sum(dim=1), self.reference(theirs).sum(dim=1)
        fused: Tensor = self.fuse(torch.cat((observed, reference), dim=1))
        return fused + self._evidence(batch, rows)

    def _rows(self, value: Tensor, applies: Tensor) -> Tensor:
        bins = (value.round().long() + 64).clamp(0, self.BINS - 1)
        first = 1 + self.BINS * torch.arange(value.shape[1])
        return (bins + first) * applies.long()


def _terms(value: Tensor, applies: Tensor) -> Tensor:
    """[F, 3P]: the linear and the quadratic term of each parameter, and that it is there."""
    small = value / GAMMA
    return torch.cat((EPSILON[0] * small, EPSILON[1] * small * small, applies), dim=1)
