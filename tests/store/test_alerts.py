"""Alerts and their events go round both databases, and pages show what is asked for."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gsid_service.records import (
    Alert,
    AlertEvent,
    BrokenIntent,
    Ending,
    Fact,
    FactKey,
    Move,
    Severity,
    Status,
    Unsettled,
)
from gsid_service.store import alerts, snapshots
from gsid_service.store.database import Database
from tests.store.making import NOW

SLOT = FactKey("bgp_route", ("AS65101@R3", "203.0.113.0/24"))
OPENED = AlertEvent(NOW, "opened", "the score 0.97 is not below 0.8")
FULL = Alert(
    id="",
    network="net",
    fact=SLOT,
    parameter="local_pref",
    status=Status.ACKNOWLEDGED,
    severity=Severity.CRITICAL,
    score=1 / 3,
    observed=2**32 - 1,
    expected=None,
    snapshot_id="s7",
    collector="rr1 – 東京",
    first_seen=NOW,
    last_seen=NOW + timedelta(microseconds=1),
    broken_intents=(
        BrokenIntent(Fact("reachable", ("R1", "203.0.113.0/24", "R3")), derived=True),
        BrokenIntent(Fact("fwd", ("R1", "203.0.113.0/24", "R2"), holds=False), derived=False),
    ),
    moved=(Move("R1", "203.0.113.0/24", "R2", None), Move("R2", "203.0.113.0/24", None, "R3, R4")),
    reverting_repairs=2,
    reverting_breaks=1,
    ending=Ending.GONE,
    unsettled=(Unsettled("198.51.100.0/24", now=True),),
    flapping=True,
    verdict="false",
    events=(OPENED, AlertEvent(NOW, "acknowledged", "mine", "ann"), OPENED),
)


def saved(database: Database, alert: Alert, known_events: int = 0) -> Alert:
    with database.write() as connection:
        snapshots.announce(connection, [alert.network], NOW)
        return alerts.save(connection, alert, known_events)


def found(database: Database, alert_id: str) -> Alert | None:
    number = alerts.number_of(alert_id)
    assert number is not None
    with database.read() as connection:
        return alerts.find(connection, number)


def page(database: Database, **asked: Any) -> list[str]:
    wanted = {"before": None, "limit": 9, "networks": None, "statuses": (), "severities": ()}
    with database.read() as connection:
        return [a.network for a in alerts.page(connection, **wanted | asked)]


def test_an_alert_goes_round_unchanged(database: Database) -> None:
    kept = saved(database, FULL)
    assert replace(kept, id="") == FULL
    assert found(database, kept.id) == kept
    with database.read() as connection:
        assert alerts.of_network(connection, "net") == {(SLOT, "local_pref"): kept}
        assert alerts.of_network(connection, "other") == {}
        assert alerts.find(connection, 10**17) is None


def test_a_saved_alert_is_changed_in_place_and_its_events_only_grow(database: Database) -> None:
    kept = saved(database, FULL)
    closed = AlertEvent(NOW + timedelta(hours=1), "resolved", "as expected")
    after = replace(kept, status=Status.RESOLVED, expected=0, moved=()).with_event(closed)
    assert saved(database, after, len(kept.events)).id == kept.id
    assert found(database, kept.id) == after
    assert len(page(database)) == 1


def test_pages_filter_and_go_back_in_time(database: Database) -> None:
    firing = replace(FULL, status=Status.FIRING, severity=Severity.MINOR, network="b")
    for alert in (FULL, firing, replace(firing, network="c", severity=Severity.MAJOR)):
        saved(database, alert)
    assert page(database) == ["c", "b", "net"]
    assert page(database, limit=2) == ["c", "b"]
    assert page(database, statuses=["firing"]) == ["c", "b"]
    assert page(database, severities=["minor", "critical"]) == ["b", "net"]
    assert page(database, networks=["net", "c"], statuses=["firing", "acknowledged"]) == [
        "c",
        "net",
    ]
    assert page(database, networks=[]) == []
    with database.read() as connection:
        first = alerts.page(connection, None, 1, None, (), ())
    assert page(database, before=alerts.number_of(first[0].id)) == ["b", "net"]
    assert first[0].events == ()


@pytest.mark.parametrize(
    ("text", "number"),
    [("a17", 17), ("", None), ("a", None), ("b17", None), ("a-1", None), ("a1e3", None),
     ("a" + "9" * 19, None), ("a1 ", None)],
)  # fmt: skip
def test_an_id_is_a_letter_and_a_number(text: str, number: int | None) -> None:
    assert alerts.number_of(text) == number


def test_alerts_on_facts_that_read_alike_are_kept_apart(database: Database) -> None:
    """An id may have a comma in it."""
    for args in (("a, b", "c"), ("a", "b, c")):
        saved(database, replace(FULL, fact=FactKey("connected", args), parameter="ospf_weight"))
    assert len(page(database)) == 2
