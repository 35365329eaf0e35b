"""Where nobody approved a value, the siblings have one to suggest."""

from gsid_service.records import FactKey, Intents
from gsid_service.verify.suggest import Siblings, remedy, suggest
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
