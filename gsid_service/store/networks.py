"""Networks: their settings, and how far the cycle is with each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, text, update

from gsid_service.store.news import tell
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
    silent: Sequence[str] | None = None
    differing: Sequence[Any] | None = None


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


def take_turn(connection: Connection, name: str, news: int) -> Network | None:
    """Let nobody else save a round of the network until this transaction ends, and say how it is
    now; None where a round of later news is saved already."""
    if connection.dialect.name == "postgresql":
        # Not the row: who changes alerts locks those first, and the network after them.
        turn = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        connection.execute(turn, {"name": name})
    found = find(connection, name)
    return found if found is not None and found.done <= news else None


def finish(
    connection: Connection,
    name: str,
    news: int,
    scored: int,
    now: datetime,
    summary: Mapping[str, Any],
    silent: Sequence[str] = (),
    differing: Sequence[Any] = (),
) -> None:
    """The cycle has dealt with all news up to `news`, and scored all snapshots up to `scored`."""
    seen = {"summary": summary, "silent": list(silent), "differing": list(differing)}
    connection.execute(
        update(networks)
        .where(networks.c.name == name)
        .values(done=news, scored=scored, scored_at=now, problem=None, **seen)
    )
    tell(connection, name)


def fail(
    connection: Connection, name: str, news: int, problem: str, silent: Sequence[str] = ()
) -> None:
    """The cycle could not deal with the news; it tries again when there is more."""
    connection.execute(
        update(networks)
        .where(networks.c.name == name, networks.c.done <= news)
        .values(done=news, problem=problem, silent=list(silent))
    )
    tell(connection, name)


def last_seen(connection: Connection) -> dict[str, tuple[set[str], bool]]:
    """Of each network the collectors that its last cycle took for silent, and whether it saw any
    router forward otherwise than its values say."""
    rows = connection.execute(select(networks.c.name, networks.c.silent, networks.c.differing))
    return {row.name: (set(row.silent or ()), bool(row.differing)) for row in rows}
