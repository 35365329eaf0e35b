"""From a network as it is observed to what is wrong in it, with the proof.

One path for the daemon's cycle, for the check before a change and for the evaluation: simulate,
assemble, score, search for the reverts that repair. What is found beyond doubt is put back in
mind, and the rest is looked at again, for one wrong value may hide another.
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
from gsid_service.simulate.faults import with_values
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, Slot, changed, reverts
from gsid_service.verify.proof import NOT_VERIFIED, Proof, prove
from gsid_service.verify.repair import Suspect, search
from gsid_service.verify.reported import differences
from gsid_service.verify.suggest import suggest

DEFAULTS = {parameter.name: parameter.default for parameter in schema.SCHEMA.monitored}
LOOKS = 3  # at most; a second one is needed only where the first found something
FAINT = 0.02  # what scores below this is not looked at again


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
    until = clock() + limits.seconds
    watch = Stopwatch()
    network = _Network(seen, detector, limits, lambda: clock() < until, watch)
    first = look = network.look({})
    convicted = look.convicted(limits.certain)
    for _ in range(1, LOOKS):
        if not look.is_worth_another(convicted):
            break
        look = network.look({slot: found.expected for slot, found in convicted.items()})
        convicted |= look.convicted(limits.certain)
    scores = look.scores | {slot: found.probability for slot, found in convicted.items()}
    suspects = first.suspects | look.suspects | convicted
    bench = first.bench
    with watch.stage("verify"):
        proofs = network.prove(bench, scores, suspects, convicted)
    return Diagnosis(
        values=_judged(seen, scores, suspects),
        proofs=proofs,
        broken=[i for i, held in zip(bench.wanted, bench.held, strict=True) if held is False],
        differences=differences(bench.state, network.reported, seen.stale),
        seconds=watch.seconds,
    )


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


class _Look(NamedTuple):
    """What one look at a network finds, with some values put back in mind."""

    bench: Bench
    scores: dict[Slot, float]
    suspects: dict[Slot, Suspect]  # with the scores

    def convicted(self, certain: float) -> dict[Slot, Suspect]:
        return {slot: s for slot, s in self.suspects.items() if s.probability >= certain}

    def is_worth_another(self, convicted: Mapping[Slot, Suspect]) -> bool:
        """Whether something new was found, and anything else may be."""
        fresh = any(slot in convicted for slot in self.suspects)
        doubtful = (s for slot, s in self.suspects.items() if slot not in convicted)
        return fresh and any(s.probability >= FAINT for s in doubtful)


class _Network:
    """A network that is looked at, once or more."""

    def __init__(
        self,
        seen: Observation,
        detector: Detector,
        limits: Limits,
        in_time: Callable[[], bool],
        watch: Stopwatch,
    ) -> None:
        self.seen, self.detector, self.limits = seen, detector, limits
        self.in_time, self.watch = in_time, watch
        self.reported = [fact for fact in seen.facts if fact.predicate == schema.FWD.name]
        self.facts = tuple(fact for fact in seen.facts if fact.predicate != schema.FWD.name)
        known = {entity.id for entity in seen.entities}
        self.stated = [i for i in seen.wanted.stated if known.issuperset(i.args)]
        self.approved: Forwarding | None = None
        if seen.reference is not None:
            with watch.stage("simulate"):
                self.approved = self._forward(seen.reference.entities, seen.reference.facts)

    def _forward(self, entities: Sequence[Entity], facts: Sequence[Fact]) -> Forwarding:
        return forward(build(entities, facts), self.seen.always_compare_med)

    def look(self, put_back: dict[Slot, int]) -> _Look:
        """Score the network with some values put back, and search for reverts among the rest."""
        facts = with_values(self.facts, put_back) if put_back else self.facts
        with self.watch.stage("simulate"):
            state = self._forward(self.seen.entities, facts)
            bench = Bench(state, facts, self.stated, self.seen.wanted.derived)
        with self.watch.stage("assemble"):
            graph = self._graph(bench, facts)
        with self.watch.stage("score"):
            scored = self.detector(graph).ranked()
        scores = {(key, parameter): score for score, key, parameter in scored}
        scores |= dict.fromkeys(self.seen.contradicted & scores.keys(), 1.0)
        with self.watch.stage("verify"):
            suspects = list(self._suspects(bench, facts, scores))
            for suspect, worth in search(bench, suspects, self.in_time).reverts:
                scores[suspect.slot] = max(scores[suspect.slot], 1 / (1 + math.exp(-worth)))
        judged = {s.slot: s._replace(probability=scores[s.slot]) for s in suspects}
        return _Look(bench, scores, judged)

    def _graph(self, bench: Bench, facts: Sequence[Fact]) -> Graph:
        seen, reference = self.seen, self.seen.reference
        return assemble(
            seen.entities,
            facts,
            self.stated,
            reference.facts if reference else None,
            evidence(facts, self.stated, bench.state, self.approved),
            reverts(bench, facts, reference.facts) if reference else {},
            seen.stale,
            reference is not None and reference.exact,
        )

    def _suspects(
        self, bench: Bench, facts: Sequence[Fact], scores: Mapping[Slot, float]
    ) -> Iterator[Suspect]:
        """Every value that changed, and what scores high without having an approved value."""
        approved = self.seen.reference.facts if self.seen.reference else ()
        known = set()
        for key, parameter, value in changed(facts, approved):
            known.add((key, parameter))
            if key not in self.seen.stale:
                yield Suspect(key, parameter, value, scores[key, parameter])
        keys = {fact.key for fact in approved}
        for (key, parameter), score in scores.items():
            if score >= self.limits.proved and key not in keys and key not in self.seen.stale:
                better = suggest(bench, facts, key, parameter)
                if better is not None:
                    yield Suspect(key, parameter, better, score)

    def prove(
        self,
        bench: Bench,
        scores: Mapping[Slot, float],
        suspects: Mapping[Slot, Suspect],
        convicted: Mapping[Slot, Suspect],
    ) -> dict[Slot, Proof]:
        """Of every value that may become an alert, the most suspicious first, in time."""
        found = {}
        others = list(convicted.values())
        for slot in sorted(suspects, key=lambda slot: -scores[slot]):
            if scores[slot] >= self.limits.proved:
                in_time = self.in_time()
                found[slot] = prove(bench, suspects[slot], others) if in_time else NOT_VERIFIED
        return found


def _judged(
    seen: Observation, scores: Mapping[Slot, float], suspects: Mapping[Slot, Suspect]
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
            expected = suspects[slot].expected if slot in suspects else before
            found.append(Judged(key, parameter, value, before, expected, scores[slot]))
    return found
