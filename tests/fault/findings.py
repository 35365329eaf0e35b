"""After the faults: what the store and the receiver say, against what was acknowledged."""

from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import func, select

from gsid_service.alert.decide import RESOLVED, TURNS
from gsid_service.notices import Sending
from gsid_service.records import Status
from gsid_service.store.database import Database
from gsid_service.store.tables import alert_events, alerts, deliveries, networks, snapshots
from tests.fault.traffic import Net
from tests.notify.listener import Listener

PAGED = {"critical", "major"}


def unsettled(database: Database) -> int:
    """Networks that are behind, and messages that are not delivered."""
    with database.read() as connection:
        behind = select(func.count()).where(networks.c.news > networks.c.done)
        pending = select(func.count()).where(deliveries.c.status == Sending.PENDING.value)
        return (connection.scalar(behind) or 0) + (connection.scalar(pending) or 0)


def lost(database: Database, nets: list[Net]) -> int:
    """Acknowledged snapshots that are not stored as they were acknowledged."""
    with database.read() as connection:
        rows = connection.execute(
            select(snapshots.c.network, snapshots.c.number, snapshots.c.sequence)
        )
        stored = {(row.network, f"s{row.number}"): row.sequence for row in rows}
    return sum(
        stored.get((net.name, snapshot)) != sequence
        for net in nets
        for snapshot, sequence in net.acknowledged.items()
    )


def not_newest(database: Database, nets: list[Net]) -> list[str]:
    """Networks that are not scored in their newest state, or that failed."""
    with database.read() as connection:
        known = {row.name: row for row in connection.execute(select(networks))}
    return [
        net.name
        for net in nets
        if known[net.name].scored < int(net.newest[1:]) or known[net.name].problem is not None
    ]


def misjudged(database: Database, nets: list[Net]) -> list[str]:
    """Networks whose wrong value has no open alert, or whose right one has."""
    with database.read() as connection:
        query = select(alerts).where(alerts.c.status != Status.RESOLVED.value)
        firing = {(row.network, row.fact) for row in connection.execute(query)}
    return [net.name for net in nets if ((net.name, net.design.key.digest) in firing) != net.wrong]


class Turn(NamedTuple):
    """An alert from when it opens until it is resolved, if it is."""

    alert: str
    begun: datetime
    over: datetime | None


def untold(database: Database, listener: Listener) -> list[str]:
    """Turns of alerts that the receiver was not told of as firing, and then as resolved.

    One that begins before the end of the turn before has arrived waits for that, so that nobody
    hears of them in the wrong order; where it is over by then, there is nothing to tell.
    """
    told: dict[tuple[str, datetime], list[str]] = defaultdict(list)
    for alert, said in _told(listener).items():
        for status, *_, begun in said:
            told[alert, datetime.fromisoformat(begun)].append(status)
    arrived = _ends_arrived(database, listener)
    found = []
    last: dict[str, datetime] = {}  # when each alert's last turn began that was told
    for turn in _turns(database):
        seen = _collapsed(told[turn.alert, turn.begun])
        wanted = ["firing"] if turn.over is None else ["firing", "resolved"]
        late = arrived.get((turn.alert, last.get(turn.alert, turn.begun)))
        waited = late is not None and turn.over is not None and turn.begun < late
        if seen != wanted and not (seen == [] and waited):
            found.append(f"{turn} told as {seen}; the end before it arrived at {late}")
        if seen:
            last[turn.alert] = turn.begun
    return found


def _ends_arrived(database: Database, listener: Listener) -> dict[tuple[str, datetime], datetime]:
    """When it was known that the end of a turn had arrived."""
    query = select(deliveries.c.key, deliveries.c.settled_at)
    with database.read() as connection:
        settled = {row.key: row.settled_at for row in connection.execute(query)}
    return {
        (one["gsid"]["id"], datetime.fromisoformat(one["startsAt"])): settled[line["id"]]
        for line in listener.taken("/ok")
        for one in line["body"]["alerts"]
        if one["status"] == "resolved"
    }


def told_twice(listener: Listener) -> list[str]:
    """Alerts of which the same was told one after the other under two ids."""
    found = []
    for alert, said in _told(listener).items():
        found += [alert for one, other in pairwise(said) if one == other]
    return found


def _turns(database: Database) -> list[Turn]:
    """What there was to tell of each alert that is grave enough, one alert after the other."""
    turns: list[Turn] = []
    query = (
        select(alert_events.c.alert, alert_events.c.what, alert_events.c.at)
        .join(alerts, alerts.c.number == alert_events.c.alert)
        .where(alerts.c.severity.in_(PAGED), alert_events.c.what.in_(TURNS))
        .order_by(alert_events.c.alert, alert_events.c.number)
    )
    with database.read() as connection:
        for alert, what, at in connection.execute(query):
            if what == RESOLVED:
                turns[-1] = turns[-1]._replace(over=at)
            else:
                turns.append(Turn(f"a{alert}", at, None))
    return turns


def _told(listener: Listener) -> dict[str, list[tuple[str, str, int, str]]]:
    """What the receiver took of each alert, in order, each message once."""
    seen: set[str] = set()
    told: dict[str, list[tuple[str, str, int, str]]] = defaultdict(list)
    for line in listener.taken("/ok"):
        if line["id"] in seen:
            continue
        seen.add(line["id"])
        for one in line["body"]["alerts"]:
            about = one["gsid"]
            said = (one["status"], about["severity"], about["observed"], one["startsAt"])
            told[about["id"]].append(said)
    return told


def _collapsed(said: list[str]) -> list[str]:
    """Without what only changed while it lasted."""
    return [one for one, before in zip(said, [None, *said], strict=False) if one != before]


def repeated(listener: Listener) -> int:
    """Messages that came more than once, under the id that they had."""
    counted = Counter(line["id"] for line in listener.received("/ok"))
    bodies: dict[str, Any] = {}
    for line in listener.received("/ok"):
        assert bodies.setdefault(line["id"], line["body"]) == line["body"], "one id, two messages"
        assert line["status"] == 200, "a signature was wrong"
    return sum(count - 1 for count in counted.values())
