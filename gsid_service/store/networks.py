"""Networks: their settings, and how far the cycle is with each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from gsid_service.store.tables import networks


@dataclass(frozen=True, slots=True)
class Network:
    name: str
    created_at: datetime
    settings: Mapping[str, Any]
    news: int
    done: int
    scored: int
    scored_at: datetime | None
    problem: str | None
    summary: Mapping[str, Any]
    notify_at: datetime | None = None


def find(connection: Connection, name: str, to_change: bool = False) -> Network | None:
    """A network; `to_change` lets nobody else change anything of it until this is done."""
    query = select(networks).where(networks.c.name == name)
    row = connection.execute(query.with_for_update() if to_change else query).first()
    return Network(**row._mapping) if row else None


def page(connection: Connection, after: str, limit: int, only: Sequence[str] = ()) -> list[Network]:
    """Networks by name; `only` these, where any are named."""
    query = select(networks).where(networks.c.name > after)
    if only:
        query = query.where(networks.c.name.in_(only))
    rows = connection.execute(query.order_by(networks.c.name).limit(limit))
    return [Network(**row._mapping) for row in rows]


def names(connection: Connection) -> list[str]:
    return list(connection.scalars(select(networks.c.name).order_by(networks.c.name)))


def with_news(connection: Connection) -> list[str]:
    """The networks that the cycle has not caught up with."""
    query = select(networks.c.name).where(networks.c.news > networks.c.done)
    return list(connection.scalars(query.order_by(networks.c.name)))


def change_settings(connection: Connection, name: str, settings: Mapping[str, Any]) -> None:
    connection.execute(update(networks).where(networks.c.name == name).values(settings=settings))


def finish(
    connection: Connection,
    name: str,
    news: int,
    scored: int,
    now: datetime,
    summary: Mapping[str, Any],
) -> None:
    """The cycle has dealt with all news up to `news`, and scored all snapshots up to `scored`."""
    connection.execute(
        update(networks)
        .where(networks.c.name == name)
        .values(done=news, scored=scored, scored_at=now, problem=None, summary=summary)
    )


def fail(connection: Connection, name: str, news: int, problem: str) -> None:
    """The cycle could not deal with the news; it tries again when there is more."""
    connection.execute(
        update(networks).where(networks.c.name == name).values(done=news, problem=problem)
    )
