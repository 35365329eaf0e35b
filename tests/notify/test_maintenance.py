"""Maintenance windows: once or by a rule, in local time, and which alerts they are about."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.notices import Mode
from gsid_service.notify.batch import Note
from gsid_service.notify.maintenance import (
    BadRule,
    check_rule,
    covering,
    holds_back,
    next_start,
    open_until,
)
from tests.notify.making import HOUR, SECOND, alert, window
from tests.store.making import NOW


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_one_without_a_rule_opens_once() -> None:
    once = window()
    assert open_until(once, NOW - SECOND) is None
    assert next_start(once, NOW - SECOND) == NOW
    assert open_until(once, NOW) == NOW + HOUR
    assert open_until(once, NOW + HOUR) is None
    assert next_start(once, NOW) is None


def test_a_rule_keeps_its_local_time_when_the_clocks_change() -> None:
    """2 a.m. on Sundays in Berlin is 0 a.m. UTC in summer and 1 a.m. in winter."""
    weekly = window(
        starts_at=at("2026-10-18T00:00"),
        ends_at=at("2026-10-18T02:00"),
        rule="FREQ=WEEKLY;BYDAY=SU",
        timezone="Europe/Berlin",
    )
    assert open_until(weekly, at("2026-10-18T01:59")) == at("2026-10-18T02:00")
    assert open_until(weekly, at("2026-11-01T00:30")) is None
    assert open_until(weekly, at("2026-11-01T01:00")) == at("2026-11-01T03:00")
    assert next_start(weekly, at("2026-10-26T00:00")) == at("2026-11-01T01:00")
    assert open_until(weekly, at("2026-11-02T01:30")) is None


def test_a_rule_ends_where_it_says() -> None:
    daily = window(rule="FREQ=DAILY;UNTIL=20261117T235959")
    assert open_until(daily, NOW + timedelta(days=2)) is not None
    assert open_until(daily, NOW + timedelta(days=3)) is None
    assert next_start(daily, NOW + timedelta(days=3)) is None


@settings(deadline=None)
@given(
    st.sampled_from(["FREQ=DAILY", "FREQ=WEEKLY;INTERVAL=2", "FREQ=MONTHLY;BYDAY=1MO"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
    st.integers(0, 500 * 24 * 60),
)
def test_a_window_is_open_from_each_start_for_its_length(
    rule: str, timezone: str, minutes: int
) -> None:
    one = window(rule=rule, timezone=timezone)
    start = next_start(one, NOW + timedelta(minutes=minutes))
    assert start is not None
    assert open_until(one, start) == start + HOUR
    assert open_until(one, start + HOUR - SECOND) == start + HOUR
    assert open_until(one, start - SECOND) in {None, start - SECOND + HOUR}
    assert open_until(one, start + HOUR) is None


@pytest.mark.parametrize(
    ("about", "inside"),
    [
        ({}, True),
        ({"network": "net"}, True),
        ({"network": "other"}, False),
        ({"entity": "AS65101@R1"}, True),
        ({"entity": "R1"}, False),
        ({"parameter": "local_pref", "network": "net"}, True),
        ({"parameter": "med"}, False),
    ],
)
def test_it_is_about_a_network_an_entity_or_a_parameter(
    about: dict[str, str], inside: bool
) -> None:
    assert (covering([window(**about)], Note(alert()), NOW) is not None) == inside


def test_only_windows_that_hold_hold_back() -> None:
    both = [window(), window(mode=Mode.HOLD, network="net")]
    assert holds_back(both, "net", NOW) == both[1:]
    assert holds_back(both, "other", NOW) == []
    assert holds_back(both, "net", NOW + HOUR) == []


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ("", "FREQ"),
        ("FREQ=HOURLY", "FREQ"),
        ("FREQ=DAILY;COUNT=3", "COUNT"),
        ("FREQ=DAILY;BYMONTH=2", "BYMONTH"),
        ("FREQ=WEEKLY;BYDAY=XX", "RFC 5545"),
        ("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "never"),
        ("FREQ=DAILY;INTERVAL=x", "RFC 5545"),
        ("FREQ=DAILY;UNTIL=20261117T235959Z", "RFC 5545"),
        ("FREQ=DAILY\nRDATE:20261117T235959", "FREQ"),
        ("BYDAY=SU", "FREQ"),
        ("FREQ=WEEKLY;BYDAY=MO,TU", "never close"),
    ],
)
def test_what_is_not_a_rule_is_refused_with_a_reason(rule: str, named: str) -> None:
    with pytest.raises(BadRule, match=named):
        check_rule(rule, NOW, 30 * HOUR)


def test_days_of_a_weekend_may_touch() -> None:
    check_rule("FREQ=WEEKLY;BYDAY=SA,SU", NOW, 24 * HOUR)
