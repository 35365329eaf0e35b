"""The outbox: messages until they are delivered or dead, and receivers that want no more."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, delete, func, select, update

from gsid_service.notices import REPEAT, Delivery, Message, Outgoing, Sending
from gsid_service.store.database import packed, unpacked, upsert
from gsid_service.store.news import tell
from gsid_service.store.tables import deliveries, holds, receivers

HEAD = [column for column in deliveries.c if column.name != "message"]
PENDING = deliveries.c.status == Sending.PENDING.value


class Disabled(NamedTuple):
    """Since when a receiver gets nothing, and why."""

    at: datetime
    reason: str


class Hold(NamedTuple):
    """Until when a receiver that is away is left alone, after how many failures in a row."""

    until: datetime
    failures: int


def put(
    connection: Connection,
    network: str,
    receiver: str,
    messages: Sequence[Outgoing],
    now: datetime,
    dead: str | None = None,
) -> None:
    """Queue messages, as dead for a reason where there is one; of the repeats to a group only the
    last is worth keeping."""
    repeated = [out.group.key for out in messages if out.kind == REPEAT]
    if repeated:
        old = deliveries.c.group.in_(repeated) & (deliveries.c.kind == REPEAT)
        delivered = deliveries.c.status == Sending.DELIVERED.value
        connection.execute(delete(deliveries).where(old & delivered))
    rows = [
        {
            "key": out.key,
            "receiver": receiver,
            "network": network,
            "group": out.group.key,
            "kind": out.kind,
            "status": (Sending.DEAD if dead else Sending.PENDING).value,
            "attempts": 0,
            "answer": dead,
            "settled_at": now if dead else None,
            **dict.fromkeys(("created_at", "since", "due"), now),
            "message": packed(out.message),
        }
        for out in messages
    ]
    if rows:
        connection.execute(deliveries.insert(), rows)
        tell(connection)


def take(
    connection: Connection, receiver: str, now: datetime
) -> tuple[Delivery, Message] | datetime | None:
    """The next message for a receiver, or when there will be one; None where all is delivered.

    Within a group messages go in the order in which they were made, so that nobody learns that
    something is over before it began.
    """
    earlier = deliveries.alias()
    first = ~(
        select(earlier.c.number)
        .where(earlier.c.group == deliveries.c.group, earlier.c.status == Sending.PENDING.value)
        .where(earlier.c.number < deliveries.c.number)
        .exists()
    )
    query = select(deliveries).where(deliveries.c.receiver == receiver, PENDING, first)
    query = query.order_by(deliveries.c.due, deliveries.c.number).limit(1)
    row = connection.execute(query).first()
    if row is None:
        return None
    due: datetime = row.due
    waits = due > now and row.attempts > 0  # else only the clock was set back since it was made
    return due if waits else (_delivery(row), unpacked(row.message))


def hurry(connection: Connection, receiver: str, now: datetime) -> None:
    """What waits for a receiver is due, and the receiver is not left alone."""
    waiting = (deliveries.c.receiver == receiver) & PENDING & (deliveries.c.due > now)
    connection.execute(update(deliveries).where(waiting).values(due=now))
    release(connection, receiver)


def settle(connection: Connection, number: int, now: datetime, **became: Any) -> None:
    """One try is over: delivered, dead, or due again."""
    values = {name: v.value if isinstance(v, Sending) else v for name, v in became.items()}
    if values.get("status") not in {None, Sending.PENDING.value}:
        values["settled_at"] = now
    query = update(deliveries).where(deliveries.c.number == number, PENDING)
    connection.execute(query.values(attempts=deliveries.c.attempts + 1, **values))
    tell(connection)


def held(connection: Connection, receiver: str) -> Hold | None:
    row = connection.execute(select(holds).where(holds.c.receiver == receiver)).first()
    return None if row is None else Hold(row.until, row.failures)


def hold(connection: Connection, receiver: str, found: Hold) -> None:
    upsert(connection, holds, [{"receiver": receiver, **found._asdict()}])


def release(connection: Connection, receiver: str) -> None:
    connection.execute(delete(holds).where(holds.c.receiver == receiver))


def due(connection: Connection, now: datetime) -> set[str]:
    """The receivers that a message may be sent to now."""
    waiting = select(holds.c.receiver).where(holds.c.until > now)
    is_due = (deliveries.c.due <= now) | (deliveries.c.attempts == 0)  # as `take` has it
    query = select(deliveries.c.receiver).where(PENDING, is_due)
    return set(connection.scalars(query.where(deliveries.c.receiver.not_in(waiting)).distinct()))


def disable(connection: Connection, receiver: str, now: datetime, reason: str) -> int:
    """The receiver wants no more: what waits for it is dead, and can be replayed; how much."""
    row = {"name": receiver, "disabled_at": now, "reason": reason}
    upsert(connection, receivers, [row])
    return bury(connection, receiver, now, reason)


def bury(
    connection: Connection,
    receiver: str,
    now: datetime,
    reason: str,
    before: datetime | None = None,
) -> int:
    """Make what waits for a receiver dead, all or what waits since then; how much it was."""
    query = update(deliveries).where(deliveries.c.receiver == receiver, PENDING)
    if before is not None:
        query = query.where(deliveries.c.since <= before)
    dead = query.values(status=Sending.DEAD.value, settled_at=now, answer=reason)
    tell(connection)
    return connection.execute(dead).rowcount


def enable(connection: Connection, receiver: str) -> None:
    connection.execute(delete(receivers).where(receivers.c.name == receiver))
    tell(connection)


def disabled(connection: Connection) -> dict[str, Disabled]:
    rows = connection.execute(select(receivers))
    return {row.name: Disabled(row.disabled_at, row.reason) for row in rows}


def replay(connection: Connection, number: int, now: datetime) -> None:
    """A dead message waits again, under the key that it had."""
    fresh = {"status": Sending.PENDING.value, "attempts": 0, "settled_at": None}
    query = update(deliveries).where(deliveries.c.number == number)
    connection.execute(query.values(since=now, due=now, **fresh))
    tell(connection)


def find(connection: Connection, number: int, to_change: bool = False) -> Delivery | None:
    query = select(*HEAD).where(deliveries.c.number == number)
    row = connection.execute(query.with_for_update() if to_change else query).first()
    return None if row is None else _delivery(row)


def message(connection: Connection, number: int) -> Message:
    query = select(deliveries.c.message).where(deliveries.c.number == number)
    found: Message = unpacked(connection.execute(query).scalar_one())
    return found


def page(
    connection: Connection,
    before: int | None,
    limit: int,
    networks: Sequence[str] | None,
    statuses: Sequence[str] = (),
    receiver: str | None = None,
) -> list[Delivery]:
    """Deliveries, the newest first; `networks` None is all."""
    query: Select[Any] = select(*HEAD)
    if before is not None:
        query = query.where(deliveries.c.number < before)
    if networks is not None:
        query = query.where(deliveries.c.network.in_(networks))
    if statuses:
        query = query.where(deliveries.c.status.in_(statuses))
    if receiver is not None:
        query = query.where(deliveries.c.receiver == receiver)
    rows = connection.execute(query.order_by(deliveries.c.number.desc()).limit(limit))
    return [_delivery(row) for row in rows]


def waiting_groups(connection: Connection, network: str) -> set[str]:
    """The groups that have a message under way."""
    mine = (deliveries.c.network == network) & PENDING
    return set(connection.scalars(select(deliveries.c.group).where(mine).distinct()))


def count(connection: Connection) -> dict[tuple[str, str], int]:
    """Messages by receiver and status, those that are pending or dead."""
    columns = deliveries.c.receiver, deliveries.c.status
    unsent = deliveries.c.status.in_([Sending.PENDING.value, Sending.DEAD.value])
    query = select(*columns, func.count()).where(unsent).group_by(*columns)
    return {(row[0], row[1]): row[2] for row in connection.execute(query)}


def _delivery(row: Row[Any]) -> Delivery:
    held = {name: value for name, value in row._mapping.items() if name != "message"}
    return Delivery(**held | {"status": Sending(row.status)})
