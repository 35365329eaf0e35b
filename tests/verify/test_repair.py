"""The search finds the smallest set of reverts that repairs the most, also where errors hide."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Entity, Fact, FactKey, Intents
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, changed
from gsid_service.verify.proof import prove
from gsid_service.verify.repair import Suspect, search

# A - RR - B; a peer at A and one at B announce N, and traffic is to leave by A.
ENTITIES = (
    *(Entity(name, "router") for name in "AB"),
    Entity("RR", "route_reflector"),
    *(Entity(f"AS{n}@{r}", "external_as", n) for n, r in ((1, "A"), (2, "B"))),
    Entity("N", "network"),
)
AT_A, AT_B = (FactKey("bgp_route", (peer, "N")) for peer in ("AS1@A", "AS2@B"))
BY_A = Fact("reachable", ("RR", "N", "A"))


def facts(at_a: int, at_b: int) -> list[Fact]:
    return [
        *(Fact("connected", (r, "RR"), {"ospf_weight": 10}) for r in "AB"),
        *(Fact("ibgp", (r, "RR")) for r in "AB"),
        *(Fact("ebgp", ends) for ends in (("A", "AS1@A"), ("B", "AS2@B"))),
        Fact(*AT_A, {"local_pref": at_a, "as_path_length": 1}),
        Fact(*AT_B, {"local_pref": at_b, "as_path_length": 1}),
    ]


def bench(at_a: int, at_b: int, wanted: Intents = Intents((BY_A,))) -> Bench:  # noqa: B008
    observed = facts(at_a, at_b)
    return Bench(forward(build(ENTITIES, observed)), observed, *wanted)


def suspects(a: float = 0.5, b: float = 0.5) -> list[Suspect]:
    """A's should be 200, B's 100."""
    return [Suspect(AT_A, "local_pref", 200, a), Suspect(AT_B, "local_pref", 100, b)]


def test_the_value_that_broke_it_is_put_back_and_nothing_else() -> None:
    found = search(bench(at_a=80, at_b=100), suspects())
    assert [revert.suspect.fact for revert in found.reverts] == [AT_A]
    assert found.reverts[0].worth > 0


def test_two_values_that_hide_each_other_are_found_as_a_pair() -> None:
    upon = bench(at_a=80, at_b=300)
    found = search(upon, suspects())
    assert not found.alone[AT_A, "local_pref"].repairs
    assert not found.alone[AT_B, "local_pref"].repairs
    assert {revert.suspect.fact for revert in found.reverts} == {AT_A, AT_B}
    a, b = suspects()
    hidden = prove(upon, a, [a, b])
    assert [t.fact for t in hidden.together] == [AT_B]
    assert [broken.intent for broken in hidden.broken] == [BY_A]


def test_of_two_that_would_do_the_more_suspicious_is_put_back() -> None:
    for likely, first in (((0.9, 0.1), AT_A), ((0.1, 0.9), AT_B)):
        # Either revert repairs: 80 -> 200 beats 150, and 150 -> 70 loses to 80.
        pair = [Suspect(AT_A, "local_pref", 200, likely[0])]
        pair.append(Suspect(AT_B, "local_pref", 70, likely[1]))
        found = search(bench(at_a=80, at_b=150), pair)
        assert [revert.suspect.fact for revert in found.reverts] == [first]


def test_what_the_other_one_explains_is_suspected_less() -> None:
    pair = [Suspect(AT_A, "local_pref", 200, 0.9), Suspect(AT_B, "local_pref", 70, 0.8)]
    ((suspect, worth),) = search(bench(at_a=80, at_b=150), pair).explained
    assert suspect.fact == AT_B
    assert worth < 0 < suspect.prior


def test_what_repairs_something_else_besides_is_not_explained() -> None:
    both = Intents((BY_A, Fact("reachable", ("RR", "N", "AS2@B"), holds=False)))
    found = search(bench(at_a=80, at_b=300, wanted=both), suspects())
    assert {revert.suspect.fact for revert in found.reverts} == {AT_A, AT_B}
    assert found.explained == ()


def test_a_derived_intent_explains_nothing() -> None:
    pair = [Suspect(AT_A, "local_pref", 200, 0.9), Suspect(AT_B, "local_pref", 70, 0.8)]
    assert search(bench(80, 150, Intents((), (BY_A,))), pair).explained == ()


def test_a_revert_that_is_hardly_suspicious_and_breaks_as_much_is_left_alone() -> None:
    wanted = Intents((BY_A, Fact("fwd", ("RR", "N", "B"))))
    assert search(bench(80, 100, wanted), suspects(a=0.05)).reverts == ()


def test_derived_intents_alone_convict_nothing_that_is_not_suspicious() -> None:
    wanted = Intents((), (BY_A,))
    assert search(bench(80, 100, wanted), suspects(a=0.05)).reverts == ()
    assert len(search(bench(80, 100, wanted), suspects(a=0.9)).reverts) == 1


def test_without_time_the_least_suspicious_are_named_as_not_tried() -> None:
    turns = itertools.count()
    found = search(bench(80, 100), suspects(a=0.9, b=0.2), lambda: next(turns) < 1)
    assert list(found.alone) == [(AT_A, "local_pref")]
    assert [suspect.fact for suspect in found.untried] == [AT_B]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_reverts_break_nothing_for_nothing(index: int) -> None:
    """What the search puts back leaves fewer stated intents broken than before, never more."""
    case = SPLITS["operations-standard"].case("repair", index % 40)
    assert case.baseline
    observed = forward(build(case.entities, case.facts), always_compare_med=True)
    upon = Bench(observed, case.facts, case.intents)
    tried = [Suspect(*value, 0.4) for value in changed(case.facts, case.baseline[1])]
    found = search(upon, tried)
    assert upon.held == Bench(observed, case.facts, case.intents).held, (
        "the bench is left as it was"
    )
    together = upon.attempt(*(revert.suspect.value for revert in found.reverts))
    assert together is not None
    assert len(together.repairs) > len(together.breaks) or not found.reverts
    assert len({revert.suspect.slot for revert in found.reverts}) == len(found.reverts)
