"""What any process may do for all of them: whose turn it is, so that one does it in its time."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, update

from gsid_service.store.database import upsert
from gsid_service.store.tables import EPOCH, upkeep


def take(connection: Connection, name: str, now: datetime, every: timedelta) -> bool:
    """Whether this is due, and so the caller's to do; False where somebody did it lately.

    A time that lies far ahead is of a clock that was set back since.
    """
    upsert(connection, upkeep, [{"name": name, "at": EPOCH}], keep=["at"])
    due = (upkeep.c.at <= now - every) | (upkeep.c.at > now + every)
    mine = update(upkeep).where(upkeep.c.name == name, due).values(at=now)
    return connection.execute(mine).rowcount > 0
