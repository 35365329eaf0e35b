"""Silences: which alerts matchers fit, which are too broad, and the status that they give."""

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.notices import Label, Matcher
from gsid_service.notify.batch import Situation
from gsid_service.notify.silence import active, fits, is_broad, with_status
from gsid_service.records import Status
from tests.notify.making import HOUR, SECOND, alert, silence, window
from tests.store.making import NOW


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("alert", "a1", "a2"),
        ("network", "net", "nets"),
        ("predicate", "bgp_route", "connected"),
        ("fact", "bgp_route(AS65101@R1, 203.0.113.0/24)", "bgp_route(AS65101@R1)"),
        ("entity", "203.0.113.0/24", "203.0.113.0"),
        ("parameter", "local_pref", "med"),
        ("severity", "critical", "major"),
        ("collector", "rr1", "rr2"),
    ],
)
def test_every_label_can_be_matched(name: str, value: str, other: str) -> None:
    assert name in get_args(Label)
    assert fits(Matcher(name, "=", value), alert())
    assert not fits(Matcher(name, "=", other), alert())


@settings(deadline=None)
@given(st.sampled_from(get_args(Label)), st.text(max_size=8))
def test_the_negation_of_a_matcher_fits_where_it_does_not(name: str, value: str) -> None:
    for plain, negated in (("=", "!="), ("~", "!~")):
        one = fits(Matcher(name, plain, value), alert())
        assert one != fits(Matcher(name, negated, value), alert())


@pytest.mark.parametrize(
    ("pattern", "found"), [("AS65101@*", True), ("*@R[2-9]", False), ("203.*", True), ("R?", False)]
)
def test_patterns_are_those_of_file_names(pattern: str, found: bool) -> None:
    assert fits(Matcher("entity", "~", pattern), alert()) == found


def test_all_matchers_must_fit_and_the_time_too() -> None:
    one = silence(("network", "=", "net"), ("severity", "=", "critical"))
    assert active([one], alert(), NOW) == one
    assert active([one], alert(), NOW - SECOND) is None
    assert active([one], alert(), NOW + HOUR) is None
    assert active([one], alert(network="other"), NOW) is None


@pytest.mark.parametrize(
    ("matchers", "broad"),
    [
        ([("alert", "=", "a1")], False),
        ([("fact", "=", "connected(R1, R2)")], False),
        ([("entity", "=", "R1")], False),
        ([("network", "=", "net"), ("parameter", "=", "med")], False),
        ([("network", "=", "net")], True),
        ([("network", "=", "net"), ("entity", "~", "*")], True),
        ([("entity", "~", "R*")], True),
        ([("alert", "!=", "a1")], True),
        ([("severity", "=", "critical")], True),
    ],
)
def test_what_names_too_little_is_broad(matchers: list[tuple[str, str, str]], broad: bool) -> None:
    assert is_broad(Matcher(*matcher) for matcher in matchers) == broad


def test_an_alert_is_silenced_by_a_silence_or_a_window_and_fires_again_after() -> None:
    for quiet in (Situation(NOW, silences=(silence(),)), Situation(NOW, windows=(window(),))):
        silenced = with_status(alert(), quiet)
        assert silenced.status is Status.SILENCED
        assert silenced.events[-1].what == "silenced"
        assert with_status(silenced, quiet) is silenced
        again = with_status(silenced, Situation(NOW))
        assert again.status is Status.FIRING
        assert again.events[-1].what == "no longer silenced"


def test_one_that_is_acknowledged_or_over_stays_so() -> None:
    for status in (Status.ACKNOWLEDGED, Status.RESOLVED):
        one = alert(status=status)
        assert with_status(one, Situation(NOW, silences=(silence(),))) is one
