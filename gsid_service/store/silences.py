"""Silences: which alerts nobody is told of, by whom, why and how long."""

from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, case, literal, select, update

from gsid_service.notices import Matcher, Silence
from gsid_service.store.news import tell
from gsid_service.store.tables import Instant, silences


def add(connection: Connection, silence: Silence) -> Silence:
    row = {f.name: getattr(silence, f.name) for f in fields(silence) if f.name != "number"}
    row["matchers"] = [list(matcher) for matcher in silence.matchers]
    tell(connection)
    insert = silences.insert().values(**row).returning(silences.c.number)
    return replace(silence, number=connection.execute(insert).scalar_one())


def find(connection: Connection, number: int, to_change: bool = False) -> Silence | None:
    query = select(silences).where(silences.c.number == number)
    row = connection.execute(query.with_for_update() if to_change else query).first()
    return None if row is None else _silence(row)


def page(
    connection: Connection, before: int | None, limit: int, after: datetime | None
) -> list[Silence]:
    """Silences, all or those that end after a time, the newest first."""
    query = select(silences)
    if after is not None:
        query = query.where(silences.c.ends_at > after)
    if before is not None:
        query = query.where(silences.c.number < before)
    rows = connection.execute(query.order_by(silences.c.number.desc()).limit(limit))
    return [_silence(row) for row in rows]


def unexpired(connection: Connection, now: datetime) -> list[Silence]:
    """Silences that are active, or will be."""
    query = select(silences).where(silences.c.ends_at > now).order_by(silences.c.number)
    return [_silence(row) for row in connection.execute(query)]


def end(connection: Connection, number: int, now: datetime) -> None:
    """A silence that is over now; one that had not begun never was."""
    begun = case((silences.c.starts_at > now, literal(now, Instant)), else_=silences.c.starts_at)
    query = update(silences).where(silences.c.number == number)
    connection.execute(query.values(starts_at=begun, ends_at=now))
    tell(connection)


def _silence(row: Row[Any]) -> Silence:
    matchers = tuple(Matcher(*matcher) for matcher in row.matchers)
    return Silence(**{**row._mapping, "matchers": matchers})
