"""What a look at the store tells of news: a stamp of each network, the newest alert event, and what
became of messages and of what keeps them back.

PostgreSQL also tells whoever listens, once the change is durable.
"""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select, text

from gsid_service.notices import Sending
from gsid_service.store.tables import (
    Instant,
    alert_events,
    alerts,
    deliveries,
    holds,
    maintenance,
    networks,
    receivers,
    silences,
)

_NETWORKS = select(networks.c.name, networks.c.done, networks.c.scored_at, networks.c.problem)
_NEWEST = select(func.max(alert_events.c.number))
_TELL = text("SELECT pg_notify(:channel, :name)")
_TOLD = select(
    *(
        query.scalar_subquery()
        for query in (
            select(func.max(deliveries.c.number)),
            *(
                select(func.max(deliveries.c.settled_at)).where(deliveries.c.status == became.value)
                for became in (Sending.DELIVERED, Sending.DEAD)
            ),
            select(func.sum(holds.c.failures)),
            select(func.count()).select_from(receivers),
            select(func.max(silences.c.number)),
            select(func.count()).where(silences.c.ends_at > bindparam("now", type_=Instant)),
            select(func.max(maintenance.c.number)),
            select(func.count(maintenance.c.cancelled_at)),
        )
    )
)
CHANNEL = "gsid_news"  # on which the names of networks come that changed
ANY = "*"  # in place of a network's name: something changed that may concern all


class Stamp(NamedTuple):
    """Changes with every cycle of a network."""

    done: int
    scored_at: datetime | None
    problem: str | None


class News(NamedTuple):
    stamps: dict[str, Stamp]
    event: int

    def since(self, before: "News", connection: Connection) -> set[str]:
        """The networks of which something changed."""
        changed = {name for name, stamp in self.stamps.items() if stamp != before.stamps.get(name)}
        if self.event == before.event:
            return changed
        touched = (
            select(alerts.c.network)
            .join(alert_events, alert_events.c.alert == alerts.c.number)
            .where(alert_events.c.number > before.event)
        )
        return changed | set(connection.scalars(touched.distinct()))


def tell(connection: Connection, network: str = ANY) -> None:
    """Have those that listen learn of a change, if and when it is durable."""
    if connection.dialect.name == "postgresql":
        connection.execute(_TELL, {"channel": CHANNEL, "name": network})


def look(connection: Connection) -> News:
    rows = connection.execute(_NETWORKS)
    stamps = {row.name: Stamp(row.done, row.scored_at, row.problem) for row in rows}
    return News(stamps, connection.scalar(_NEWEST) or 0)


def told(connection: Connection, now: datetime) -> tuple[Any, ...]:
    """Changes with what becomes of messages, and with silences and maintenance windows."""
    return tuple(connection.execute(_TOLD, {"now": now}).one())
