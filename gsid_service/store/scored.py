"""The scores of all values of a network as tables, and where two of them differ."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gsid_service.records import BoolArray, FactKey, FloatArray, IntArray
from gsid_service.schema import SCHEMA

PARAMETERS = tuple(parameter.name for parameter in SCHEMA.monitored)
NOTHING = -1  # in place of a baseline, where nobody approved one
SMALLEST_CHANGE = 0.01  # of a score that is worth a line in its history
QUIET = 0.1  # a new value below this has no history yet


class Score(NamedTuple):
    """How likely one value is wrong."""

    fact: FactKey
    parameter: str
    observed: int
    baseline: int | None
    score: float
    stale: bool

    @property
    def slot(self) -> tuple[str, str]:
        return self.fact.digest, self.parameter


@dataclass(frozen=True, eq=False)
class Scored:
    """[F, P], a row for each fact and a column for each monitored parameter."""

    facts: tuple[FactKey, ...]
    observed: IntArray
    baseline: IntArray
    score: FloatArray  # not a number where there is none
    stale: BoolArray  # [F]

    @classmethod
    def of(cls, scores: Iterable[Score]) -> "Scored":
        scores = list(scores)
        facts = tuple(dict.fromkeys(score.fact for score in scores))
        found = cls.none(facts)
        row_of = {fact: row for row, fact in enumerate(facts)}
        for fact, parameter, observed, baseline, score, stale in scores:
            row = row_of[fact]
            at = row, PARAMETERS.index(parameter)
            found.observed[at], found.score[at], found.stale[row] = observed, score, stale
            found.baseline[at] = NOTHING if baseline is None else baseline
        return found

    @classmethod
    def none(cls, facts: tuple[FactKey, ...]) -> "Scored":
        shape = len(facts), len(PARAMETERS)
        nothing = np.full(shape, NOTHING, dtype=np.int64)
        return cls(facts, nothing, nothing.copy(), np.full(shape, np.nan), np.zeros(shape[0], bool))

    @property
    def there(self) -> BoolArray:
        return ~np.isnan(self.score)

    def at(self, cells: BoolArray) -> Iterator[Score]:
        """The scores in some cells [F, P]."""
        rows, columns = np.nonzero(cells)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            yield self._score(row, column)

    def highest(self, at_most: int) -> list[Score]:
        """The highest scores, the highest first."""
        rows, columns = np.nonzero(self.there)
        order = np.argsort(-self.score[rows, columns], kind="stable")[:at_most].tolist()
        return [self._score(int(rows[at]), int(columns[at])) for at in order]

    def _score(self, row: int, column: int) -> Score:
        baseline = int(self.baseline[row, column])
        return Score(
            self.facts[row],
            PARAMETERS[column],
            int(self.observed[row, column]),
            None if baseline == NOTHING else baseline,
            float(self.score[row, column]),
            bool(self.stale[row]),
        )

    def in_order_of(self, facts: tuple[FactKey, ...]) -> "Scored":
        """The same scores for other facts, as far as they are there."""
        if facts is self.facts or facts == self.facts:
            return self
        place = {fact: row for row, fact in enumerate(self.facts)}
        from_row = np.array([place.get(fact, -1) for fact in facts], dtype=np.int64)
        known, found = from_row >= 0, Scored.none(facts)
        for mine, theirs in zip(self._tables(), found._tables(), strict=True):
            theirs[known] = mine[from_row[known]]
        return found

    def _tables(self) -> tuple[IntArray, IntArray, FloatArray, BoolArray]:
        return self.observed, self.baseline, self.score, self.stale

    def differing(self, before: "Scored") -> BoolArray:
        """[F, P]: what is new or differs from what was there of the same facts."""
        other = (self.observed != before.observed) | (self.baseline != before.baseline)
        other |= (self.stale != before.stale)[:, None]
        differing: BoolArray = self.there & (~before.there | other | self._moved(before))
        return differing

    def noted(self, before: "Scored") -> BoolArray:
        """[F, P]: what is worth a line in the history."""
        news = (self.observed != before.observed) | self._moved(before)
        return self.there & np.where(before.there, news, self.score >= QUIET)

    def _moved(self, before: "Scored") -> BoolArray:
        moved: BoolArray = np.abs(before.score - self.score) >= SMALLEST_CHANGE
        return moved

    def upon(self, before: "Scored", cells: BoolArray) -> "Scored":
        """What was there before with some cells of this, and without what is gone."""
        score = np.where(cells, self.score, np.where(self.there, before.score, np.nan))
        observed = np.where(cells, self.observed, before.observed)
        baseline = np.where(cells, self.baseline, before.baseline)
        return Scored(self.facts, observed, baseline, score, self.stale)
