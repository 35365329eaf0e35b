"""Announced changes go round both databases unchanged, and are closed once."""

from dataclasses import replace
from datetime import timedelta

from gsid_service.records import Change, ChangeStatus, FactKey, Step
from gsid_service.store import changes, retention, snapshots
from gsid_service.store.database import Database
from tests.store.making import NOW

KEY = FactKey("bgp_route", ("AS65101@R3", "203.0.113.0/24"))
CHANGE = Change(
    id="",
    network="net",
    author="ann – 東京",
    announced_by="noc",
    announced_at=NOW,
    ticket="CHG-7",
    comment="two\nlines",
    begins_at=NOW,
    ends_at=NOW + timedelta(hours=1),
    steps=(
        Step(KEY, "local_pref", 200, 2**32 - 1),
        Step(KEY, None, 0, 1),
        Step(KEY, "med", None, 0),
    ),
)


def announced(database: Database, *wanted: Change) -> list[Change]:
    with database.write() as connection:
        snapshots.announce(connection, ("net", "other"), NOW)
        numbers = [changes.announce(connection, change) for change in wanted]
    return [
        replace(change, id=f"c{number}") for change, number in zip(wanted, numbers, strict=True)
    ]


def test_a_change_goes_round_unchanged(database: Database) -> None:
    (kept,) = announced(database, CHANGE)
    with database.read() as connection:
        assert changes.find(connection, "net", kept.id) == kept
        assert changes.find(connection, "other", kept.id) is None
        assert changes.find(connection, "net", "a1") is None
        assert changes.unclosed(connection, "net") == [kept]
        assert changes.count_unclosed(connection, "net") == 1


def test_it_is_closed_once(database: Database) -> None:
    (kept,) = announced(database, CHANGE)
    applying = replace(kept, status=ChangeStatus.APPLYING, observed=(200, None, 0))
    closed = replace(applying, status=ChangeStatus.CANCELLED, closed_at=NOW, cancelled_by="bob")
    with database.write() as connection:
        assert changes.save(connection, applying)
        assert changes.find(connection, "net", kept.id) == applying
        assert changes.save(connection, closed)
        assert not changes.save(connection, replace(closed, status=ChangeStatus.APPLIED))
        assert changes.find(connection, "net", kept.id) == closed
        assert changes.unclosed(connection, "net") == []


def test_pages_are_the_newest_first_and_of_one_network(database: Database) -> None:
    kept = announced(database, CHANGE, replace(CHANGE, network="other"), CHANGE)
    with database.read() as connection:
        assert changes.page(connection, "net", 2**62, 5) == [kept[2], kept[0]]
        before = changes.number_of(kept[2].id)
        assert before is not None
        assert changes.page(connection, "net", before, 5) == [kept[0]]


def test_retention_forgets_closed_ones_only(database: Database) -> None:
    old, still = announced(database, CHANGE, CHANGE)
    with database.write() as connection:
        changes.save(connection, replace(old, status=ChangeStatus.APPLIED, closed_at=NOW))
        later = NOW + timedelta(microseconds=1)
        assert retention.forget_history(connection, "net", NOW) == 0
        assert retention.forget_history(connection, "other", later) == 0
        assert retention.forget_history(connection, "net", later) == 1
        assert changes.page(connection, "net", 2**62, 5) == [still]
