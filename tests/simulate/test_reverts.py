"""Reverts tell which changed value broke what, checked against simulation from scratch."""

import random

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Effect, Fact
from gsid_service.simulate import faults, intents
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import AT_MOST, WORK, Bench, changed, reverts, try_adoptions
from tests.simulate.test_forwarding import link, route, square, state


def test_the_wrong_value_is_the_one_whose_revert_repairs() -> None:
    facts = square(near=9, med=5)  # the weight moves R1's traffic, the med nobody's
    wanted = (Fact("fwd", ("R1", "N", "R0")), Fact("fwd", ("R2", "N", "R0")))
    assert reverts(Bench(state(*facts), facts, wanted), facts, square()) == {
        (link("R0", "R1", 9).key, "ospf_weight"): Effect(1, 0, moves=2, asked=1, rivals=0, ahead=0),
        (route("B@R3").key, "med"): Effect(0, 0, 0, 0, 0, 0),
    }


def test_a_revert_that_would_break_what_the_change_was_made_for() -> None:
    facts = square(near=9)
    wanted = (Fact("fwd", ("R1", "N", "R3")),)
    (found,) = reverts(Bench(state(*facts), facts, wanted), facts, square()).values()
    assert (found.repairs, found.breaks) == (0, 1)


def test_too_many_changes_are_not_tried() -> None:
    facts = square(near=9, med=5)
    assert reverts(Bench(state(*facts), facts), facts, square(), at_most=1) == {}
    everything = tuple(
        f._replace(params={p: v + 1 for p, v in f.params.items()}) if f.params else f for f in facts
    )
    assert reverts(Bench(state(*everything), everything), everything, facts) == {}


def test_new_facts_and_defaults_are_no_changes() -> None:
    facts = (*square(), link("R1", "R2", 4))
    assert list(changed(facts, square(med=0))) == []


def test_each_is_what_a_simulation_from_scratch_says() -> None:
    case = SPLITS["operations-standard"].case("reverts", 2)
    assert case.baseline
    observed = forward(build(case.entities, case.facts), always_compare_med=True)
    found = reverts(Bench(observed, case.facts, case.intents), case.facts, case.baseline[1])
    assert found
    repaired, gains = {}, {}
    for key, parameter, value in changed(case.facts, case.baseline[1]):
        facts = faults.with_values(case.facts, {(key, parameter): value})
        after = forward(build(case.entities, facts), always_compare_med=True)
        outcomes = [tuple(intents.satisfied(i, s) for s in (observed, after)) for i in case.intents]
        slot = key, parameter
        repaired[slot] = {i for i, told in enumerate(outcomes) if told == (False, True)}
        breaks = outcomes.count((True, False))
        gains[slot] = len(repaired[slot]) - breaks
        assert found[slot][:4] == (
            len(repaired[slot]),
            breaks,
            len(moves := [*map(tuple, moved(observed, after).tolist())]),
            sum(_passes(intent, observed, moves) for intent in case.intents),
        )
    for slot, mine in repaired.items():
        rivals = [s for s, theirs in repaired.items() if s != slot and mine & theirs]
        ahead = sum(gains[rival] >= gains[slot] for rival in rivals)
        assert (found[slot].rivals, found[slot].ahead) == (len(rivals), ahead)
    assert any(effect.rivals for effect in found.values())


def test_of_two_that_repair_the_same_the_one_that_repairs_more_is_ahead() -> None:
    facts = square(near=9)
    wanted = (Fact("fwd", ("R1", "N", "R0")), Fact("reachable", ("R3", "N", "R1")))
    less = (link("R1", "R3", 1).key, "ospf_weight", 9)  # R1 still turns to R3, and R3 away from R1
    more = (link("R0", "R1", 9).key, "ospf_weight", 1)
    found = try_adoptions(Bench(state(*facts), facts, wanted), [less, more])
    assert {slot: (e.rivals, e.ahead) for slot, e in found.items()} == {
        less[:2]: (1, 1),
        more[:2]: (1, 0),
    }


def test_a_wrong_value_breaks_what_the_approved_network_does() -> None:
    facts, approved = square(near=9, med=5), square()
    wanted = (Fact("fwd", ("R1", "N", "R0")), Fact("fwd", ("R2", "N", "R0")))
    observed = list(changed(approved, facts))
    assert try_adoptions(Bench(state(*approved), approved, wanted), observed) == {
        (link("R0", "R1", 1).key, "ospf_weight"): Effect(0, 1, moves=2, asked=1, rivals=0, ahead=0),
        (route("B@R3").key, "med"): Effect(0, 0, 0, 0, 0, 0),
    }


def test_an_observed_value_repairs_a_reference_that_is_wrong() -> None:
    """And that among more changes than reverts are tried with."""
    stale, facts = square(near=9), square(far=8, med=5)
    wanted = (Fact("fwd", ("R1", "N", "R0")),)
    found = try_adoptions(Bench(state(*stale), stale, wanted), list(changed(stale, facts)))
    assert found[link("R0", "R1", 9).key, "ospf_weight"] == Effect(
        1, 0, moves=2, asked=1, rivals=0, ahead=0
    )
    assert all(e.repairs == 0 for slot, e in found.items() if slot[0] != link("R0", "R1", 9).key)


def test_adoptions_in_a_large_network_are_bounded() -> None:
    case = SPLITS["standard"].case("reverts", 1)
    approved = forward(build(case.entities, case.facts), always_compare_med=True)
    bench = Bench(approved, case.facts)
    pairs = len(approved.plane.routers) * len(approved.plane.networks)
    (value, *_) = changed(case.facts, faults.inject(case.facts, 0.5, random.Random(1))[0])
    assert WORK // pairs > AT_MOST
    assert try_adoptions(bench, [value] * (WORK // pairs))
    assert not try_adoptions(bench, [value] * (1 + WORK // pairs))


def _passes(intent: Fact, state: Forwarding, moves: list[tuple[int, int]]) -> bool:
    """Whether traffic that an intent speaks of comes to a router where it would be moved."""
    source, networks = intents.traffic(intent)
    for network in networks:
        k, seen = state.plane.network_index[network], {state.plane.router_index[source]}
        while (
            new := {n for r in seen if r < len(state.plane.routers) for n in state.next_hops(k, r)}
            - seen
        ):
            seen |= new
        if any((k, router) in moves for router in seen):
            return True
    return False
