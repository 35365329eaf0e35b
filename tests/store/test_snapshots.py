"""Snapshots are kept once and in order, whatever order they came in, on both databases."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.exc import IntegrityError

from gsid_service.ingest.problems import InvalidSnapshot
from gsid_service.ingest.shapes import SEQUENCE_HIGHEST
from gsid_service.ingest.wire import dump_snapshot, parse_snapshot
from gsid_service.records import Snapshot
from gsid_service.store import networks, snapshots
from gsid_service.store.database import Database
from gsid_service.store.snapshots import Chain, Outcome, Receipt
from tests.store.making import NOW, incoming, link, snapshot

ACCEPTED, DUPLICATE, CONFLICT = Outcome.ACCEPTED, Outcome.DUPLICATE, Outcome.CONFLICT


def add(database: Database, *given: Snapshot, now: datetime = NOW) -> list[Receipt]:
    with database.write() as connection:
        return snapshots.add(connection, [incoming(one) for one in given], now)


def news(database: Database, name: str = "net") -> int:
    with database.read() as connection:
        found = networks.find(connection, name)
    assert found is not None
    return found.news


def chains(database: Database, until: int | None = None) -> dict[str, Chain]:
    with database.read() as connection:
        return snapshots.chains(connection, "net", until)


def sequences(database: Database, first: int, until: int | None = None) -> list[int]:
    with database.read() as connection:
        return [k.sequence for k in snapshots.chain(connection, "net", "c1", first, until)]


def outcomes(receipts: Sequence[Receipt]) -> list[Outcome]:
    return [receipt.outcome for receipt in receipts]


def test_a_snapshot_is_kept_once_and_never_overwritten(database: Database) -> None:
    first, later = snapshot(5, [link("R1", "R2", 1)]), snapshot(7)
    (kept,) = add(database, first)
    assert kept.outcome is ACCEPTED
    assert add(database, first) == [Receipt(DUPLICATE, kept.number)]
    assert add(database, snapshot(5)) == [Receipt(CONFLICT, kept.number)]
    assert news(database) == 1
    assert outcomes(add(database, later, snapshot(6), snapshot(8))) == [ACCEPTED] * 3
    assert add(database, first)[0].outcome is DUPLICATE
    assert sequences(database, 0) == [5, 6, 7, 8]


def test_many_in_one_transaction_are_one_piece_of_news_for_each_network(
    database: Database,
) -> None:
    one, other = snapshot(1), snapshot(1, network="other")
    given = add(database, one, one, snapshot(1, [link("R1", "R2", 9)]), other, snapshot(2))
    assert outcomes(given) == [ACCEPTED, DUPLICATE, CONFLICT, ACCEPTED, ACCEPTED]
    assert given[0].number == given[1].number == given[2].number
    assert (news(database), news(database, "other")) == (1, 1)
    add(database, one, other)
    assert (news(database), news(database, "other")) == (1, 1)


def test_the_same_sequence_of_another_collector_or_network_is_another_snapshot(
    database: Database,
) -> None:
    given = add(database, snapshot(1), snapshot(1, collector="c2"), snapshot(1, network="other"))
    assert outcomes(given) == [ACCEPTED] * 3
    with database.read() as connection:
        assert snapshots.network_of(connection, given[2].number) == "other"
        assert snapshots.network_of(connection, 10**18) is None
        assert snapshots.newest(connection, "net") == given[1].number
        assert snapshots.newest(connection, "nothing") == 0


def test_a_view_begins_at_the_newest_complete_snapshot(database: Database) -> None:
    for sequence, complete in ((2, True), (3, False), (5, True), (6, False), (9, False)):
        add(database, snapshot(sequence, complete=complete))
    assert chains(database) == {"c1": Chain(5, 9, 3)}
    assert sequences(database, 5) == [5, 6, 9]


def test_a_view_without_a_complete_snapshot_begins_at_the_first(database: Database) -> None:
    for sequence in (7, 3, 5):
        add(database, snapshot(sequence, complete=False))
    assert chains(database) == {"c1": Chain(3, 7, 3)}


def test_the_past_is_what_had_come_in_by_then(database: Database) -> None:
    arrived = [
        add(database, snapshot(s, complete=c))[0].number
        for s, c in ((4, True), (8, False), (6, True), (5, False))
    ]
    assert [chains(database, number) for number in arrived] == [
        {"c1": Chain(4, 4, 1)},
        {"c1": Chain(4, 8, 2)},
        {"c1": Chain(6, 8, 2)},
        {"c1": Chain(6, 8, 2)},
    ]
    assert sequences(database, 4, arrived[1]) == [4, 8]
    assert sequences(database, 0, arrived[3]) == [4, 5, 6, 8]
    assert chains(database, 0) == {}


def test_the_collectors_of_one_network_are_told_apart(database: Database) -> None:
    add(database, snapshot(3), snapshot(9, complete=False), snapshot(1, collector="c2"))
    add(database, snapshot(99, network="other"))
    assert chains(database) == {"c1": Chain(3, 9, 2), "c2": Chain(1, 1, 1)}
    with database.read() as connection:
        listed = snapshots.collectors(connection, "net")
    told = [(c["collector"], c["sequence"], c["overtaken"]) for c in listed]
    assert told == [("c1", 9, 0), ("c2", 1, 0)]


def test_a_collector_that_counts_anew_is_not_heard(database: Database) -> None:
    """Nothing of what it says is seen, so it is as good as silent."""

    def heard_after(*sequences: int) -> datetime:
        add(database, *map(snapshot, sequences), now=NOW + timedelta(seconds=sequences[0]))
        with database.read() as connection:
            return snapshots.last_heard(connection, "net")["c1"]

    add(database, snapshot(99, collector="c2"), snapshot(99, network="other"))
    at_9 = NOW + timedelta(seconds=9)
    assert heard_after(9) == heard_after(1) == heard_after(2, 3) == at_9
    with database.read() as connection:
        listed = snapshots.collectors(connection, "net")[0]
        silent = snapshots.silent(connection, at_9 + timedelta(seconds=1))
    assert silent["net"] == {"c1", "c2"}
    assert (listed["sequence"], listed["received_at"], listed["overtaken"]) == (9, at_9, 3)
    assert heard_after(11, 10) == NOW + timedelta(seconds=11)


@pytest.mark.parametrize(
    "at",
    [
        datetime(1969, 7, 20, 20, 17, 40, 999_999, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        # Before the first, and after the last moment that UTC can be written in.
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))),
    ],
)
def test_a_time_survives_exactly_or_is_refused(database: Database, at: datetime) -> None:
    try:
        given = parse_snapshot(json_of(snapshot(1, at=at)))
    except InvalidSnapshot:
        return
    add(database, given)
    with database.read() as connection:
        (row,) = snapshots.page(connection, "net", None, 9)
        (collector,) = snapshots.collectors(connection, "net")
    assert row["observed_at"] == collector["observed_at"] == at
    assert row["received_at"] == NOW


def json_of(one: Snapshot) -> str:
    return json.dumps(dump_snapshot(one))


def test_pages_go_back_in_time_and_meet_nothing_twice(database: Database) -> None:
    add(database, *(snapshot(s, [link("R1", "R2", 1)]) for s in (5, 1, 4, 2, 3)))
    add(database, snapshot(1, network="other"))
    seen: list[int] = []
    before = None
    with database.read() as connection:
        while rows := snapshots.page(connection, "net", before, 2):
            seen += [row["sequence"] for row in rows]
            before = rows[-1]["number"]
            assert all(row["facts"] == 1 for row in rows)
    assert seen == [3, 2, 4, 1, 5]


def test_nothing_is_half_kept_where_a_transaction_fails(database: Database) -> None:
    bad = incoming(snapshot(2))._replace(body=None)  # type: ignore[arg-type]
    with pytest.raises(IntegrityError), database.write() as connection:
        snapshots.add(connection, [incoming(snapshot(1)), bad], NOW)
    with database.read() as connection:
        assert networks.find(connection, "net") is None
        assert snapshots.newest(connection, "net") == 0


def test_the_highest_sequence_can_be_asked_beyond(database: Database) -> None:
    """The cycle asks for what comes after the last that it knows."""
    highest = SEQUENCE_HIGHEST
    add(database, snapshot(1), snapshot(highest, complete=False, at=NOW))
    assert chains(database) == {"c1": Chain(1, highest, 2)}
    assert sequences(database, highest + 1) == []


def test_collectors_that_nothing_came_from_are_silent(database: Database) -> None:
    def hear(at: datetime, *whom: tuple[str, str]) -> None:
        said = [incoming(snapshot(at.minute + 1, network=n, collector=c)) for n, c in whom]
        with database.write() as connection:
            snapshots.add(connection, said, at)

    hour = NOW.replace(minute=0)
    hear(hour, ("a", "c1"), ("a", "c2"), ("b", "c1"))
    hear(hour.replace(minute=5), ("a", "c1"))
    with database.read() as connection:
        assert snapshots.silent(connection, hour) == {}
        since = hour.replace(minute=1)
        assert snapshots.silent(connection, since) == {"a": {"c2"}, "b": {"c1"}}
        assert snapshots.last_heard(connection, "a") == {
            "c1": hour.replace(minute=5),
            "c2": hour,
        }
