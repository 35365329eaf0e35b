"""Reverts tell which changed value broke what, checked against simulation from scratch."""

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Fact, Revert
from gsid_service.simulate import faults, intents
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, changed, reverts
from tests.simulate.test_forwarding import link, route, square, state


def test_the_wrong_value_is_the_one_whose_revert_repairs() -> None:
    facts = square(near=9, med=5)  # the weight moves R1's traffic, the med nobody's
    wanted = (Fact("fwd", ("R1", "N", "R0")), Fact("fwd", ("R2", "N", "R0")))
    assert reverts(Bench(state(*facts), facts, wanted), facts, square()) == {
        (link("R0", "R1", 9).key, "ospf_weight"): Revert(1, 0, moves=2, asked=1),
        (route("B@R3").key, "med"): Revert(0, 0, 0, 0),
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
    case = SPLITS["operations-standard"].case("reverts", 1)
    assert case.baseline
    observed = forward(build(case.entities, case.facts), always_compare_med=True)
    found = reverts(Bench(observed, case.facts, case.intents), case.facts, case.baseline[1])
    assert found
    for key, parameter, value in changed(case.facts, case.baseline[1]):
        facts = faults.with_values(case.facts, {(key, parameter): value})
        after = forward(build(case.entities, facts), always_compare_med=True)
        outcomes = [tuple(intents.satisfied(i, s) for s in (observed, after)) for i in case.intents]
        assert found[key, parameter] == Revert(
            outcomes.count((False, True)),
            outcomes.count((True, False)),
            len(moves := [*map(tuple, moved(observed, after).tolist())]),
            sum(_passes(intent, observed, moves) for intent in case.intents),
        )


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
