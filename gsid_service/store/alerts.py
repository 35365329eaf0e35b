"""Alerts and what became of them: one row a (network, fact, parameter), and all its events."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from gsid_service.records import (
    Alert,
    AlertEvent,
    BrokenIntent,
    Ending,
    Fact,
    FactKey,
    Move,
    Restored,
    Severity,
    Status,
    UnderWay,
    Unsettled,
)
from gsid_service.store.news import tell
from gsid_service.store.tables import alert_events, alerts, networks, notifications

DOCUMENT = (
    "score",
    "observed",
    "expected",
    "snapshot_id",
    "collector",
    "reverting_repairs",
    "verified",
    "suggested",
)


GRAVEST = tuple(Severity)  # first
Slot = tuple[FactKey, str]


def of_network(
    connection: Connection, network: str, since: datetime | None = None
) -> dict[Slot, Alert]:
    """Every alert of a network, to be changed, with its events, all or since then."""
    query = select(alerts).where(alerts.c.network == network).order_by(alerts.c.number)
    found = _read(connection, connection.execute(query.with_for_update()).all(), since)
    return {(alert.fact, alert.parameter): alert for alert in found}


def unfinished(connection: Connection, network: str) -> list[Alert]:
    """Alerts of which there may be something to tell, to be changed, without their events."""
    told = select(notifications.c.alert).where(
        notifications.c.network == network, notifications.c.unfinished
    )
    query = select(alerts).where(
        alerts.c.network == network,
        (alerts.c.status != Status.RESOLVED.value) | alerts.c.number.in_(told),
    )
    rows = connection.execute(query.order_by(alerts.c.number).with_for_update())
    return [_alert(row, ()) for row in rows]


def unresolved(connection: Connection, network: str) -> list[Alert]:
    """Alerts that are not over, the gravest first, without their events."""
    query = select(alerts).where(
        alerts.c.network == network, alerts.c.status != Status.RESOLVED.value
    )
    found = [_alert(row, ()) for row in connection.execute(query.order_by(alerts.c.number))]
    return sorted(found, key=lambda alert: GRAVEST.index(alert.severity))


def slots(connection: Connection, network: str) -> set[Slot]:
    """What a network has alerts about."""
    query = select(alerts.c.document, alerts.c.parameter).where(alerts.c.network == network)
    return {(_key(row.document), row.parameter) for row in connection.execute(query)}


def urgent(connection: Connection, names: Sequence[str], scored_before: datetime) -> set[str]:
    """Of some networks those with an alert that is not resolved, and not scored since then."""
    if not names:
        return set()
    open_ones = alerts.c.network.in_(names) & (alerts.c.status != Status.RESOLVED.value)
    query = select(alerts.c.network).join(networks, networks.c.name == alerts.c.network)
    query = query.where(open_ones, networks.c.scored_at < scored_before)
    return set(connection.scalars(query.distinct()))


def find(connection: Connection, number: int, to_change: bool = False) -> Alert | None:
    """One alert with all its events."""
    query = select(alerts).where(alerts.c.number == number)
    rows = connection.execute(query.with_for_update() if to_change else query).all()
    return next(iter(_read(connection, rows)), None)


def page(
    connection: Connection,
    before: int | None,
    limit: int,
    networks: Sequence[str] | None,
    statuses: Sequence[str],
    severities: Sequence[str],
) -> list[Alert]:
    """Alerts without their events, the newest first; `networks` None is all."""
    query = select(alerts)
    if before is not None:
        query = query.where(alerts.c.number < before)
    for column, allowed in (
        (alerts.c.network, networks),
        (alerts.c.status, statuses or None),
        (alerts.c.severity, severities or None),
    ):
        if allowed is not None:
            query = query.where(column.in_(allowed))
    rows = connection.execute(query.order_by(alerts.c.number.desc()).limit(limit)).all()
    return [_alert(row, ()) for row in rows]


def save(connection: Connection, alert: Alert, known_events: int) -> Alert:
    """Keep an alert, and of its events those after the first `known_events`; it has an id then."""
    number = number_of(alert.id)
    if number is None:
        insert = alerts.insert().values(**_row(alert)).returning(alerts.c.number)
        number = connection.execute(insert).scalar_one()
    else:
        connection.execute(update(alerts).where(alerts.c.number == number).values(**_row(alert)))
    fresh = [
        {"alert": number, "at": e.at, "what": e.what, "why": e.why, "who": e.who}
        for e in alert.events[known_events:]
    ]
    if fresh:
        connection.execute(alert_events.insert(), fresh)
        tell(connection, alert.network)
    return replace(alert, id=f"a{number}")


def count(connection: Connection) -> dict[str, Counter[tuple[str, str]]]:
    """How many alerts each network has, by severity and status."""
    columns = alerts.c.network, alerts.c.severity, alerts.c.status
    found: dict[str, Counter[tuple[str, str]]] = {}
    for network, severity, status, number in connection.execute(
        select(*columns, func.count()).group_by(*columns)
    ):
        found.setdefault(network, Counter())[severity, status] = number
    return found


def number_of(alert_id: str) -> int | None:
    """The number in an id such as a17."""
    digits = alert_id[1:]
    return int(digits) if alert_id[:1] == "a" and digits.isdecimal() and len(digits) < 19 else None


def _row(alert: Alert) -> dict[str, Any]:
    return {
        "network": alert.network,
        "fact": alert.fact.digest,
        "parameter": alert.parameter,
        "status": alert.status.value,
        "severity": alert.severity.value,
        "first_seen": alert.first_seen,
        "last_seen": alert.last_seen,
        "document": {name: getattr(alert, name) for name in DOCUMENT}
        | {
            "key": [alert.fact.predicate, list(alert.fact.args)],
            "under_way": alert.under_way,
            "flapping": alert.flapping,
            "verdict": alert.verdict,
            "since": alert.since.isoformat() if alert.since else None,
            "reverting_breaks": alert.reverting_breaks,
            "ending": alert.ending.value if alert.ending else None,
            "unsettled": [list(network) for network in alert.unsettled],
            "broken_intents": [
                [
                    b.intent.predicate,
                    *map(list, (b.intent.args, b.wanted, b.actual)),
                    b.intent.holds,
                    b.derived,
                ]
                for b in alert.broken_intents
            ],
            "moved": [list(move) for move in alert.moved],
            "together": [[*t.fact, t.parameter, t.value] for t in alert.together],
        },
    }


def _read(
    connection: Connection, rows: Sequence[Row[Any]], since: datetime | None = None
) -> list[Alert]:
    if not rows:
        return []
    numbers = [row.number for row in rows]
    events: dict[int, list[AlertEvent]] = {number: [] for number in numbers}
    query = select(alert_events).where(alert_events.c.alert.in_(numbers))
    if since is not None:
        query = query.where(alert_events.c.at >= since)
    for row in connection.execute(query.order_by(alert_events.c.number)):
        events[row.alert].append(AlertEvent(row.at, row.what, row.why, row.who))
    return [_alert(row, events[row.number]) for row in rows]


def _key(document: Any) -> FactKey:
    predicate, args = document["key"]
    return FactKey(predicate, tuple(args))


def _alert(row: Row[Any], events: Iterable[AlertEvent]) -> Alert:
    document = row.document
    return Alert(
        id=f"a{row.number}",
        network=row.network,
        fact=_key(document),
        parameter=row.parameter,
        status=Status(row.status),
        severity=Severity(row.severity),
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        broken_intents=tuple(
            BrokenIntent(
                Fact(name, tuple(args), holds=holds), derived, tuple(wanted), tuple(actual)
            )
            for name, args, wanted, actual, holds, derived in document["broken_intents"]
        ),
        moved=tuple(Move(*move) for move in document["moved"]),
        together=tuple(
            Restored(FactKey(name, tuple(args)), parameter, value)
            for name, args, parameter, value in document["together"]
        ),
        under_way=UnderWay(*document["under_way"]) if document["under_way"] else None,
        flapping=document["flapping"],
        verdict=document["verdict"],
        since=datetime.fromisoformat(document["since"]) if document["since"] else None,
        # These are not in alerts that an older version kept.
        reverting_breaks=document.get("reverting_breaks", 0),
        ending=Ending(document["ending"]) if document.get("ending") else None,
        unsettled=tuple(Unsettled(*network) for network in document.get("unsettled", ())),
        events=tuple(events),
        **{name: document[name] for name in DOCUMENT},
    )
