"""Maintenance windows: when what is done to which network, by whom and why."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, or_, select, update

from gsid_service.notices import Mode, Window
from gsid_service.store.tables import maintenance


def add(connection: Connection, window: Window) -> Window:
    row = {name: value for name, value in asdict(window).items() if name != "number"}
    row["mode"] = window.mode.value
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


def cancel(connection: Connection, number: int, now: datetime) -> None:
    query = update(maintenance).where(maintenance.c.number == number)
    connection.execute(query.values(cancelled_at=now))


def _window(row: Row[Any]) -> Window:
    return Window(**{**row._mapping, "mode": Mode(row.mode)})
