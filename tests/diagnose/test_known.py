"""A network that is followed from state to state is known as if each were the first."""

import random
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsid_service.diagnose import known
from gsid_service.diagnose.diagnosis import Diagnosis, Here, Limits, follow
from gsid_service.diagnose.known import Known, Observation, Reference
from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Fact, Graph, Intents, Scores
from gsid_service.schema import SCHEMA
from gsid_service.simulate import faults, intents
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from tests.simulate.test_revise import redrawn

CASES = [SPLITS["operations-standard"].case("known", index) for index in range(3)]
PARAMETERS = tuple(parameter.name for parameter in SCHEMA.monitored)
NO_HURRY = Limits(seconds=1e9)


def detector(graph: Graph) -> Scores:
    """Suspects changed values, the more the more of the graph is different."""
    columns = [p.column for p in SCHEMA.monitored]
    observed = graph.features[len(graph.entities) :, columns]
    before = (
        observed if graph.reference is None else graph.reference[len(graph.entities) :, columns]
    )
    told = graph.evidence.sum() + graph.reverts.sum() + graph.stale.sum()
    score = np.where(observed == before, 0.1, 0.5 + 0.4 / (1 + told))
    return Scores("test", graph.facts, PARAMETERS, np.where(observed == -1, np.nan, score))


def observation(case: int) -> Observation:
    made = CASES[case]
    assert made.baseline
    state = forward(build(*made.baseline), True)
    wanted = Intents(made.intents, intents.derive(state, 40))
    return Observation(
        *(made.entities, made.facts, wanted, Reference(*made.baseline)),
        always_compare_med=True,
        network="net",
    )


Change = Callable[[Observation, random.Random], Observation]


def values(seen: Observation, rng: random.Random) -> Observation:
    other = redrawn(seen.facts, rng.choice([1, 1, 3]), rng)
    return replace(seen, facts=faults.with_values(seen.facts, other))


def restored(seen: Observation, rng: random.Random) -> Observation:
    reference = {fact.key: fact for fact in seen.reference.facts} if seen.reference else {}
    some = {fact.key for fact in rng.sample(list(seen.facts), len(seen.facts) // 2)}
    facts = (reference.get(f.key, f) if f.key in some else f for f in seen.facts)
    return replace(seen, facts=tuple(facts))


def gone(seen: Observation, rng: random.Random) -> Observation:
    left = list(seen.facts)
    del left[rng.randrange(len(left))]
    return replace(seen, facts=tuple(left))


def approved(seen: Observation, rng: random.Random) -> Observation:
    facts = restored(seen, rng).facts if rng.random() < 0.5 else seen.facts
    return replace(seen, reference=Reference(seen.entities, facts, rng.random() < 0.8))


def unapproved(seen: Observation, _: random.Random) -> Observation:
    return replace(seen, reference=None)


def other_intents(seen: Observation, rng: random.Random) -> Observation:
    some = tuple(rng.sample(seen.wanted.stated, len(seen.wanted.stated) // 2))
    return replace(seen, wanted=Intents(some, seen.wanted.derived[::2]))


def stale(seen: Observation, rng: random.Random) -> Observation:
    return replace(seen, stale=frozenset(fact.key for fact in rng.sample(list(seen.facts), 3)))


def reported(seen: Observation, rng: random.Random) -> Observation:
    names = [[e.id for e in seen.entities if e.kind == kind] for kind in ("router", "network")]
    args = rng.choice(names[0]), rng.choice(names[1]), rng.choice(names[0])
    return replace(seen, facts=(*seen.facts, Fact("fwd", args)))


def other_decision(seen: Observation, _: random.Random) -> Observation:
    return replace(seen, always_compare_med=not seen.always_compare_med)


CHANGES: Sequence[Change] = (
    *(values, values, values, restored, gone, approved, unapproved, other_intents, stale),
    *(reported, other_decision),
)


def arrays(graph: Graph) -> list[object]:
    tables = (
        graph.features,
        graph.reference,
        graph.evidence,
        graph.reverts,
        graph.adoptions,
        graph.edges,
        graph.stale,
    )
    return [None if table is None else table.tolist() for table in tables]


def content(found: Diagnosis) -> tuple[object, ...]:
    return list(found.values), found.proofs, found.broken, found.differences, found.lost


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, len(CASES) - 1),
    st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_each_state_is_known_as_if_it_were_the_first(
    case: int, changes: Sequence[Change], rng: random.Random
) -> None:
    seen = observation(case)
    last: Known | None = follow(seen, None, detector, NO_HURRY)[1]
    for change in changes:
        seen = change(seen, rng)
        found, last = follow(seen, last, detector, NO_HURRY)
        anew, scratch = follow(seen, None, detector, NO_HURRY)
        assert last.graph.facts == scratch.graph.facts
        assert arrays(last.graph) == arrays(scratch.graph)
        assert last.simulated.bench.held == scratch.simulated.bench.held
        assert content(found) == content(anew)


def test_other_values_are_followed_and_nothing_is_built_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, rng = Here(detector, "test"), random.Random("follow")
    seen = observation(0)
    here(seen, NO_HURRY)
    monkeypatch.setattr(known, "build", lambda *_: pytest.fail("built anew"))
    monkeypatch.setattr(known, "assemble", lambda *_: pytest.fail("assembled anew"))
    for _ in range(3):
        seen = values(seen, rng)
        here(seen, NO_HURRY)


def test_without_room_nothing_is_remembered_and_the_answer_is_the_same() -> None:
    small, large = Here(detector, "small", room=1), Here(detector, "large")
    seen, rng = observation(1), random.Random("room")
    for _ in range(3):
        seen = values(seen, rng)
        assert content(small(seen, NO_HURRY)) == content(large(seen, NO_HURRY))
    assert small.known.get("net") is None
    assert large.known.taken > 0


@pytest.mark.parametrize("change", [values, gone])
def test_the_last_state_is_gone_when_the_next_is_scored(change: Change) -> None:
    """Each may be as large as memory allows for one."""
    left: list[weakref.ref[Known]] = []

    def looking(graph: Graph) -> Scores:
        assert not [last for last in left if last()]
        return detector(graph)

    here, seen, rng = Here(looking, "test"), observation(0), random.Random("gone")
    for _ in range(3):
        here(seen, NO_HURRY)
        last = here.known.get("net")
        assert last is not None
        left.append(weakref.ref(last))
        del last
        seen = change(seen, rng)
