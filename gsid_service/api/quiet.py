"""What silences and maintenance windows share: when one changes, all that was held is looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection

from gsid_service.app import Service
from gsid_service.store import notifications


@contextmanager
def changing(service: Service, now: datetime) -> Iterator[Connection]:
    """Write, and have every alert looked at anew: one may be quiet now, or no longer."""
    with service.database.write() as connection:
        yield connection
        notifications.look_at_all(connection, now)
    service.notifier.wake()
