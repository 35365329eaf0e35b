"""What a look at the store tells of news: a stamp of each network, and the newest alert event.

PostgreSQL also tells whoever listens, once the change is durable.
"""

from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import Connection, func, select, text

from gsid_service.store.tables import alert_events, alerts, networks

_NETWORKS = select(networks.c.name, networks.c.done, networks.c.scored_at, networks.c.problem)
_NEWEST = select(func.max(alert_events.c.number))
_TELL = text("SELECT pg_notify(:channel, :name)")
CHANNEL = "gsid_news"  # on which the names of networks come that changed


class Stamp(NamedTuple):
    """Changes with every cycle of a network."""

    done: int
    scored_at: datetime | None
    problem: str | None


class News(NamedTuple):
    stamps: dict[str, Stamp]
    event: int

    @property
    def version(self) -> str:
        """The same as long as nothing changes."""
        return sha256(repr((sorted(self.stamps.items()), self.event)).encode()).hexdigest()[:16]

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


def tell(connection: Connection, network: str) -> None:
    """Have those that listen learn of a change, if and when it is durable."""
    if connection.dialect.name == "postgresql":
        connection.execute(_TELL, {"channel": CHANNEL, "name": network})


def look(connection: Connection) -> News:
    rows = connection.execute(_NETWORKS)
    stamps = {row.name: Stamp(row.done, row.scored_at, row.problem) for row in rows}
    return News(stamps, connection.scalar(_NEWEST) or 0)
