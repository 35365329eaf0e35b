"""From a network as it is observed to what is wrong in it, with the proof.

One path for the daemon's cycle, for the check before a change and for the evaluation: simulate,
assemble, score, search for the reverts that repair, prove.
"""

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np

from gsid_service import schema
from gsid_service.assemble.graph import NOT_APPLICABLE
from gsid_service.diagnose.known import (
    COLUMNS,
    NAMES,
    Known,
    Observation,
    Simulated,
    know,
    simulate,
)
from gsid_service.recent import Recent
from gsid_service.records import (
    Fact,
    FactKey,
    FloatArray,
    Graph,
    IntArray,
    Move,
    Scores,
)
from gsid_service.simulate.reverts import Bench, Slot
from gsid_service.verify.lost import lost
from gsid_service.verify.proof import NOT_VERIFIED, Proof, prove
from gsid_service.verify.repair import Suspect, search
from gsid_service.verify.reported import differences
from gsid_service.verify.suggest import Siblings, counted, may_be_left_out, remedy, suggest

COLUMN_OF = {name: column for column, name in enumerate(NAMES)}
SUGGESTED = 64  # values that nobody approved, for which a better one is looked for
DOUBTED = 0.05  # the least score of such a value where intents are broken, which may raise it
ROOM = 2 << 30  # bytes

Detector = Callable[[Graph], Scores]  # a model, or anything else with this signature


@dataclass(frozen=True, slots=True)
class Limits:
    """When a value counts as wrong, which are proved, and how long that may take."""

    certain: float = 0.65
    proved: float = 0.35
    seconds: float = 2.0


USUAL = Limits()


class Judged(NamedTuple):
    """A value with its score; the expected one is a suggestion where nobody approved one."""

    fact: FactKey
    parameter: str
    observed: int
    approved: int | None
    expected: int | None
    score: float

    @property
    def slot(self) -> Slot:
        return self.fact, self.parameter


@dataclass(frozen=True, eq=False)
class Values:
    """Every monitored value with its score, the most suspicious first."""

    facts: tuple[FactKey, ...]
    observed: IntArray  # [F, P], NOT_APPLICABLE where a fact does not carry the parameter
    approved: IntArray  # [F, P], likewise where nobody approved one
    score: FloatArray  # [F, P], not a number where there is none
    expected: Mapping[Slot, int]  # where that is not the approved value

    def __len__(self) -> int:
        return int((~np.isnan(self.score)).sum())

    def __iter__(self) -> Iterator[Judged]:
        rows, columns = np.nonzero(~np.isnan(self.score))
        order = np.argsort(-self.score[rows, columns], kind="stable")
        for at in order.tolist():
            yield self._judged(int(rows[at]), int(columns[at]))

    def of(self, slots: Collection[Slot]) -> Iterator[Judged]:
        """Those of some slots, as far as there are any."""
        keys = {key for key, _ in slots}
        row_of = {key: row for row, key in enumerate(self.facts) if key in keys} if keys else {}
        for key, parameter in slots:
            row, column = row_of.get(key), COLUMN_OF.get(parameter)
            if row is not None and column is not None and not np.isnan(self.score[row, column]):
                yield self._judged(row, column)

    def _judged(self, row: int, column: int) -> Judged:
        key, parameter = self.facts[row], NAMES[column]
        approved: int | None = int(self.approved[row, column])
        approved = None if approved == NOT_APPLICABLE else approved
        expected = self.expected.get((key, parameter), approved)
        observed, score = int(self.observed[row, column]), float(self.score[row, column])
        return Judged(key, parameter, observed, approved, expected, score)


class Stopwatch:
    """Adds up what each stage takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - begun


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Every monitored value, and what is known of those that matter."""

    values: Values
    proofs: dict[Slot, Proof]
    broken: list[Fact]  # intents, stated and derived
    differences: list[Move]  # what routers report, where it is not what their values lead to
    lost: dict[FactKey, Proof]  # sessions that were approved, and are gone
    seconds: dict[str, float]  # that each stage took


def diagnose(
    seen: Observation,
    detector: Detector,
    limits: Limits = USUAL,
    clock: Callable[[], float] = time.monotonic,
) -> Diagnosis:
    return follow(seen, None, detector, limits, clock)[0]


def follow(
    seen: Observation,
    last: Known | None,
    detector: Detector,
    limits: Limits = USUAL,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Diagnosis, Known]:
    """The diagnosis of a network of which a state may be known already, and what is known now.

    The last state is let go as soon as it is of no more use: it may be as large as this one.
    """
    watch, until = Stopwatch(), clock() + limits.seconds

    def in_time() -> bool:
        return clock() < until

    with watch.stage("simulate"):
        simulated = simulate(seen, last)
    if simulated.changed is None:
        last = None
    with watch.stage("assemble"):
        known = know(simulated, last)
    del last
    with watch.stage("score"):
        scores = _Scores(known, detector(known.graph))
    scores.raise_all(seen.contradicted)
    bench = simulated.bench.copy()
    simulated.bench.forget()
    with watch.stage("verify"):
        suspects = list(_suspects(known, bench, scores, limits, in_time))
        repair = search(bench, suspects, in_time)
        for suspect, worth in repair.reverts:
            scores[suspect.slot] = max(scores[suspect.slot], _probability(worth))
        for suspect, worth in repair.explained:
            if suspect.slot not in seen.contradicted:
                scores[suspect.slot] = min(scores[suspect.slot], _probability(worth))
        suspects = [s._replace(probability=scores[s.slot]) for s in suspects]
        proved = list(_proved(bench, suspects, simulated.facts, limits, in_time))
        sessions_gone = _lost(simulated, in_time)
    reported = [fact for fact in seen.facts if fact.predicate == schema.FWD.name]
    found = Diagnosis(
        values=scores.judged({s.slot: s.expected for s in (*suspects, *(p[0] for p in proved))}),
        proofs={suspect.slot: proof for suspect, proof in proved},
        broken=[i for i, held in zip(bench.wanted, bench.held, strict=True) if held is False],
        differences=differences(bench.state, reported, seen.stale),
        lost=sessions_gone,
        seconds=watch.seconds,
    )
    return found, known


