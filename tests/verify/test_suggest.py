"""Where nobody approved a value, or the others changed without it, siblings have one to suggest."""

from collections.abc import Sequence

from gsid_service.records import Fact, FactKey, Intents
from gsid_service.verify.suggest import Siblings, counted, remedy, suggest
from tests.verify.test_repair import AT_A, AT_B, bench, facts


def test_the_sibling_s_value_that_repairs_is_suggested() -> None:
    upon, observed = bench(at_a=80, at_b=100), Siblings(facts(at_a=80, at_b=100))
    assert suggest(upon, observed, AT_A, "local_pref") == 100
    assert suggest(upon, observed, AT_B, "local_pref") == 80


def test_nothing_is_suggested_where_no_sibling_has_another_value() -> None:
    upon, observed = bench(80, 80, Intents()), Siblings(facts(80, 80))
    assert suggest(upon, observed, AT_A, "local_pref") is None
    assert suggest(upon, observed, FactKey("ebgp", ("A", "AS1@A")), "local_pref") is None


def test_a_remedy_repairs_more_than_it_breaks() -> None:
    upon, observed = bench(at_a=80, at_b=100), Siblings(facts(at_a=80, at_b=100))
    assert remedy(upon, observed, AT_A, "local_pref") == 100
    assert remedy(upon, observed, AT_A, "med") is None
    right = bench(at_a=200, at_b=100)
    assert remedy(right, Siblings(facts(at_a=200, at_b=100)), AT_A, "local_pref") is None


def link(one: str, other: str, cost: int) -> Fact:
    return Fact("connected", (one, other), {"ospf_weight": cost})


def left_out(links: Sequence[Fact], changed: Sequence[Fact]) -> int | None:
    values = counted((fact.key, "ospf_weight", 1) for fact in changed)
    return Siblings(links).left_out(links[0].key, "ospf_weight", values)


def test_a_link_that_was_left_out_of_a_drain_is_expected_to_be_as_the_others() -> None:
    links = [link("A", "B", 5), link("A", "C", 31), link("D", "A", 31), link("B", "E", 7)]
    assert left_out(links, links[:3]) == 31
    assert left_out(links, links[:2]) is None  # one link alone is no drain
    assert left_out([*links, link("A", "F", 9)], links[:3]) is None  # nor is it, where one stays


def test_a_link_that_is_as_the_others_was_not_left_out() -> None:
    links = [link("A", "B", 31), link("A", "C", 31), link("D", "A", 31)]
    assert left_out(links, links) is None
