"""Adaptive Configuration Encoder: from a batch's features to a vector for every node."""

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear

from gsid_service.score.batch import Batch

GAMMA = 32.0
EPSILON = (10.0, 0.1)


class ACE(nn.Module):
    """h⁰ = Σ_d table_d[x_d] + Σ_p Θ_p [ε₁ x_p/γ, ε₂ (x_p/γ)², 1] over what applies to the node.

    The reference copy goes through an encoder of the same form. Both are fused linearly, together
    with the signed difference and whether the two are equal; a missing reference adds nothing.
    """

    def __init__(self, rows: int, parameters: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width, padding_idx=0)
        self.observed = nn.Linear(3 * parameters, width, bias=False)
        self.reference = nn.Linear(3 * parameters, width, bias=False)
        self.fuse = nn.Linear(2 * width + 3 * parameters, width)

    def forward(self, batch: Batch) -> Tensor:
        looked_up = embedding_bag(
            batch.categories, self.table.weight, mode="sum", padding_idx=0
        )  # [N, n]
        difference = (batch.value - batch.reference) * batch.has_reference / GAMMA
        differs = batch.has_reference - batch.equal
        terms = (
            _terms(batch.value, batch.applies),
            _terms(batch.reference, batch.has_reference),
            torch.cat((difference * EPSILON[0], batch.equal, differs), dim=1),
        )
        facts = linear(torch.cat(terms, dim=1), self._fused(), self.fuse.bias)
        return torch.cat((looked_up[: batch.entities], looked_up[batch.entities :] + facts))

    def _fused(self) -> Tensor:
        """[n, 9P]: the encoders and their fusion are linear, hence one map."""
        n = len(self.fuse.weight)
        observed, reference, compared = self.fuse.weight.tensor_split((n, 2 * n), dim=1)
        encoders = (observed @ self.observed.weight, reference @ self.reference.weight)
        return torch.cat((*encoders, compared), dim=1)


class Lookup(nn.Module):
    """The rivals' encoder, LKP: every value is a row of a table, and so is its reference."""

    BINS = 160  # scaled values, rounded, from -64 on

    def __init__(self, rows: int, parameters: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width, padding_idx=0)
        self.observed = nn.Embedding(1 + parameters * self.BINS, width, padding_idx=0)
        self.reference = nn.Embedding(1 + parameters * self.BINS, width, padding_idx=0)
        self.fuse = nn.Linear(2 * width, width)

    def forward(self, batch: Batch) -> Tensor:
        looked_up = self.table(batch.categories).sum(dim=1)
        observed = self.observed(self._rows(batch.value, batch.applies)).sum(dim=1)
        reference = self.reference(self._rows(batch.reference, batch.has_reference)).sum(dim=1)
        facts = self.fuse(torch.cat((observed, reference), dim=1))
        return torch.cat((looked_up[: batch.entities], looked_up[batch.entities :] + facts))

    def _rows(self, value: Tensor, applies: Tensor) -> Tensor:
        bins = (value.round().long() + 64).clamp(0, self.BINS - 1)
        first = 1 + self.BINS * torch.arange(value.shape[1])
        return (bins + first) * applies.long()


def _terms(value: Tensor, applies: Tensor) -> Tensor:
    """[F, 3P]: the linear and the quadratic term of each parameter, and that it is there."""
    small = value / GAMMA
    return torch.cat((EPSILON[0] * small, EPSILON[1] * small * small, applies), dim=1)
