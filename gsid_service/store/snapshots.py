"""Snapshots as they came in, and the networks that they speak of."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, select, update

from gsid_service.records import Snapshot
from gsid_service.store.database import upsert
from gsid_service.store.tables import networks, snapshots


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
    is_newest: bool  # of its collector


class Kept(NamedTuple):
    """A snapshot as it is kept."""

    number: int
    collector: str
    sequence: int
    complete: bool
    body: bytes


class _Key(NamedTuple):
    """What makes a snapshot that snapshot."""

    network: str
    collector: str
    sequence: int


# Statements are made once: to put one together costs more than to execute it.
_MINE = and_(
    snapshots.c.network == bindparam("network"), snapshots.c.collector == bindparam("collector")
)
_NEWEST = select(func.max(snapshots.c.sequence)).where(_MINE)
_SAME = select(snapshots.c.number, snapshots.c.digest).where(
    _MINE, snapshots.c.sequence == bindparam("sequence")
)
_INSERT = snapshots.insert().returning(
    *(snapshots.c[name] for name in _Key._fields), snapshots.c.number
)
_TOUCH = (
    update(networks)
    .where(networks.c.name.in_(bindparam("names", expanding=True)))
    .values(news=networks.c.news + 1)
    .returning(networks.c.name)
)


def add(connection: Connection, incoming: Sequence[Incoming], now: datetime) -> list[Receipt]:
    """Keep snapshots, each once; a known sequence with another body is a conflict."""
    keyed = [(_key(item.snapshot), item) for item in incoming]
    newest = {key[:2]: _newest(connection, key) for key, _ in keyed}
    known = _known(connection, {key for key, _ in keyed if key.sequence <= newest[key[:2]]})
    fresh: dict[_Key, Incoming] = {}
    for key, item in keyed:
        if key not in known:
            fresh.setdefault(key, item)
    named = {key.network for key in fresh}
    unknown = named - touch(connection, named)
    announce(connection, unknown, now)
    touch(connection, unknown)
    known |= _insert(connection, fresh, now)
    receipts = []
    for key, item in keyed:
        number, digest = known[key]
        if fresh.pop(key, None) is None:  # known before, or from earlier in this group
            outcome = Outcome.DUPLICATE if digest == item.digest else Outcome.CONFLICT
            receipts.append(Receipt(outcome, number, False))
            continue
        receipts.append(Receipt(Outcome.ACCEPTED, number, key.sequence > newest[key[:2]]))
        newest[key[:2]] = max(key.sequence, newest[key[:2]])
    return receipts


def _key(snapshot: Snapshot) -> _Key:
    return _Key(snapshot.network, snapshot.collector.id, snapshot.sequence)


def _newest(connection: Connection, key: _Key) -> int:
    """The highest sequence of a collector, -1 for none."""
    found = connection.scalar(_NEWEST, key._asdict())
    return -1 if found is None else found


def _known(connection: Connection, keys: Iterable[_Key]) -> dict[_Key, tuple[int, bytes]]:
    """The number and the digest of those snapshots that are kept already."""
    found = {key: connection.execute(_SAME, key._asdict()).first() for key in keys}
    return {key: (row.number, row.digest) for key, row in found.items() if row}


def _insert(
    connection: Connection, fresh: Mapping[_Key, Incoming], now: datetime
) -> dict[_Key, tuple[int, bytes]]:
    if not fresh:
        return {}
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
        for key, item in fresh.items()
    ]
    numbers = {_Key(*key): number for *key, number in connection.execute(_INSERT, rows)}
    return {key: (numbers[key], item.digest) for key, item in fresh.items()}


def announce(connection: Connection, names: Collection[str], now: datetime) -> None:
    """Make the networks known that are not yet."""
    fresh = {"created_at": now, "settings": {}, "news": 0, "done": 0, "scored": 0, "summary": {}}
    rows = [{"name": name} | fresh for name in sorted(names)]
    upsert(connection, networks, rows, keep=list(fresh))


def touch(connection: Connection, names: Collection[str]) -> set[str]:
    """Say that there is something new about networks, for the cycle to look at; those there are."""
    if not names:
        return set()
    return set(connection.scalars(_TOUCH, {"names": sorted(names)}))


class Chain(NamedTuple):
    """A collector's snapshots that its view is made of, by their sequences."""

    first: int
    last: int
    length: int


def chains(connection: Connection, network: str, until: int | None = None) -> dict[str, Chain]:
    """For each collector where its view begins: at the newest complete snapshot, or the first.

    `until` is the number of a snapshot: those that came in later are left out.
    """
    complete = func.max(snapshots.c.sequence).filter(snapshots.c.complete)
    first = func.coalesce(complete, func.min(snapshots.c.sequence)).label("first")
    of_network = snapshots.c.network == network
    if until is not None:
        of_network &= snapshots.c.number <= until
    begins = (
        select(snapshots.c.collector, first)
        .where(of_network)
        .group_by(snapshots.c.collector)
        .subquery()
    )
    rows = connection.execute(
        select(
            snapshots.c.collector,
            func.min(snapshots.c.sequence),
            func.max(snapshots.c.sequence),
            func.count(),
        )
        .join(begins, snapshots.c.collector == begins.c.collector)
        .where(of_network, snapshots.c.sequence >= begins.c.first)
        .group_by(snapshots.c.collector)
    )
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


def first_complete(connection: Connection, network: str) -> list[Kept]:
    """The complete snapshot of each collector that came in first, and says anything."""
    earliest = (
        select(func.min(snapshots.c.number))
        .where(snapshots.c.network == network, snapshots.c.complete, snapshots.c.facts > 0)
        .group_by(snapshots.c.collector)
    )
    kept = connection.execute(
        select(*(snapshots.c[name] for name in Kept._fields))
        .where(snapshots.c.number.in_(earliest))
        .order_by(snapshots.c.number)
    )
    return [Kept(*row) for row in kept]


def newest(connection: Connection, network: str) -> int:
    """The number of the newest snapshot of a network, 0 for none."""
    found = select(func.max(snapshots.c.number)).where(snapshots.c.network == network)
    return connection.scalar(found) or 0


def collectors(connection: Connection, network: str) -> list[dict[str, Any]]:
    """Each collector of a network, with its newest snapshot by sequence."""
    latest = (
        select(snapshots.c.collector, func.max(snapshots.c.sequence).label("sequence"))
        .where(snapshots.c.network == network)
        .group_by(snapshots.c.collector)
        .subquery()
    )
    rows = connection.execute(
        select(
            snapshots.c.collector,
            snapshots.c.role,
            snapshots.c.sequence,
            snapshots.c.observed_at,
            snapshots.c.received_at,
        )
        .join(
            latest,
            and_(
                snapshots.c.collector == latest.c.collector,
                snapshots.c.sequence == latest.c.sequence,
            ),
        )
        .where(snapshots.c.network == network)
        .order_by(snapshots.c.collector)
    )
    return [dict(row._mapping) for row in rows]


def last_heard(connection: Connection, network: str) -> dict[str, datetime]:
    """When anything of each collector last came in, in whatever order."""
    rows = connection.execute(
        select(snapshots.c.collector, func.max(snapshots.c.received_at).label("at"))
        .where(snapshots.c.network == network)
        .group_by(snapshots.c.collector)
    )
    return {row.collector: row.at for row in rows}


def network_of(connection: Connection, number: int) -> str | None:
    return connection.scalar(select(snapshots.c.network).where(snapshots.c.number == number))


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
