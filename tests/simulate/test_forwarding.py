"""Next hops, walks and what moved, on networks small enough to follow by hand."""

from dataclasses import replace

import numpy as np

from gsid_service.records import Entity, Fact
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build

ROUTERS = [Entity(f"R{i}", "router") for i in range(4)]
ENTITIES = (
    *ROUTERS,
    Entity("RR", "route_reflector"),
    Entity("A@R0", "external_as", 65001),
    Entity("B@R3", "external_as", 65002),
    Entity("N", "network"),
)


def link(a: str, b: str, weight: int) -> Fact:
    return Fact("connected", (a, b), {"ospf_weight": weight})


def route(peer: str, **params: int) -> Fact:
    return Fact("bgp_route", (peer, "N"), {"as_path_length": 1, **params})


def square(near: int = 1, **params: int) -> tuple[Fact, ...]:
    """R0 - R1 - R3 and R0 - R2 - R3, the reflector beside R1; N behind R0 and R3."""
    return (
        *(link("R0", "R1", near), link("R0", "R2", 1), link("R1", "R3", 1), link("R2", "R3", 1)),
        link("R1", "RR", 1),
        *(Fact("ibgp", (router.id, "RR")) for router in ROUTERS),
        *(Fact("ebgp", ("R0", "A@R0")), Fact("ebgp", ("R3", "B@R3"))),
        *(route("A@R0", local_pref=200), route("B@R3", **params)),
    )


def state(*facts: Fact) -> Forwarding:
    return forward(build(ENTITIES, facts))


def test_next_hops_by_name() -> None:
    assert state(*square()).by_name() == {
        "N": {"R0": "A@R0", "R1": "R0", "R2": "R0", "R3": "R1", "RR": "R1"}
    }


def test_equal_costs_are_kept_as_a_set() -> None:
    equal = state(*square()).by_name(equal=True)["N"]
    assert equal is not None
    assert equal["R3"] == ["R1", "R2"]
    assert equal["R1"] == ["R0"]


def test_a_weight_is_one_direction_s_where_both_are_given() -> None:
    one_way = state(*square(near=9), link("R1", "R0", 1)).by_name()["N"]
    assert one_way is not None
    assert one_way["R1"] == "R0"
    assert one_way["R3"] == "R1"


def test_what_cannot_be_reached_is_said() -> None:
    cut = [f for f in square() if f.args not in {("R1", "RR"), ("R1", "R3"), ("R0", "R1")}]
    hops = state(*cut).by_name()["N"]
    assert hops == {"R0": "A@R0", "R1": None, "R2": None, "R3": "B@R3", "RR": None}


def test_a_network_without_a_route_is_unreachable_everywhere() -> None:
    facts = [f for f in square() if f.predicate != "bgp_route"]
    hops = state(*facts).by_name()["N"]
    assert hops is not None
    assert set(hops.values()) == {None}


def test_nothing_at_all() -> None:
    assert forward(build((), ())).by_name() == {}
    assert forward(build((Entity("N", "network"),), ())).by_name() == {"N": {}}


def test_defaults_stand_in_for_unset_values() -> None:
    preferred = state(*square(local_pref=201)).by_name()["N"]
    unset = state(*square()).by_name()["N"]
    assert preferred is not None
    assert unset is not None
    assert (preferred["R0"], unset["R0"]) == ("R1", "A@R0")


def test_walks_end_at_the_peer_and_reach_both_sides() -> None:
    forwarding = state(*square())
    names = forwarding.hop_names
    assert [names[h] for h in forwarding.walk(0, 3)] == ["R3", "R1", "R0", "A@R0"]
    assert {names[h] for h in forwarding.reached(0, 3)} == {"R3", "R1", "R2", "R0", "A@R0"}


def test_what_moved_is_every_set_that_changed() -> None:
    before, after = state(*square()), state(*square(near=2))
    assert len(moved(before, before)) == 0
    # R3 loses one of two equal next hops; its lowest-numbered one is no longer the same.
    assert moved(before, after).tolist() == [[0, 3]]
    lost_second = state(*[f for f in square() if f.args != ("R0", "R2")], link("R0", "R2", 9))
    assert [0, 3] in moved(before, lost_second).tolist()
    assert before.next_hop(0, 3) == lost_second.next_hop(0, 3)


def test_scaling_all_weights_changes_nothing() -> None:
    plane = build(ENTITIES, square(near=3))
    scaled = replace(plane, weights=plane.weights * 7)
    assert np.array_equal(forward(plane).hops([0]), forward(scaled).hops([0]))
