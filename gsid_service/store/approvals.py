"""What the operator approved: baselines, each with who and when, and intents."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from gsid_service.records import Entity, Fact, Intents
from gsid_service.store.database import packed, unpacked, upsert
from gsid_service.store.tables import baselines, intents

HEAD = [column for column in baselines.c if column.name != "body"]


class Approval(NamedTuple):
    """A baseline's head: which it is, and who approved it when."""

    number: int
    network: str
    approved_at: datetime
    approved_by: str
    provisional: bool
    snapshot: int
    collectors: Sequence[str]  # whose views it was made of
    ticket: str | None  # of the announced change that it comes from


class Baseline(NamedTuple):
    approval: Approval
    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]


def approve(
    connection: Connection,
    network: str,
    entities: Iterable[Entity],
    facts: Iterable[Fact],
    now: datetime,
    who: str,
    provisional: bool,
    snapshot: int,
    collectors: Sequence[str],
    ticket: str | None = None,
) -> Baseline:
    entities, facts = tuple(entities), tuple(facts)
    head: dict[str, Any] = {
        "network": network,
        "approved_at": now,
        "approved_by": who,
        "provisional": provisional,
        "snapshot": snapshot,
        "collectors": list(collectors),
        "ticket": ticket,
    }
    insert = baselines.insert().values(body=packed([entities, facts]), **head)
    number = connection.execute(insert.returning(baselines.c.number)).scalar_one()
    return Baseline(Approval(number, **head), entities, facts)


def baseline(connection: Connection, network: str) -> Baseline | None:
    """The newest approval of a network."""
    query = select(baselines).where(baselines.c.network == network)
    row = connection.execute(query.order_by(baselines.c.number.desc()).limit(1)).first()
    if row is None:
        return None
    head = {name: value for name, value in row._mapping.items() if name != "body"}
    entities, facts = unpacked(row.body)
    return Baseline(Approval(**head), tuple(map(_entity, entities)), tuple(map(_fact, facts)))


def newest(connection: Connection, network: str) -> int:
    """The number of the newest approval, 0 for none."""
    query = select(baselines.c.number).where(baselines.c.network == network)
    return connection.scalar(query.order_by(baselines.c.number.desc()).limit(1)) or 0


def history(connection: Connection, network: str, before: int, limit: int) -> list[Approval]:
    """Approvals, the newest first."""
    query = select(*HEAD).where(baselines.c.network == network, baselines.c.number < before)
    rows = connection.execute(query.order_by(baselines.c.number.desc()).limit(limit))
    return [Approval(**row._mapping) for row in rows]


def wanted(connection: Connection, network: str) -> Intents:
    row = connection.execute(select(intents).where(intents.c.network == network)).first()
    if row is None:
        return Intents()
    return Intents(*(tuple(map(_fact, unpacked(body))) for body in (row.stated, row.derived)))


def want(connection: Connection, network: str, what: Intents, now: datetime, who: str) -> None:
    row = {
        "network": network,
        "stated": packed(what.stated),
        "derived": packed(what.derived),
        "changed_at": now,
        "changed_by": who,
    }
    upsert(connection, intents, [row])


def _entity(row: list[Any]) -> Entity:
    name, kind, asn, label, position = row
    return Entity(name, kind, asn, label, tuple(position) if position else None)


def _fact(row: list[Any]) -> Fact:
    predicate, args, params, holds = row
    return Fact(predicate, tuple(args), params, holds)
