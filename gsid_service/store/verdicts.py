"""What operators said of alerts, a true or a false alarm; kept when the alert is forgotten."""

from collections import Counter
from datetime import datetime

from sqlalchemy import Connection, func, select

from gsid_service.records import Alert
from gsid_service.store.alerts import number_of
from gsid_service.store.database import upsert
from gsid_service.store.tables import verdicts


def keep(connection: Connection, alert: Alert, who: str, now: datetime) -> None:
    """The last word on this turn of the alert counts."""
    row = {
        "alert": number_of(alert.id),
        "since": alert.since or alert.first_seen,
        "network": alert.network,
        "verdict": alert.verdict,
        "at": now,
        "who": who,
    }
    upsert(connection, verdicts, [row])


def count(connection: Connection) -> dict[str, Counter[str]]:
    """True and false alarms of each network."""
    columns = verdicts.c.network, verdicts.c.verdict
    found: dict[str, Counter[str]] = {}
    for network, verdict, number in connection.execute(
        select(*columns, func.count()).group_by(*columns)
    ):
        found.setdefault(network, Counter())[verdict] = number
    return found
