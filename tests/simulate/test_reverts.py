"""Reverts tell which changed value broke what, checked against simulation from scratch."""

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Fact, Revert
from gsid_service.simulate import faults, intents
from gsid_service.simulate.forwarding import forward, moved
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import changed, reverts
from tests.simulate.test_forwarding import link, route, square, state


def test_the_wrong_value_is_the_one_whose_revert_repairs() -> None:
    facts = square(near=9, med=5)  # the weight moves R1's traffic, the med nobody's
    wanted = (Fact("fwd", ("R1", "N", "R0")), Fact("fwd", ("R2", "N", "R0")))
    assert reverts(facts, square(), wanted, state(*facts)) == {
        (link("R0", "R1", 9).key, "ospf_weight"): Revert(repairs=1, breaks=0, moves=2),
        (route("B@R3").key, "med"): Revert(0, 0, 0),
    }


def test_a_revert_that_would_break_what_the_change_was_made_for() -> None:
    facts = square(near=9)
    wanted = (Fact("fwd", ("R1", "N", "R3")),)
    (found,) = reverts(facts, square(), wanted, state(*facts)).values()
    assert (found.repairs, found.breaks) == (0, 1)


def test_too_many_changes_are_not_tried() -> None:
    facts = square(near=9, med=5)
    assert reverts(facts, square(), (), state(*facts), at_most=1) == {}
    everything = tuple(
        f._replace(params={p: v + 1 for p, v in f.params.items()}) if f.params else f for f in facts
    )
    assert reverts(everything, facts, (), state(*everything)) == {}


def test_new_facts_and_defaults_are_no_changes() -> None:
    facts = (*square(), link("R1", "R2", 4))
    assert list(changed(facts, square(med=0))) == []


def test_each_is_what_a_simulation_from_scratch_says() -> None:
    case = SPLITS["operations-standard"].case("reverts", 1)
    assert case.baseline
    observed = forward(build(case.entities, case.facts), always_compare_med=True)
    found = reverts(case.facts, case.baseline[1], case.intents, observed)
    assert found
    for key, parameter, value in changed(case.facts, case.baseline[1]):
        facts = faults.with_values(case.facts, {(key, parameter): value})
        after = forward(build(case.entities, facts), always_compare_med=True)
        outcomes = [tuple(intents.satisfied(i, s) for s in (observed, after)) for i in case.intents]
        assert found[key, parameter] == Revert(
            outcomes.count((False, True)),
            outcomes.count((True, False)),
            len(moved(observed, after)),
        )
