"""From suspicious values to the smallest set of reverts that repairs the most.

Each suspect's expected value is put back in the simulator. The revert that is worth the most is
kept, the others are tried again upon it, and so on until none is worth anything; where no single
one is, pairs are tried, for two wrong values may hide each other. A revert is worth the intents
that it repairs, less those that it breaks, and how suspicious the value was to begin with.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from gsid_service.records import FactKey
from gsid_service.schema import CONNECTED
from gsid_service.simulate.reverts import Bench, Slot, Trial, Value

PER_STATED = 1.0  # what a stated intent repaired or broken is worth, in log-odds
PER_DERIVED = 0.25  # a derived one follows legitimate changes only when these are approved
MOST_DERIVED = 1.0
MOST_PRIOR = 4.0  # no score alone outweighs more than a few intents
PAIRED = 8  # suspects that are tried in pairs
NOTHING: tuple[tuple["Suspect", ...], float] = ((), 0.0)


class Suspect(NamedTuple):
    """A value that may be wrong, what it should be, and how likely it is wrong."""

    fact: FactKey
    parameter: str
    expected: int
    probability: float

    @property
    def slot(self) -> Slot:
        return self.fact, self.parameter

    @property
    def value(self) -> Value:
        return self.fact, self.parameter, self.expected

    @property
    def prior(self) -> float:
        p = min(max(self.probability, 1e-6), 1 - 1e-6)
        return max(-MOST_PRIOR, min(MOST_PRIOR, math.log(p / (1 - p))))


class Revert(NamedTuple):
    """A suspect whose expected value is to be put back, and what that is worth."""

    suspect: Suspect
    worth: float


@dataclass(frozen=True)
class Repair:
    """The reverts in the order in which they were found."""

    reverts: tuple[Revert, ...]
    alone: dict[Slot, Trial]  # what each suspect's revert does by itself
    untried: tuple[Suspect, ...]  # for want of time


def search(
    observed: Bench, suspects: Iterable[Suspect], in_time: Callable[[], bool] = lambda: True
) -> Repair:
    """The most suspicious are tried first; those for which there is no time are named."""
    bench = observed.copy()
    alone: dict[Slot, Trial] = {}
    left: list[Suspect] = []
    untried: list[Suspect] = []
    for suspect in sorted(suspects, key=lambda s: -s.probability):
        if not in_time():
            untried.append(suspect)
        elif (trial := observed.attempt(suspect.value)) is not None:
            alone[suspect.slot] = trial
            left.append(suspect)
    found: list[Revert] = []
    trials = dict(alone)
    while False in bench.held and in_time():
        best = _best(bench, left, trials)
        if not best:
            break
        kept = [revert.suspect for revert in best]
        found += best
        left = [suspect for suspect in left if suspect not in kept]
        _keep(bench, kept, left, trials)
    return Repair(tuple(found), alone, tuple(untried))


def _best(bench: Bench, left: Sequence[Suspect], trials: dict[Slot, Trial]) -> list[Revert]:
    """The revert that is worth the most; a pair where none is worth anything alone."""
    stated = bench.stated
    options: list[tuple[tuple[Suspect, ...], float]]
    options = [((s,), worth(trials[s.slot], stated, [s])) for s in left]
    chosen = max(options, key=lambda found: found[1], default=NOTHING)
    if chosen[1] <= 0:
        broken = {place for place, held in enumerate(bench.held) if held is False}
        near = [
            s for s in left if broken.intersection(bench.about(trials[s.slot].revised.networks))
        ]
        options = [
            (pair, worth(trial, stated, pair))
            for pair in combinations(near[:PAIRED], 2)
            if (trial := bench.attempt_all(s.value for s in pair)) is not None
        ]
        chosen = max(options, key=lambda found: found[1], default=NOTHING)
    return [Revert(suspect, chosen[1]) for suspect in chosen[0]] if chosen[1] > 0 else []


def worth(trial: Trial, stated: int, suspects: Iterable[Suspect]) -> float:
    """In log-odds; nothing where nothing is repaired."""
    if not trial.repairs:
        return -math.inf
    repaired, broken = (sum(place < stated for place in p) for p in (trial.repairs, trial.breaks))
    derived = len(trial.repairs) - repaired - (len(trial.breaks) - broken)
    hints = max(-MOST_DERIVED, min(MOST_DERIVED, PER_DERIVED * derived))
    return PER_STATED * (repaired - broken) + hints + sum(s.prior for s in suspects)


def _keep(
    bench: Bench, kept: Sequence[Suspect], left: Iterable[Suspect], trials: dict[Slot, Trial]
) -> None:
    """Let reverts stand, and try again what may do something else upon them."""
    stands = bench.attempt_all(suspect.value for suspect in kept)
    if stands is None:
        return
    bench.keep(stands)
    touched = set(stands.revised.networks)
    paths = any(suspect.fact.predicate == CONNECTED.name for suspect in kept)
    for suspect in left:
        concerned = not touched.isdisjoint(trials[suspect.slot].revised.networks)
        if concerned or (paths and suspect.fact.predicate == CONNECTED.name):
            again = bench.attempt(suspect.value)
            if again is not None:
                trials[suspect.slot] = again
