"""Snapshots as they came in, and the networks that they speak of."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from gsid_service.records import Snapshot
from gsid_service.store.database import upsert
from gsid_service.store.tables import collectors as heard
from gsid_service.store.tables import networks, snapshots

HIGHEST = 2**63 - 1  # number that a database can hold


class Incoming(NamedTuple):
    """A snapshot that is to be kept: what it says, and its compressed body."""

    snapshot: Snapshot
    digest: bytes
    body: bytes


class Outcome(Enum):
    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


class Receipt(NamedTuple):
    outcome: Outcome
    number: int


class Kept(NamedTuple):
    """A snapshot as it is kept."""

    number: int
    collector: str
    sequence: int
    complete: bool
    received_at: datetime
    body: bytes


class _Key(NamedTuple):
    """What makes a snapshot that snapshot."""

    network: str
    collector: str
    sequence: int


# Statements are made once: to put one together costs more than to execute it.
_SAME = select(snapshots.c.number, snapshots.c.digest).where(
    *(snapshots.c[name] == bindparam(name) for name in _Key._fields)
)
_INSERT = {
    dialect: insert(snapshots)
    .on_conflict_do_nothing(index_elements=_Key._fields)
    .returning(*(snapshots.c[name] for name in _Key._fields), snapshots.c.number)
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
# Who counts from the beginning again is not heard: nothing of it is seen any more.
_NEWER = exists().where(
    snapshots.c.network == bindparam("of"),
    snapshots.c.collector == bindparam("who"),
    snapshots.c.sequence > bindparam("highest"),
)
_HEAR = {
    dialect: (adding := insert(heard)).on_conflict_do_update(
        index_elements=["network", "collector"],
        set_={"heard_at": adding.excluded.heard_at},
        where=~_NEWER,
    )
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
# Locked on PostgreSQL, in order: a network's snapshots are numbered as they become visible.
_THERE = (
    select(networks.c.name)
    .where(networks.c.name.in_(bindparam("names", expanding=True)))
    .order_by(networks.c.name)
    .with_for_update(key_share=True)
)
_TOUCH = (
    update(networks)
    .where(networks.c.name.in_(bindparam("names", expanding=True)))
    .values(news=networks.c.news + 1)
)
_OLDER = snapshots.alias()
# Read from the index, backwards: it must not take longer the more snapshots are kept.
_COMPLETE = (
    select(_OLDER.c.sequence)
    .where(_OLDER.c.network == heard.c.network, _OLDER.c.collector == heard.c.collector)
    .where(_OLDER.c.complete, _OLDER.c.number <= bindparam("until"))
    .order_by(_OLDER.c.sequence.desc())
    .limit(1)
    .scalar_subquery()
)
_CHAINS = (
    select(
        heard.c.collector,
        func.min(snapshots.c.sequence),
        func.max(snapshots.c.sequence),
        func.count(),
    )
    .where(heard.c.network == bindparam("network"))
    .where(snapshots.c.network == heard.c.network, snapshots.c.collector == heard.c.collector)
    .where(snapshots.c.sequence >= func.coalesce(_COMPLETE, 0))
    .where(snapshots.c.number <= bindparam("until"))
    .group_by(heard.c.collector)
)
_OTHERS = select(heard.c.collector).where(
    heard.c.network == bindparam("network"),
    heard.c.collector.not_in(bindparam("besides", expanding=True)),
)
_EARLIEST = (
    select(func.min(_OLDER.c.number))
    .where(_OLDER.c.network == bindparam("network"), _OLDER.c.number <= bindparam("until"))
    .where(_OLDER.c.collector.in_(_OTHERS), _OLDER.c.complete, _OLDER.c.facts > 0)
    .group_by(_OLDER.c.collector)
)
_FIRST_COMPLETE = (
    select(*(snapshots.c[name] for name in Kept._fields))
    .where(snapshots.c.number.in_(_EARLIEST))
    .order_by(snapshots.c.number)
)


def add(connection: Connection, incoming: Sequence[Incoming], now: datetime) -> list[Receipt]:
    """Keep snapshots, each once; a known sequence with another body is a conflict."""
    keyed = [(_key(item.snapshot), item) for item in incoming]
    first: dict[_Key, Incoming] = {}
    for key, item in keyed:
        first.setdefault(key, item)
    announce(connection, {key.network for key in first}, now)
    added = _insert(connection, first, now)
    touch(connection, {key.network for key in added})
    _hear(connection, added, now)
    kept = {key: (number, first[key].digest) for key, number in added.items()}
    kept |= {key: _same(connection, key) for key in first if key not in added}
    receipts = []
    for key, item in keyed:
        number, digest = kept[key]
        outcome = Outcome.DUPLICATE if digest == item.digest else Outcome.CONFLICT
        if added.pop(key, None):
            outcome = Outcome.ACCEPTED
        receipts.append(Receipt(outcome, number))
    return receipts


def _key(snapshot: Snapshot) -> _Key:
    return _Key(snapshot.network, snapshot.collector.id, snapshot.sequence)


def _same(connection: Connection, key: _Key) -> tuple[int, bytes]:
    """The number and the digest of a snapshot that is kept already."""
    row = connection.execute(_SAME, key._asdict()).one()
    return row.number, row.digest


def _insert(
    connection: Connection, given: Mapping[_Key, Incoming], now: datetime
) -> dict[_Key, int]:
    """The numbers of those that were not kept already."""
    rows = [
        key._asdict()
        | {
            "role": item.snapshot.collector.role,
            "observed_at": item.snapshot.observed_at,
            "received_at": now,
            "complete": item.snapshot.complete,
            "facts": len(item.snapshot.facts),
            "digest": item.digest,
            "body": item.body,
        }
        for key, item in given.items()
    ]
    added = connection.execute(_INSERT[connection.dialect.name], rows)
    return {_Key(*key): number for *key, number in added}


def announce(connection: Connection, names: Collection[str], now: datetime) -> None:
    """Make the networks known that are not yet."""
    unknown = set(names).difference(connection.scalars(_THERE, {"names": sorted(names)}))
    fresh = {"created_at": now, "settings": {}, "news": 0, "done": 0, "scored": 0, "summary": {}}
    rows = [{"name": name} | fresh for name in sorted(unknown)]
    upsert(connection, networks, rows, keep=list(fresh))


def _hear(connection: Connection, added: Collection[_Key], now: datetime) -> None:
    """Note which collectors were heard: those of which this is the newest."""
    highest = {(key.network, key.collector): key.sequence for key in sorted(added)}
    rows = [
        {"network": of, "collector": who, "heard_at": now}
        | {"of": of, "who": who, "highest": sequence}
        for (of, who), sequence in highest.items()
    ]
    if rows:
        connection.execute(_HEAR[connection.dialect.name], rows)


def touch(connection: Connection, names: Collection[str]) -> None:
    """Say that there is something new about networks, for the cycle to look at."""
    if names:
        connection.execute(_TOUCH, {"names": sorted(names)})


class Chain(NamedTuple):
    """A collector's snapshots that its view is made of, by their sequences."""

    first: int
    last: int
    length: int


