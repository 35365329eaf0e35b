"""A diagnosis: scores, raised by what a revert repairs, and the proof of what matters."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from gsid_service.diagnose.diagnosis import Diagnosis, Limits, diagnose
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.records import Fact, FactKey, Graph, Intents, Move, Scores
from gsid_service.schema import SCHEMA
from tests.verify.test_repair import AT_A, AT_B, BY_A, ENTITIES, facts

PARAMETERS = tuple(parameter.name for parameter in SCHEMA.monitored)
LOCAL_PREF = PARAMETERS.index("local_pref")


class Watching:
    """Suspects the values it is told to, and remembers the graphs that it saw."""

    def __init__(self, **suspicion: float) -> None:
        self.suspicion = suspicion  # by peer, the @ as an underscore
        self.seen: list[Graph] = []

    def __call__(self, graph: Graph) -> Scores:
        self.seen.append(graph)
        table = np.full((len(graph.facts), len(PARAMETERS)), np.nan)
        for row, key in enumerate(graph.facts):
            if key.predicate == "bgp_route":
                table[row] = 0.01
                table[row, PARAMETERS.index("ospf_weight")] = np.nan
                table[row, LOCAL_PREF] = self.suspicion.get(key.args[0].replace("@", "_"), 0.01)
            elif key.predicate == "connected":
                table[row, PARAMETERS.index("ospf_weight")] = 0.01
        return Scores("watching", graph.facts, PARAMETERS, table)


def seen(at_a: int, at_b: int, *reported: Fact, wanted: Intents | None = None) -> Observation:
    observed = (*facts(at_a, at_b), *reported)
    wanted = Intents((BY_A,)) if wanted is None else wanted
    return Observation(ENTITIES, observed, wanted, Reference(ENTITIES, facts(200, 100)))


def score(found: Diagnosis, key: FactKey) -> float:
    return next(v.score for v in found.values if v.slot == (key, "local_pref"))


def test_of_a_quiet_network_nothing_is_proved() -> None:
    found = diagnose(seen(200, 100), Watching())
    assert found.proofs == {}
    assert found.broken == []
    assert next(iter(found.values)).score == 0.01
    assert found.seconds.keys() == {"simulate", "assemble", "score", "verify"}


def test_a_revert_that_repairs_raises_the_score() -> None:
    found = diagnose(seen(80, 100), Watching(AS1_A=0.5))
    assert score(found, AT_A) > 0.7
    (proof,) = found.proofs.values()
    assert [broken.intent for broken in proof.broken] == [BY_A]
    assert found.broken == [BY_A]


def test_values_that_hide_each_other_are_proved_together() -> None:
    found = diagnose(seen(80, 300), Watching(AS1_A=0.8, AS2_B=0.8))
    proof = found.proofs[AT_A, "local_pref"]
    assert [t.fact for t in proof.together] == [AT_B]
    assert proof.moved


def test_without_time_the_proof_says_so() -> None:
    ticks = itertools.count()
    found = diagnose(seen(80, 100), Watching(AS1_A=0.9), Limits(seconds=0.5), lambda: next(ticks))
    assert [proof.verified for proof in found.proofs.values()] == [False]
    assert score(found, AT_A) == 0.9


def test_a_stale_value_is_nobody_s_suspect() -> None:
    stale = replace(seen(80, 100), stale=frozenset({AT_A}))
    assert diagnose(stale, Watching(AS1_A=0.4)).proofs == {}


@pytest.mark.parametrize("with_reference", [True, False])
def test_a_value_that_nobody_approved_has_a_suggestion(with_reference: bool) -> None:
    known = Reference(ENTITIES, [f for f in facts(200, 100) if f.key != AT_A])
    fresh = replace(seen(80, 100), reference=known if with_reference else None)
    found = diagnose(fresh, Watching(AS1_A=0.8))
    value = next(v for v in found.values if v.slot == (AT_A, "local_pref"))
    assert (value.observed, value.approved, value.expected) == (80, None, 100)
    assert (AT_A, "local_pref") in found.proofs


def test_a_value_that_nobody_approved_is_doubted_sooner_where_intents_are_broken() -> None:
    known = Reference(ENTITIES, [f for f in facts(200, 100) if f.key != AT_A])
    broken = replace(seen(80, 100), reference=known)
    assert score(diagnose(broken, Watching(AS1_A=0.3)), AT_A) > 0.5
    whole = replace(broken, wanted=Intents())
    assert score(diagnose(whole, Watching(AS1_A=0.3)), AT_A) == 0.3


@pytest.mark.parametrize(
    ("suspicion", "expected"), [(0.8, 100), (0.5, 80)], ids=["certain", "in doubt"]
)
def test_a_mistake_upon_a_legitimate_change_has_a_suggestion_that_repairs(
    suspicion: float, expected: int
) -> None:
    changed_since = replace(seen(50, 100), reference=Reference(ENTITIES, facts(80, 100)))
    found = diagnose(changed_since, Watching(AS1_A=suspicion))
    value = next(v for v in found.values if v.slot == (AT_A, "local_pref"))
    assert (value.approved, value.expected) == (80, expected)
    proof = found.proofs[AT_A, "local_pref"]
    assert [b.intent for b in proof.broken] == ([BY_A] if expected == 100 else [])


def test_reported_forwarding_is_compared_and_not_scored() -> None:
    detector = Watching()
    reports = Fact("fwd", ("RR", "N", "B")), Fact("fwd", ("A", "N", "AS1@A"))
    found = diagnose(seen(200, 100, *reports), detector)
    assert found.differences == [Move("RR", "N", "A", "B")]
    assert not set(detector.seen[0].facts) & {fact.key for fact in reports}
