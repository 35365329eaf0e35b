"""Retention: the old and the too many go in small steps; no view loses what it rests on."""

from dataclasses import replace
from datetime import datetime, timedelta

from gsid_service.records import Alert, Status
from gsid_service.store import alerts, approvals, retention, scores, snapshots
from gsid_service.store.database import Database
from tests.store.making import NOW, incoming, snapshot
from tests.store.test_alerts import FULL, saved
from tests.store.test_scores import HIGH, put

OLD = NOW - timedelta(days=100)
LIMIT = NOW - timedelta(days=90)


def add(database: Database, *given: tuple[int, bool], now: datetime, collector: str = "c1") -> None:
    with database.write() as connection:
        items = [snapshot(s, complete=c, collector=collector) for s, c in given]
        snapshots.add(connection, [incoming(one) for one in items], now)


def left(database: Database, collector: str = "c1") -> list[int]:
    with database.read() as connection:
        return [k.sequence for k in snapshots.chain(connection, "net", collector, 0)]


def forget(database: Database, before: datetime, at_most: int, step: int = 200) -> int:
    with database.write() as connection:
        return retention.forget_snapshots(connection, "net", before, at_most, step)


def test_what_is_old_goes_but_for_what_a_view_rests_on(database: Database) -> None:
    add(database, (1, True), (2, False), (3, True), (4, False), now=OLD)
    add(database, (1, False), (2, False), now=OLD, collector="c2")
    assert forget(database, LIMIT, 99) == 2
    assert left(database) == [3, 4]
    assert left(database, "c2") == [1, 2]
    assert forget(database, LIMIT, 99) == 0


def test_what_is_new_stays_even_when_it_is_history(database: Database) -> None:
    add(database, (1, True), (2, True), now=NOW)
    assert forget(database, LIMIT, 99) == 0
    assert left(database) == [1, 2]


def test_what_is_too_many_goes_in_small_steps_the_oldest_first(database: Database) -> None:
    add(database, *((sequence, True) for sequence in range(1, 11)), now=NOW)
    assert forget(database, LIMIT, 4, step=3) == 3
    assert left(database) == [4, 5, 6, 7, 8, 9, 10]
    assert forget(database, LIMIT, 4, step=99) == 3
    assert left(database) == [7, 8, 9, 10]
    assert forget(database, LIMIT, 4) == 0


def test_old_lines_and_resolved_alerts_go_and_open_ones_stay(database: Database) -> None:
    put(database, HIGH, now=OLD)
    put(database, HIGH._replace(score=0.5), now=NOW)
    old = replace(FULL, first_seen=OLD, last_seen=OLD)
    kept: list[Alert] = [
        saved(database, replace(old, parameter="med")),
        saved(database, replace(FULL, status=Status.RESOLVED)),
    ]
    saved(database, replace(old, parameter="ospf_weight", status=Status.RESOLVED))
    with database.write() as connection:
        assert retention.forget_history(connection, "net", LIMIT) == 2
        assert retention.forget_history(connection, "net", LIMIT) == 0
        assert len(scores.history(connection, "net", *HIGH.slot, 9)) == 1
        found = alerts.of_network(connection, "net").values()
    assert sorted(found, key=lambda alert: alert.id) == sorted(kept, key=lambda alert: alert.id)


def test_old_approvals_go_but_for_the_one_that_counts(database: Database) -> None:
    add(database, (1, True), now=OLD)
    with database.write() as connection:
        for _ in range(3):
            approvals.approve(connection, "net", (), (), OLD, "noc", False, 1, ["c1"])
        assert retention.forget_history(connection, "net", LIMIT) == 2
        assert retention.forget_history(connection, "net", LIMIT) == 0
        assert len(approvals.history(connection, "net", 2**62, 9)) == 1
        approvals.approve(connection, "net", (), (), NOW, "noc", False, 1, ["c1"])
        assert retention.forget_history(connection, "net", LIMIT) == 1
