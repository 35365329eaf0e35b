"""Sampled intents hold in the design they come from; broken ones are recognised."""

import random

import pytest

from gsid_service.evaluate.splits import DATA_SETS
from gsid_service.records import Entity, Fact
from gsid_service.simulate import designs, intents
from gsid_service.simulate.cases import Case
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from tests.simulate.test_forwarding import square, state


def drawn(name: str, seed: int) -> tuple[Forwarding, tuple[Fact, ...]]:
    data_set = DATA_SETS[name]
    rng = random.Random(f"{name} {seed}")
    _, forwarding = designs.draw(data_set.topology(rng), data_set.size, rng)
    return forwarding, intents.sample(forwarding, data_set.size.intents, rng)


@pytest.mark.parametrize("name", sorted(DATA_SETS))
def test_all_sampled_intents_hold_in_the_clean_design(name: str) -> None:
    for seed in range(20):
        forwarding, sampled = drawn(name, seed)
        assert all(intents.satisfied(intent, forwarding) is True for intent in sampled)


@pytest.mark.parametrize("name", sorted(DATA_SETS))
def test_the_amounts_are_the_design_s_and_half_are_negated(name: str) -> None:
    amounts = DATA_SETS[name].size.intents
    for seed in range(10):
        forwarding, sampled = drawn(name, seed)
        assert len({i.key for i in sampled}) == len(sampled)
        networks = len(forwarding.plane.networks)
        expected = {
            "fwd": tuple(networks * n for n in amounts.fwd_per_network),
            "reachable": tuple(networks * n for n in amounts.reachable_per_network),
            "traffic_isolation": amounts.isolation,
        }
        for predicate, (fewest, most) in expected.items():
            found = [i for i in sampled if i.predicate == predicate]
            assert fewest <= len(found) <= most
            negated = sum(not i.holds for i in found)
            slack = 1 if predicate == "traffic_isolation" else networks
            assert abs(len(found) - 2 * negated) <= slack


CASES = [
    (Fact("fwd", ("R1", "N", "R0")), True),
    (Fact("fwd", ("R1", "N", "R3")), False),
    (Fact("fwd", ("R1", "N", "R3"), {}, False), True),
    (Fact("fwd", ("R3", "N", "R2")), True),  # the second of two equal next hops
    (Fact("fwd", ("R0", "N", "A@R0")), True),
    (Fact("reachable", ("R3", "N", "R2")), True),
    (Fact("reachable", ("R3", "N", "A@R0")), True),
    (Fact("reachable", ("R3", "N", "B@R3")), False),
    (Fact("reachable", ("R0", "N", "R0")), True),
    (Fact("reachable", ("R1", "N", "R2"), {}, False), True),
    (Fact("fwd", ("R9", "N", "R0")), False),  # not there: forwards nothing
    (Fact("reachable", ("R1", "N9", "R0")), False),
    (Fact("traffic_isolation", ("R1", "R0", "N", "N9")), True),
]


@pytest.mark.parametrize(("intent", "expected"), CASES, ids=lambda value: str(value)[:60])
def test_single_intents_on_the_square(intent: Fact, expected: bool) -> None:
    assert intents.satisfied(intent, state(*square())) is expected


def test_a_broken_intent_is_listed() -> None:
    wanted = [Fact("fwd", ("R0", "N", "A@R0")), Fact("reachable", ("R1", "N", "R0"))]
    assert intents.broken(wanted, state(*square())) == []
    assert intents.broken(wanted, state(*square(local_pref=300))) == wanted


def test_a_network_without_one_outcome_says_nothing_of_its_intents() -> None:
    wanted = [
        Fact("fwd", ("RR1", "N", "A")),
        Fact("reachable", ("RR1", "N", "A")),
        Fact("traffic_isolation", ("RR1", "RR2", "N", "N")),
    ]
    forwarding = state_of(disputed())
    assert forwarding.by_name() == {"N": None}
    assert [intents.satisfied(intent, forwarding) for intent in wanted] == [None] * 3


def state_of(case: Case) -> Forwarding:
    return forward(build(case.entities, case.facts))


def disputed() -> Case:
    """Two reflectors that each prefer the other's client."""
    kinds = {"C1": "router", "C2": "router", "RR1": "route_reflector", "RR2": "route_reflector"}
    entities = [Entity(name, kind) for name, kind in kinds.items()]
    entities += [Entity("A", "external_as"), Entity("B", "external_as"), Entity("N", "network")]
    weights = {("RR1", "C1"): 9, ("RR1", "C2"): 1, ("RR2", "C1"): 1, ("RR2", "C2"): 9}
    facts = [Fact("connected", ends, {"ospf_weight": w}) for ends, w in weights.items()]
    sessions = [("C1", "RR1"), ("C2", "RR2"), ("RR1", "RR2")]
    facts += [Fact("ibgp", session) for session in sessions]
    facts += [Fact("ebgp", ("C1", "A")), Fact("ebgp", ("C2", "B"))]
    facts += [Fact("bgp_route", (peer, "N"), {"as_path_length": 1}) for peer in "AB"]
    return Case("dispute", tuple(entities), tuple(facts), ())
