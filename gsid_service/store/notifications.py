"""Where each alert stands with each receiver: its group, what was told, and the last reason."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select, update

from gsid_service.notices import Group, Notification, Told
from gsid_service.records import Severity, Status
from gsid_service.store.alerts import number_of
from gsid_service.store.database import upsert
from gsid_service.store.tables import alerts, deliveries, groups, networks, notifications

JOINED = notifications.outerjoin(groups, groups.c.key == notifications.c.group).outerjoin(
    deliveries, deliveries.c.key == notifications.c.delivery
)
COLUMNS = (
    *notifications.c,
    *(groups.c.key, groups.c.cause, groups.c.opened_at, groups.c.flushed_at),
    deliveries.c.number.label("delivery_number"),
)


def of_network(connection: Connection, network: str) -> list[Notification]:
    """What is known of the alerts of which there may be more to tell."""
    joined = JOINED.join(alerts, alerts.c.number == notifications.c.alert)
    mine = notifications.c.network == network
    open_ones = notifications.c.unfinished | (alerts.c.status != Status.RESOLVED.value)
    rows = connection.execute(select(*COLUMNS).select_from(joined).where(mine, open_ones))
    return [_notification(row) for row in rows]


def of_alert(connection: Connection, number: int) -> list[Notification]:
    query = select(*COLUMNS).select_from(JOINED).where(notifications.c.alert == number)
    return [_notification(r) for r in connection.execute(query.order_by(notifications.c.receiver))]


def save(
    connection: Connection, network: str, records: Sequence[tuple[Notification, str | None]]
) -> None:
    """Keep notifications, each with the key of a new message about it, with their groups."""
    known = {record.group.key: record.group for record, _ in records if record.group}
    upsert(connection, groups, [group._asdict() for group in known.values()])
    rows = [_row(network, record) | {"delivery": key} for record, key in records if key]
    upsert(connection, notifications, rows)
    upsert(connection, notifications, [_row(network, record) for record, key in records if not key])


def look_at(connection: Connection, names: Sequence[str], at: datetime | None) -> None:
    """When to look for something to tell of the alerts of networks."""
    change = update(networks).values(notify_at=at)
    connection.execute(change.where(networks.c.name.in_(names)))


def look_at_all(connection: Connection, at: datetime) -> None:
    """Look at all networks of whose alerts there may be something to tell."""
    standing = select(alerts.c.network).where(alerts.c.status != Status.RESOLVED.value)
    untold = select(notifications.c.network).where(notifications.c.unfinished)
    query = select(networks.c.name).where(networks.c.name.in_(standing.union(untold)))
    # Locked one after the other, as all do who change several.
    names = connection.scalars(query.order_by(networks.c.name).with_for_update())
    look_at(connection, list(names), at)


def take(connection: Connection, name: str, now: datetime, ahead: datetime) -> bool:
    """Take it upon oneself to look at a network that is due; False where somebody else did."""
    mine = (networks.c.name == name) & _is_due(now, ahead)
    return connection.execute(update(networks).where(mine).values(notify_at=None)).rowcount > 0


def to_look_at(connection: Connection, now: datetime, ahead: datetime) -> list[str]:
    """Those that are due; all that was planned later than `ahead` is, since the clock was set back
    meanwhile."""
    query = select(networks.c.name).where(_is_due(now, ahead))
    return list(connection.scalars(query.order_by(networks.c.notify_at, networks.c.name)))


def _is_due(now: datetime, ahead: datetime) -> ColumnElement[bool]:
    set_back = networks.c.notify_at.is_not(None) & (networks.c.scored_at > ahead)
    return (networks.c.notify_at <= now) | set_back


def next_look(connection: Connection) -> datetime | None:
    found: datetime | None = connection.scalar(select(func.min(networks.c.notify_at)))
    return found


def _row(network: str, record: Notification) -> dict[str, Any]:
    told = record.told
    return {
        "alert": number_of(record.alert),
        "receiver": record.receiver,
        "network": network,
        "group": record.group.key if record.group else None,
        "told_status": told.status.value if told else None,
        "told_severity": told.severity.value if told else None,
        "told_observed": told.observed if told else None,
        "told_at": told.at if told else None,
        "stage": record.stage,
        "reason": record.reason,
        "at": record.at,
        "unfinished": record.unfinished,
    }


def _notification(row: Row[Any]) -> Notification:
    told = None
    if row.told_status is not None:
        told = Told(
            Status(row.told_status), Severity(row.told_severity), row.told_observed, row.told_at
        )
    group = None
    if row.key is not None:
        group = Group(row.key, row.cause, row.opened_at, row.flushed_at)
    delivery = None if row.delivery_number is None else f"d{row.delivery_number}"
    what = (row.stage, row.reason, row.at, row.unfinished, delivery)
    return Notification(f"a{row.alert}", row.receiver, told, group, *what)
