"""From suspicious values to the smallest set of reverts that repairs the most.

Each suspect's expected value is put back in the simulator. The revert that is worth the most is
kept, the others are tried again upon it, and so on until none is worth anything; where no single
one is, pairs are tried, for two wrong values may hide each other. A revert is worth the intents
that it repairs, less those that it breaks, and how suspicious the value was to begin with. What
would have repaired something, and no longer does once the others are put back, is explained by
these: it was suspected for what they did.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from gsid_service.records import FactKey
from gsid_service.schema import CONNECTED
from gsid_service.simulate.reverts import Bench, Slot, Trial
from gsid_service.simulate.revise import Value

PER_STATED = 1.0  # what a stated intent repaired or broken is worth, in log-odds
PER_DERIVED = 0.25  # a derived one follows legitimate changes only when these are approved
MOST_DERIVED = 1.0
MOST_PRIOR = 4.0  # no score alone outweighs more than a few intents
EXPLAINED = 2.5  # what a suspect loses, in log-odds; the most likely amount over 1,800 cases
PAIRED = 8  # suspects that are tried in pairs


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
    """A suspect whose expected value is to be put back, and what that is worth in log-odds."""

    suspect: Suspect
    worth: float


@dataclass(frozen=True)
class Repair:
    """The reverts in the order in which they were found."""

    reverts: tuple[Revert, ...]
    explained: tuple[Revert, ...]  # suspects that repair something, but nothing beside these
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
    reverts = _descend(bench, left, dict(alone), in_time)
    rivals = _rivals(bench, left, alone, reverts)
    explained = (Revert(s, s.prior - EXPLAINED) for s in rivals if in_time() and _idle(bench, s))
    return Repair(tuple(reverts), tuple(explained), alone, tuple(untried))


def _rivals(
    bench: Bench, left: Iterable[Suspect], alone: dict[Slot, Trial], reverts: Sequence[Revert]
) -> list[Suspect]:
    """Who is not put back, and by itself would repair a stated intent."""
    chosen = {revert.suspect.slot for revert in reverts}
    return [s for s in left if s.slot not in chosen and _repairs(bench, alone[s.slot])]


def _idle(bench: Bench, suspect: Suspect) -> bool:
    trial = bench.attempt(suspect.value)
    return trial is not None and not _repairs(bench, trial)


def _repairs(bench: Bench, trial: Trial) -> bool:
    return any(place < bench.stated for place in trial.repairs)


def _descend(
    bench: Bench, left: list[Suspect], trials: dict[Slot, Trial], in_time: Callable[[], bool]
) -> list[Revert]:
    """Keep the best revert while any is worth it; what it may have changed is tried again only
    once it looks like the best, or before giving up."""
    found: list[Revert] = []
    outdated: set[Slot] = set()
    while False in bench.held and in_time():
        best = _best(bench, left, trials)
        again = [s for s in left if s.slot in outdated and (not best or s == best[0].suspect)]
        if again:
            trials |= {s.slot: t for s in again if (t := bench.attempt(s.value)) is not None}
            outdated -= {s.slot for s in again}
            continue
        best = best or _best_pair(bench, left, trials)
        stands = bench.attempt(*(revert.suspect.value for revert in best)) if best else None
        if stands is None:
            break
        bench.keep(stands)
        found += best
        left = [s for s in left if all(s != revert.suspect for revert in best)]
        outdated |= {s.slot for s in left if _depends(s, trials[s.slot], best, stands)}
    return found


def _best(bench: Bench, left: Sequence[Suspect], trials: dict[Slot, Trial]) -> list[Revert]:
    """The revert that is worth the most, if any is worth anything."""
    options = [Revert(s, worth(trials[s.slot], bench.stated, [s])) for s in left]
    best = max(options, key=lambda revert: revert.worth, default=None)
    return [best] if best and best.worth > 0 else []


def _best_pair(bench: Bench, left: Sequence[Suspect], trials: dict[Slot, Trial]) -> list[Revert]:
    """Two that are worth something together, among those that concern what is broken."""
    broken = {place for place, held in enumerate(bench.held) if held is False}
    near = [s for s in left if broken.intersection(bench.about(trials[s.slot].networks))]
    pairs = [
        (worth(trial, bench.stated, pair), pair)
        for pair in combinations(near[:PAIRED], 2)
        if (trial := bench.attempt(*(s.value for s in pair))) is not None
    ]
    value, chosen = max(pairs, key=lambda found: found[0], default=(0.0, ()))
    return [Revert(suspect, value) for suspect in chosen] if value > 0 else []


def _depends(suspect: Suspect, trial: Trial, kept: Iterable[Revert], stands: Trial) -> bool:
    """Whether a revert may do something else now: it is about the same networks, or about paths."""
    if not set(stands.networks).isdisjoint(trial.networks):
        return True
    links = suspect.fact.predicate == CONNECTED.name
    return links and any(r.suspect.fact.predicate == CONNECTED.name for r in kept)


def worth(trial: Trial, stated: int, suspects: Iterable[Suspect]) -> float:
    """In log-odds; nothing where nothing is repaired."""
    if not trial.repairs:
        return -math.inf
    repaired, broken = (sum(place < stated for place in p) for p in (trial.repairs, trial.breaks))
    derived = len(trial.repairs) - repaired - (len(trial.breaks) - broken)
    hints = max(-MOST_DERIVED, min(MOST_DERIVED, PER_DERIVED * derived))
    return PER_STATED * (repaired - broken) + hints + sum(s.prior for s in suspects)