class _Scores:
    """The scores of a graph's values, by slot."""

    def __init__(self, known: Known, found: Scores) -> None:
        if found.facts != known.graph.facts:
            raise ValueError(
                f"{found.method}: its scores are not in the order of the graph's facts"
            )
        self.known, self.table = known, found.probability.copy()  # [F, P]

    def __getitem__(self, slot: Slot) -> float:
        return float(self.table[self._at(slot)])

    def __setitem__(self, slot: Slot, score: float) -> None:
        self.table[self._at(slot)] = score

    def _at(self, slot: Slot) -> tuple[int, int]:
        return self.known.row_of[slot[0]], COLUMN_OF[slot[1]]

    def raise_all(self, slots: Iterable[Slot]) -> None:
        """Those that have a score are certain."""
        for slot in slots:
            if slot[0] in self.known.row_of and not math.isnan(self[slot]):
                self[slot] = 1.0

    def unapproved(self, least: float) -> Iterator[tuple[Slot, float]]:
        """What scores high and has no approved value, the most suspicious first."""
        table = np.where(self._values(self.known.graph.reference) == NOT_APPLICABLE, self.table, 0)
        rows, columns = np.nonzero(table >= least)
        for at in np.argsort(-table[rows, columns], kind="stable").tolist():
            row, column = int(rows[at]), int(columns[at])
            yield (self.known.graph.facts[row], NAMES[column]), float(table[row, column])

    def judged(self, expected: Mapping[Slot, int]) -> Values:
        graph = self.known.graph
        observed, approved = self._values(graph.features), self._values(graph.reference)
        score = np.where(observed == NOT_APPLICABLE, np.nan, self.table)
        return Values(graph.facts, observed, approved, score, expected)

    def _values(self, features: FloatArray | None) -> IntArray:
        """[F, P]"""
        if features is None:
            return np.full(self.table.shape, NOT_APPLICABLE, dtype=np.int64)
        return features[len(self.known.graph.entities) :, COLUMNS].astype(np.int64)


def _lost(now: Simulated, in_time: Callable[[], bool]) -> dict[FactKey, Proof]:
    seen = now.seen
    if seen.reference is None or not seen.reference.exact:
        return {}
    approved = seen.reference.entities, seen.reference.facts
    compare = seen.always_compare_med
    return lost((seen.entities, now.facts), approved, seen.wanted, compare, in_time)


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _suspects(
    known: Known,
    bench: Bench,
    scores: _Scores,
    limits: Limits,
    in_time: Callable[[], bool],
) -> Iterator[Suspect]:
    """Every value that changed, and what scores highest without having an approved value."""
    stale = known.simulated.seen.stale
    changed = counted(known.different)
    siblings = None
    for key, parameter, value in known.different:
        if key in stale:
            continue
        better, score = None, scores[key, parameter]
        if score >= limits.proved and may_be_left_out(key, parameter, changed):
            siblings = siblings or Siblings(known.simulated.facts)
            better = siblings.left_out(key, parameter, changed)
        yield Suspect(key, parameter, value if better is None else better, score)
    least = min(DOUBTED, limits.proved) if False in bench.held else limits.proved
    high = (one for one in scores.unapproved(least) if one[0][0] not in stale)
    for (key, parameter), score in islice(high, SUGGESTED):
        siblings = siblings or Siblings(known.simulated.facts)
        better = suggest(bench, siblings, key, parameter) if in_time() else None
        if better is not None:
            yield Suspect(key, parameter, better, score)


def _proved(
    bench: Bench,
    suspects: Sequence[Suspect],
    facts: Sequence[Fact],
    limits: Limits,
    in_time: Callable[[], bool],
) -> Iterator[tuple[Suspect, Proof]]:
    """Every value that may become an alert, the most suspicious first, while there is time.

    Where a mistake lies on top of a legitimate change, the approved value may change nothing; what
    siblings have may then repair what is broken.
    """
    likely = [s for s in suspects if s.probability >= limits.proved]
    certain = [s for s in likely if s.probability >= limits.certain]
    siblings = None
    for suspect in sorted(likely, key=lambda s: -s.probability):
        proof = prove(bench, suspect, certain) if in_time() else NOT_VERIFIED
        is_certain = suspect.probability >= limits.certain
        does_nothing = proof.verified and not proof.broken and not proof.moved
        if is_certain and does_nothing and False in bench.held and in_time():
            siblings = siblings or Siblings(facts)
            better = remedy(bench, siblings, suspect.fact, suspect.parameter)
            if better is not None:
                suspect = suspect._replace(expected=better)
                proof = prove(bench, suspect, certain)
        yield suspect, proof


class Diagnoser(Protocol):
    """What the service asks; here or in another process."""

    @property
    def name(self) -> str: ...
    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis: ...
    def stop(self) -> None: ...


class Here:
    """A diagnoser in this process; what it knows of networks is kept, as far as there is room."""

    def __init__(self, detector: Detector, name: str, room: int = ROOM) -> None:
        self.detector, self.name = detector, name
        self.pid = os.getpid()
        self.known = Recent[Known](room)

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        found, known = follow(seen, self.known.take(seen.network), self.detector, limits)
        if seen.network:
            self.known.put(seen.network, known, known.size)
        return found

    def stop(self) -> None:
        """There is nothing to stop."""
