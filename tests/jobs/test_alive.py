"""Who is alive, on a real PostgreSQL: locks that come back, beats that may fail."""

import asyncio

import psycopg
import pytest
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.manager import JobManager

from gsid_service.jobs.alive import ALIVE, Alive, Manager
from gsid_service.store.database import Database
from tests.jobs.working import cut


def held(database: Database) -> list[int]:
    """The workers that locks name, as others see it."""
    with psycopg.connect(database.place) as connection:
        asked = "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = %s ORDER BY 1"
        return [number for (number,) in connection.execute(asked, [ALIVE])]


def test_locks_come_back_after_the_connection_was_cut(database: Database) -> None:
    async def show_twice() -> None:
        alive = Alive(database.place)
        await alive.show([7, 8])
        assert held(database) == [7, 8]
        cut(database)
        assert held(database) == []
        await alive.show([7, 8])
        assert held(database) == [7, 8]
        await alive.close()

    asyncio.run(show_twice())
    assert held(database) == []


def test_a_beat_that_the_database_misses_ends_no_worker(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def missed(_manager: JobManager, _worker: int) -> None:
        raise ConnectorException from psycopg.OperationalError("the server went away")

    async def gone(_manager: JobManager, _worker: int) -> None:
        raise ConnectorException from psycopg.ProgrammingError("there is no such function")

    manager = Manager(PsycopgConnector(conninfo=database.place), Alive(database.place))
    monkeypatch.setattr(JobManager, "update_heartbeat", missed)
    asyncio.run(manager.update_heartbeat(7))
    monkeypatch.setattr(JobManager, "update_heartbeat", gone)
    with pytest.raises(ConnectorException):
        asyncio.run(manager.update_heartbeat(7))
