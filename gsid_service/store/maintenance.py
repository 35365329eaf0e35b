"""Maintenance windows: when what is done to which network, by whom and why."""

from collections.abc import Collection
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, or_, select, update

from gsid_service.notices import Mode, Window
from gsid_service.store.news import tell
from gsid_service.store.tables import maintenance

_HOLDING = select(maintenance.c.number).where(maintenance.c.holding)


def add(connection: Connection, window: Window) -> Window:
    row = {name: value for name, value in asdict(window).items() if name != "number"}
    row["mode"] = window.mode.value
    tell(connection)
    insert = maintenance.insert().values(**row).returning(maintenance.c.number)
    return replace(window, number=connection.execute(insert).scalar_one())


def find(connection: Connection, number: int, to_change: bool = False) -> Window | None:
    query = select(maintenance).where(maintenance.c.number == number)
    row = connection.execute(query.with_for_update() if to_change else query).first()
    return None if row is None else _window(row)


def page(connection: Connection, before: int | None, limit: int, cancelled: bool) -> list[Window]:
    """Windows, the newest first."""
    query = select(maintenance)
    if before is not None:
        query = query.where(maintenance.c.number < before)
    if not cancelled:
        query = query.where(maintenance.c.cancelled_at.is_(None))
    rows = connection.execute(query.order_by(maintenance.c.number.desc()).limit(limit))
    return [_window(row) for row in rows]


def standing(connection: Connection, now: datetime) -> list[Window]:
    """Windows that are open, or may open."""
    query = select(maintenance).where(
        maintenance.c.cancelled_at.is_(None),
        or_(maintenance.c.ends_at > now, maintenance.c.rule.is_not(None)),
    )
    return [_window(row) for row in connection.execute(query.order_by(maintenance.c.number))]


def hold(connection: Connection, numbers: Collection[int]) -> list[Window]:
    """Note which windows let no alert open; those that did until now, and no longer do."""
    if set(connection.scalars(_HOLDING)) == set(numbers):
        return []
    begun = maintenance.c.number.in_(numbers) & maintenance.c.holding.is_not(True)
    connection.execute(update(maintenance).where(begun).values(holding=True))
    over = maintenance.c.holding & maintenance.c.number.not_in(numbers)
    ended = update(maintenance).where(over).values(holding=False).returning(maintenance)
    return [_window(row) for row in connection.execute(ended)]


def cancel(connection: Connection, number: int, now: datetime) -> None:
    query = update(maintenance).where(maintenance.c.number == number)
    connection.execute(query.values(cancelled_at=now))
    tell(connection)


def _window(row: Row[Any]) -> Window:
    known = {name: value for name, value in row._mapping.items() if name != "holding"}
    return Window(**{**known, "mode": Mode(row.mode)})
