"""Which workers' processes are there: said by the locks of a connection, and by beats.

A process that dies loses its connection, and with it the locks that name its workers, at once; one
whose machine is gone misses its beats. Either way others end its jobs and do them anew.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import psycopg
import structlog
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

log = structlog.get_logger()
ALIVE = 7453299  # the class of the locks that name workers
PAUSE_SECONDS = 1.0  # before a database that does not answer is asked again
# What a database says that is away, full or read-only; it may be well again later.
UNAVAILABLE = (psycopg.OperationalError, psycopg.InternalError)


class Alive:
    """A connection that is there as long as this process is: its locks name the workers in it."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._shown: set[int] = set()
        self._turn = asyncio.Lock()

    async def show(self, workers: Iterable[int]) -> None:
        async with self._turn:
            await self._show(set(workers))

    async def _show(self, workers: set[int]) -> None:
        connection = await self._held()
        for number in workers - self._shown:
            took = await connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (ALIVE, number))
            if (await took.fetchone() or (False,))[0]:
                self._shown.add(number)

    async def _held(self) -> psycopg.AsyncConnection[Any]:
        """One that was cut has lost its locks, and says so only when it is used."""
        if self._connection is not None:
            try:
                await self._connection.execute("SELECT 1")
                return self._connection
            except psycopg.OperationalError:
                await self._connection.close()
        connection = await psycopg.AsyncConnection.connect(self._place, autocommit=True)
        self._connection, self._shown = connection, set()
        return connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class Manager(JobManager):
    """Ends jobs also where the database is away for a moment, and knows which are still ours."""

    def __init__(self, connector: PsycopgConnector, alive: Alive) -> None:
        super().__init__(connector)
        self._alive = alive
        self._beats: dict[int, float] = {}  # of our workers, when the database last heard of each

    async def register_worker(self) -> int:
        number = await super().register_worker()
        self._beats[number] = time.monotonic()
        try:
            await self._alive.show([number])
        except psycopg.Error:  # the watch tries again
            log.warning("the queue does not answer", worker=number)
        return number

    async def update_heartbeat(self, worker_id: int) -> None:
        """One beat that is missed ends no worker; the next is due soon."""
        begun = time.monotonic()
        try:
            await super().update_heartbeat(worker_id)
        except ConnectorException as error:
            if not isinstance(error.__cause__, UNAVAILABLE):
                raise
            log.warning("the queue does not answer", worker=worker_id)
            return
        self._beats[worker_id] = begun

    async def unregister_worker(self, worker_id: int) -> None:
        await super().unregister_worker(worker_id)
        self._beats.pop(worker_id, None)

    def is_ours(self, job: Job, seconds: float) -> bool:
        """Whether nobody else can have taken the job for a dead worker's."""
        heard = self._beats.get(job.worker_id or 0)
        return heard is not None and time.monotonic() - heard < seconds

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """A job that cannot be ended would hold its lock as long as its worker lives."""
        while True:
            try:
                await super().finish_job(job, status, delete_job)
                return
            except ConnectorException as error:
                if not isinstance(error.__cause__, UNAVAILABLE):
                    return  # it has ended already, by somebody who took us for dead
                if not self.is_ours(job, seconds=float("inf")):
                    raise
            await asyncio.sleep(PAUSE_SECONDS)
