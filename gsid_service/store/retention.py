"""Retention: history goes by age and number, in small steps that never hold up who else writes."""

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, delete, func, select

from gsid_service.notices import Sending
from gsid_service.records import Status
from gsid_service.store.snapshots import chains
from gsid_service.store.tables import (
    alert_events,
    alerts,
    baselines,
    changes,
    deliveries,
    groups,
    notifications,
    score_history,
    snapshots,
)

STEP = 200  # rows of one transaction


def forget_snapshots(
    connection: Connection, network: str, before: datetime, at_most: int, step: int = STEP
) -> int:
    """Delete some snapshots that are too old or too many; never one that a view rests on."""
    of_network = snapshots.c.network == network
    newest = select(snapshots.c.number).where(of_network).order_by(snapshots.c.number.desc())
    kept = connection.scalar(newest.offset(at_most - 1).limit(1)) or 0
    needed = chains(connection, network)
    beyond = (snapshots.c.received_at < before) | (snapshots.c.number < kept)
    deleted = 0
    for collector, chain in needed.items():
        mine = of_network & (snapshots.c.collector == collector)
        old = mine & (snapshots.c.sequence < chain.first) & beyond
        deleted += _delete(connection, snapshots, old, step - deleted)
    return deleted


def forget_history(connection: Connection, network: str, before: datetime, step: int = STEP) -> int:
    """Delete some lines of scores, closed changes, resolved alerts and approvals that another one
    took the place of, where they are too old."""
    old_scores = (score_history.c.network == network) & (score_history.c.at < before)
    deleted = _delete(connection, score_history, old_scores, step)
    newest = select(func.max(baselines.c.number)).where(baselines.c.network == network)
    superseded = (
        (baselines.c.network == network)
        & (baselines.c.approved_at < before)
        & (baselines.c.number < newest.scalar_subquery())
    )
    deleted += _delete(connection, baselines, superseded, step - deleted)
    closed = (changes.c.network == network) & (changes.c.closed_at < before)
    deleted += _delete(connection, changes, closed, step - deleted)
    over = (
        (alerts.c.network == network)
        & (alerts.c.status == Status.RESOLVED.value)
        & (alerts.c.last_seen < before)
    )
    gone = list(connection.scalars(select(alerts.c.number).where(over).limit(step)))
    if gone:
        connection.execute(delete(notifications).where(notifications.c.alert.in_(gone)))
        connection.execute(delete(alert_events).where(alert_events.c.alert.in_(gone)))
        connection.execute(delete(alerts).where(alerts.c.number.in_(gone)))
    return deleted + len(gone)


def forget_deliveries(
    connection: Connection, network: str, before: datetime, step: int = STEP
) -> int:
    """Delete some messages that were delivered or given up too long ago, and groups without use."""
    old = (deliveries.c.network == network) & (deliveries.c.settled_at < before)
    settled = old & (deliveries.c.status != Sending.PENDING.value)
    used = select(notifications.c.group).where(notifications.c.group == groups.c.key)
    unused = select(groups.c.key).where(groups.c.opened_at < before, ~used.exists()).limit(step)
    connection.execute(delete(groups).where(groups.c.key.in_(list(connection.scalars(unused)))))
    return _delete(connection, deliveries, settled, step)


def _delete(connection: Connection, table: Table, where: Any, limit: int) -> int:
    if limit <= 0:
        return 0
    oldest = select(table.c.number).where(where).order_by(table.c.number).limit(limit)
    numbers = list(connection.scalars(oldest))
    if numbers:
        connection.execute(delete(table).where(table.c.number.in_(numbers)))
    return len(numbers)
