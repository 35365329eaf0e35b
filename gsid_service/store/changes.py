"""Announced changes: kept from the announcement on, and as history once they are closed."""

from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from gsid_service.records import Change, ChangeStatus, FactKey, Step
from gsid_service.store.database import packed, unpacked
from gsid_service.store.tables import changes

PLAIN = (
    "network",
    "author",
    "announced_by",
    "announced_at",
    "ticket",
    "comment",
    "begins_at",
    "ends_at",
    "closed_at",
    "cancelled_by",
)


def announce(connection: Connection, change: Change) -> int:
    """Keep a new change; its number."""
    row = {name: getattr(change, name) for name in PLAIN}
    row |= {"status": change.status.value, "steps": packed(change.steps), "observed": packed([])}
    insert = changes.insert().values(**row).returning(changes.c.number)
    number: int = connection.execute(insert).scalar_one()
    return number


def save(connection: Connection, change: Change) -> bool:
    """Keep how far a change is; False where somebody closed it before."""
    known = (changes.c.number == number_of(change.id)) & changes.c.closed_at.is_(None)
    row = {
        "status": change.status.value,
        "observed": packed(change.observed),
        "closed_at": change.closed_at,
        "cancelled_by": change.cancelled_by,
    }
    return connection.execute(update(changes).where(known).values(**row)).rowcount > 0


def find(connection: Connection, network: str, change_id: str) -> Change | None:
    query = select(changes).where(changes.c.network == network)
    row = connection.execute(query.where(changes.c.number == number_of(change_id))).first()
    return None if row is None else _change(row)


def page(connection: Connection, network: str, before: int, limit: int) -> list[Change]:
    """Changes of a network, the newest first."""
    query = select(changes).where(changes.c.network == network, changes.c.number < before)
    rows = connection.execute(query.order_by(changes.c.number.desc()).limit(limit))
    return [_change(row) for row in rows]


def unclosed(connection: Connection, network: str) -> list[Change]:
    """Those that are pending or under way, in the order in which they were announced."""
    query = select(changes).where(changes.c.network == network, changes.c.closed_at.is_(None))
    return [_change(row) for row in connection.execute(query.order_by(changes.c.number))]


def networks_with_unclosed(connection: Connection) -> list[str]:
    query = select(changes.c.network).where(changes.c.closed_at.is_(None)).distinct()
    return list(connection.scalars(query))


def count_unclosed(connection: Connection, network: str) -> int:
    query = select(func.count()).select_from(changes)
    known = (changes.c.network == network) & changes.c.closed_at.is_(None)
    return connection.scalar(query.where(known)) or 0


def number_of(change_id: str) -> int | None:
    """The number in an id such as c3."""
    digits = change_id[1:]
    known = change_id[:1] == "c" and digits.isascii() and digits.isdecimal() and len(digits) < 19
    return int(digits) if known else None


def _change(row: Row[Any]) -> Change:
    return Change(
        id=f"c{row.number}",
        status=ChangeStatus(row.status),
        steps=tuple(
            Step(FactKey(predicate, tuple(args)), *rest)
            for (predicate, args), *rest in unpacked(row.steps)
        ),
        observed=tuple(unpacked(row.observed)),
        **{name: getattr(row, name) for name in PLAIN},
    )