def chains(connection: Connection, network: str, until: int | None = None) -> dict[str, Chain]:
    """For each collector where its view begins: at the newest complete snapshot, or the first.

    `until` is the number of a snapshot: those that came in later are left out.
    """
    until = HIGHEST if until is None else until
    rows = connection.execute(_CHAINS, {"network": network, "until": until})
    return {collector: Chain(*chain) for collector, *chain in rows}


def chain(
    connection: Connection, network: str, collector: str, first: int, until: int | None = None
) -> list[Kept]:
    """A collector's snapshots from a sequence on, in order."""
    found = snapshots.c.sequence >= first
    if until is not None:
        found &= snapshots.c.number <= until
    kept = connection.execute(
        select(*(snapshots.c[name] for name in Kept._fields))
        .where(snapshots.c.network == network, snapshots.c.collector == collector)
        .where(found)
        .order_by(snapshots.c.sequence)
    )
    return [Kept(*row) for row in kept]


def first_complete(
    connection: Connection, network: str, until: int, besides: Collection[str] = ()
) -> list[Kept]:
    """The complete snapshot that came in first, and says anything, of each collector `besides`
    some; of those up to the number `until`."""
    given = {"network": network, "until": until, "besides": list(besides)}
    return [Kept(*row) for row in connection.execute(_FIRST_COMPLETE, given)]


