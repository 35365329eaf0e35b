"""From a network as it is observed to what is wrong in it, with the proof.

One path for the daemon's cycle, for the check before a change and for the evaluation: simulate,
assemble, score, search for the reverts that repair, prove.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gsid_service import schema
from gsid_service.assemble.graph import assemble
from gsid_service.records import Entity, Fact, FactKey, Graph, Intents, Move, Scores
from gsid_service.simulate.evidence import evidence
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, Slot, changed, reverts
from gsid_service.verify.proof import NOT_VERIFIED, Proof, prove
from gsid_service.verify.repair import Suspect, search
from gsid_service.verify.reported import differences
from gsid_service.verify.suggest import suggest

DEFAULTS = {parameter.name: parameter.default for parameter in schema.SCHEMA.monitored}


Detector = Callable[[Graph], Scores]  # a model, or anything else with this signature


class Reference(NamedTuple):
    """What to compare with: the network as it once was, or a copy that may be wrong."""

    entities: Sequence[Entity]
    facts: Sequence[Fact]
    exact: bool = True


NOTHING_WANTED = Intents()


@dataclass(frozen=True, slots=True)
class Observation:
    """All that is known of a network."""

    entities: Sequence[Entity]
    facts: Sequence[Fact]
    wanted: Intents = NOTHING_WANTED
    reference: Reference | None = None
    stale: frozenset[FactKey] = frozenset()
    always_compare_med: bool = False
    contradicted: frozenset[Slot] = frozenset()  # values that are not what somebody announced


@dataclass(frozen=True, slots=True)
class Limits:
    """When a value counts as wrong, which are proved, and how long that may take."""

    certain: float = 0.7
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
    """Every monitored value, the most suspicious first, and what is known of those that matter."""

    values: list[Judged]
    proofs: dict[Slot, Proof]
    broken: list[Fact]  # intents, stated and derived
    differences: list[Move]  # what routers report, where it is not what their values lead to
    seconds: dict[str, float]  # that each stage took


def diagnose(
    seen: Observation,
    detector: Detector,
    limits: Limits = USUAL,
    clock: Callable[[], float] = time.monotonic,
) -> Diagnosis:
    watch, until = Stopwatch(), clock() + limits.seconds
    reported = [fact for fact in seen.facts if fact.predicate == schema.FWD.name]
    facts = tuple(fact for fact in seen.facts if fact.predicate != schema.FWD.name)
    known = {entity.id for entity in seen.entities}
    stated = [intent for intent in seen.wanted.stated if known.issuperset(intent.args)]
    with watch.stage("simulate"):
        state = forward(build(seen.entities, facts), seen.always_compare_med)
        bench = Bench(state, facts, stated, seen.wanted.derived)
    with watch.stage("assemble"):
        graph = _graph(seen, bench, facts, stated)
    with watch.stage("score"):
        scores = {(key, parameter): p for p, key, parameter in detector(graph).ranked()}
    scores |= dict.fromkeys(seen.contradicted & scores.keys(), 1.0)
    with watch.stage("verify"):
        suspects = list(_suspects(seen, bench, facts, scores, limits))
        for suspect, worth in search(bench, suspects, lambda: clock() < until).reverts:
            scores[suspect.slot] = max(scores[suspect.slot], 1 / (1 + math.exp(-worth)))
        suspects = [s._replace(probability=scores[s.slot]) for s in suspects]
        proofs = _proofs(bench, suspects, limits, lambda: clock() < until)
    return Diagnosis(
        values=_judged(seen, scores, {s.slot: s.expected for s in suspects}),
        proofs=proofs,
        broken=[i for i, held in zip(bench.wanted, bench.held, strict=True) if held is False],
        differences=differences(state, reported, seen.stale),
        seconds=watch.seconds,
    )


def _graph(seen: Observation, bench: Bench, facts: Sequence[Fact], stated: Sequence[Fact]) -> Graph:
    reference = seen.reference
    if reference is None:
        said = evidence(facts, stated, bench.state)
        return assemble(seen.entities, facts, stated, None, said, {}, seen.stale)
    before = forward(build(reference.entities, reference.facts), seen.always_compare_med)
    return assemble(
        seen.entities,
        facts,
        stated,
        reference.facts,
        evidence(facts, stated, bench.state, before),
        reverts(bench, facts, reference.facts),
        seen.stale,
        reference.exact,
    )


def _suspects(
    seen: Observation,
    bench: Bench,
    facts: Sequence[Fact],
    scores: Mapping[Slot, float],
    limits: Limits,
) -> Iterator[Suspect]:
    """Every value that changed, and what scores high without having an approved value."""
    approved = seen.reference.facts if seen.reference else ()
    for key, parameter, value in changed(facts, approved):
        if key not in seen.stale:
            yield Suspect(key, parameter, value, scores[key, parameter])
    known = {fact.key for fact in approved}
    for (key, parameter), score in scores.items():
        if score >= limits.proved and key not in known and key not in seen.stale:
            better = suggest(bench, facts, key, parameter)
            if better is not None:
                yield Suspect(key, parameter, better, score)


def _proofs(
    bench: Bench, suspects: Sequence[Suspect], limits: Limits, in_time: Callable[[], bool]
) -> dict[Slot, Proof]:
    """Of every value that may become an alert, the most suspicious first, while there is time."""
    likely = [s for s in suspects if s.probability >= limits.proved]
    certain = [s for s in likely if s.probability >= limits.certain]
    return {
        suspect.slot: prove(bench, suspect, certain) if in_time() else NOT_VERIFIED
        for suspect in sorted(likely, key=lambda s: -s.probability)
    }


def _judged(
    seen: Observation, scores: Mapping[Slot, float], wanted: Mapping[Slot, int]
) -> list[Judged]:
    observed = {fact.key: fact.params for fact in seen.facts}
    approved = {fact.key: fact.params for fact in seen.reference.facts} if seen.reference else {}
    found = []
    for slot in sorted(scores, key=lambda slot: -scores[slot]):
        key, parameter = slot
        default = DEFAULTS[parameter]
        value = observed[key].get(parameter, default)
        if value is not None:
            before = approved[key].get(parameter, default) if key in approved else None
            expected = wanted.get(slot, before)
            found.append(Judged(key, parameter, value, before, expected, scores[slot]))
    return found


class Diagnoser(Protocol):
    """What the service asks; here or in another process."""

    @property
    def name(self) -> str: ...
    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis: ...
    def stop(self) -> None: ...


class Here:
    """A diagnoser in this process."""

    def __init__(self, detector: Detector, name: str) -> None:
        self.detector, self.name = detector, name

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        return diagnose(seen, self.detector, limits)

    def stop(self) -> None:
        """There is nothing to stop."""
