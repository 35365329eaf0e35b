"""The outbox on both databases: order within a group, settling, dead letters, replay, retention."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsid_service.notices import Delivery, Group, Outgoing, Sending
from gsid_service.store import outbox, retention, snapshots
from gsid_service.store.database import Database
from gsid_service.store.outbox import Hold
from gsid_service.store.tables import deliveries
from tests.notify.making import HOUR, SECOND
from tests.store.making import NOW


def put(database: Database, *keys: str, receiver: str = "noc", **more: Any) -> None:
    """Messages such as g1-a: in the group g1, under the key g1-a; `repeat` ones end in r."""
    out = [
        Outgoing(
            key,
            Group(key.split("-")[0], "rr1", NOW),
            "repeat" if key.endswith("r") else "new",
            {"said": key},
        )
        for key in keys
    ]
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)
        outbox.put(connection, "net", receiver, out, NOW, **more)


def take(
    database: Database, now: datetime = NOW, receiver: str = "noc"
) -> tuple[Delivery, Any] | datetime | None:
    with database.read() as connection:
        return outbox.take(connection, receiver, now)


def taken(database: Database, now: datetime = NOW) -> Delivery:
    found = take(database, now)
    assert isinstance(found, tuple)
    assert found[1] == {"said": found[0].key}
    return found[0]


def settle(database: Database, delivery: Delivery, now: datetime = NOW, **became: Any) -> None:
    with database.write() as connection:
        outbox.settle(connection, delivery.number, now, **became)


def keys(database: Database, *statuses: Sending) -> list[str]:
    with database.read() as connection:
        found = outbox.page(connection, None, 99, None, [s.value for s in statuses])
    return [delivery.key for delivery in reversed(found)]


def test_messages_of_a_group_go_in_order_and_others_pass(database: Database) -> None:
    put(database, "g1-a", "g1-b", "g2-a")
    first = taken(database)
    assert first.key == "g1-a"
    settle(database, first, due=NOW + HOUR, answer="500")
    other = taken(database)
    assert other.key == "g2-a"
    settle(database, other, status=Sending.DELIVERED, answer="200")
    assert take(database) == NOW + HOUR
    assert taken(database, NOW + HOUR).attempts == 1
    settle(database, first, NOW + HOUR, status=Sending.DEAD, answer="no")
    assert taken(database).key == "g1-b"
    assert take(database, receiver="nobody") is None


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None
)
@given(
    groups=st.lists(st.integers(0, 3), min_size=1, max_size=10),
    fails=st.lists(st.booleans(), max_size=30),
)
def test_whatever_fails_each_group_arrives_in_order(
    database: Database, groups: Sequence[int], fails: list[bool]
) -> None:
    with database.write() as connection:
        connection.execute(deliveries.delete())
    put(database, *(f"g{group}-{number:02}" for number, group in enumerate(groups)))
    now, arrived = NOW, []
    for _ in range(len(groups) + len(fails)):
        now += SECOND
        found = take(database, now)
        if not isinstance(found, tuple):
            break
        if fails and fails.pop():
            settle(database, found[0], due=now + 2 * SECOND, answer="500")
        else:
            settle(database, found[0], now, status=Sending.DELIVERED, answer="200")
            arrived.append(found[0].key)
    for group in set(groups):
        mine = [key for key in arrived if key.startswith(f"g{group}-")]
        assert mine == sorted(mine)


def test_what_is_settled_is_not_settled_again(database: Database) -> None:
    put(database, "g1-a")
    one = taken(database)
    settle(database, one, status=Sending.DELIVERED, answer="200")
    settle(database, one, status=Sending.DEAD, answer="late")
    assert keys(database, Sending.DELIVERED) == ["g1-a"]


def test_a_dead_letter_is_replayed_under_its_key_with_time_to_spare(database: Database) -> None:
    put(database, "g1-a", dead="410")
    assert take(database) is None
    with database.write() as connection:
        (dead,) = outbox.page(connection, None, 9, None, ["dead"])
        assert (dead.answer, dead.settled_at) == ("410", NOW)
        outbox.replay(connection, dead.number, NOW + HOUR)
    again = taken(database, NOW + HOUR)
    assert (again.key, again.since, again.attempts) == ("g1-a", NOW + HOUR, 0)
    assert again.settled_at is None


def test_a_receiver_that_is_gone_gets_nothing_until_it_is_enabled(database: Database) -> None:
    put(database, "g1-a", "g2-a")
    put(database, "g3-a", receiver="other")
    with database.write() as connection:
        assert outbox.disable(connection, "noc", NOW, "410 Gone") == 2
        assert outbox.disabled(connection) == {"noc": outbox.Disabled(NOW, "410 Gone")}
        assert outbox.count(connection) == {("noc", "dead"): 2, ("other", "pending"): 1}
        outbox.enable(connection, "noc")
        assert outbox.disabled(connection) == {}


def test_a_clock_that_is_set_back_holds_no_message(database: Database) -> None:
    put(database, "g1-a", "g2-b")
    assert taken(database, NOW - HOUR).key == "g1-a", "nobody tried it yet"
    for _ in range(2):
        settle(database, taken(database), due=NOW + SECOND)
    assert take(database, NOW - HOUR) == NOW + SECOND
    with database.write() as connection:
        outbox.hurry(connection, "other", NOW - HOUR)
        assert outbox.take(connection, "noc", NOW - HOUR) == NOW + SECOND
        outbox.hurry(connection, "noc", NOW - HOUR)
    assert taken(database, NOW - HOUR).key == "g1-a"


def test_only_what_waits_too_long_expires(database: Database) -> None:
    put(database, "g1-a", "g2-a")
    one = taken(database)
    with database.write() as connection:
        connection.execute(
            deliveries.update().where(deliveries.c.number == one.number).values(since=NOW - HOUR)
        )
        assert outbox.bury(connection, "noc", NOW, "too late", before=NOW - HOUR) == 1
    assert keys(database, Sending.DEAD) == ["g1-a"]


def test_of_delivered_repeats_only_the_last_is_kept(database: Database) -> None:
    for key in ("g1-a", "g1-1r", "g1-2r", "g2-1r", "g1-3r"):
        put(database, key)
        settle(database, taken(database), status=Sending.DELIVERED, answer="200")
    assert keys(database) == ["g1-a", "g2-1r", "g1-3r"]


def test_pages_go_back_in_time(database: Database) -> None:
    put(database, "g1-a", "g2-a", "g3-a")
    with database.read() as connection:
        newest = outbox.page(connection, None, 2, None)
        assert [d.key for d in newest] == ["g3-a", "g2-a"]
        assert [d.key for d in outbox.page(connection, newest[-1].number, 2, ["net"])] == ["g1-a"]
        assert outbox.page(connection, None, 2, ["other"]) == []
        assert outbox.page(connection, None, 2, None, (), "other") == []


@pytest.mark.parametrize("status", [Sending.DELIVERED, Sending.DEAD])
def test_retention_forgets_what_is_settled_only(database: Database, status: Sending) -> None:
    put(database, "g1-a", "g2-a")
    settle(database, taken(database), status=status, answer="")
    with database.write() as connection:
        assert retention.forget_deliveries(connection, "net", NOW) == 0
        assert retention.forget_deliveries(connection, "net", NOW + timedelta(days=1)) == 1
    assert keys(database) == ["g2-a"]


def test_a_receiver_that_is_held_is_not_due_until_its_time(database: Database) -> None:
    put(database, "g1-a")
    put(database, "g2-a", receiver="other")

    def due(now: datetime) -> set[str]:
        with database.read() as connection:
            return outbox.due(connection, now)

    assert due(NOW - SECOND) == {"noc", "other"}, "the clock was set back since they were made"
    assert due(NOW) == {"noc", "other"}
    with database.write() as connection:
        assert outbox.held(connection, "noc") is None
        for failures in (1, 2):
            outbox.hold(connection, "noc", Hold(NOW + HOUR, failures))
        assert outbox.held(connection, "noc") == (NOW + HOUR, 2)
    assert due(NOW) == {"other"}
    assert due(NOW + HOUR) == {"noc", "other"}
    with database.write() as connection:
        outbox.release(connection, "noc")
    assert due(NOW) == {"noc", "other"}