def newest(connection: Connection, network: str) -> int:
    """The number of the newest snapshot of a network, 0 for none."""
    found = select(func.max(snapshots.c.number)).where(snapshots.c.network == network)
    return connection.scalar(found) or 0


def collectors(connection: Connection, network: str) -> list[dict[str, Any]]:
    """Each collector of a network, with its newest snapshot by sequence, and how many came in since
    then that are older by sequence."""
    latest = (
        select(snapshots.c.collector, func.max(snapshots.c.sequence).label("sequence"))
        .where(snapshots.c.network == network)
        .group_by(snapshots.c.collector)
        .subquery()
    )
    late = snapshots.alias()
    overtaken = (
        select(func.count())
        .where(late.c.network == network, late.c.collector == snapshots.c.collector)
        .where(late.c.number > snapshots.c.number)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(
            snapshots.c.collector,
            snapshots.c.role,
            snapshots.c.sequence,
            snapshots.c.observed_at,
            snapshots.c.received_at,
            overtaken.label("overtaken"),
        )
        .join(
            latest,
            (snapshots.c.collector == latest.c.collector)
            & (snapshots.c.sequence == latest.c.sequence),
        )
        .where(snapshots.c.network == network)
        .order_by(snapshots.c.collector)
    )
    return [dict(row._mapping) for row in rows]


def last_heard(connection: Connection, network: str) -> dict[str, datetime]:
    """When each collector last told something newer than all before."""
    query = select(heard.c.collector, heard.c.heard_at).where(heard.c.network == network)
    return {row.collector: row.heard_at for row in connection.execute(query)}


def silent(connection: Connection, since: datetime) -> dict[str, set[str]]:
    """The collectors of each network of which nothing newer has come in since then."""
    query = select(heard.c.network, heard.c.collector).where(heard.c.heard_at < since)
    found: dict[str, set[str]] = {}
    for network, collector in connection.execute(query):
        found.setdefault(network, set()).add(collector)
    return found


def network_of(connection: Connection, number: int) -> str | None:
    return connection.scalar(select(snapshots.c.network).where(snapshots.c.number == number))


def collector_of(connection: Connection, number: int) -> str:
    """Whose a snapshot is; of one that nobody sent nobody's."""
    found = connection.scalar(select(snapshots.c.collector).where(snapshots.c.number == number))
    return found or ""


def page(
    connection: Connection, network: str, before: int | None, limit: int
) -> list[dict[str, Any]]:
    """Snapshots without their bodies, the newest first."""
    query = select(
        snapshots.c.number,
        snapshots.c.collector,
        snapshots.c.sequence,
        snapshots.c.observed_at,
        snapshots.c.received_at,
        snapshots.c.complete,
        snapshots.c.facts,
    ).where(snapshots.c.network == network)
    if before is not None:
        query = query.where(snapshots.c.number < before)
    rows = connection.execute(query.order_by(snapshots.c.number.desc()).limit(limit))
    return [dict(row._mapping) for row in rows]


def next_received(connection: Connection, network: str, number: int) -> datetime | None:
    """When the snapshot after one came in."""
    later = select(func.min(snapshots.c.received_at)).where(
        snapshots.c.network == network, snapshots.c.number > number
    )
    found: datetime | None = connection.scalar(later)
    return found
