"""Jobs in the PostgreSQL of the store, by procrastinate: any number of processes take them.

One job a network or receiver runs at a time (its lock), and at most one more waits (its queueing
lock), which will see the newest state. No job is tried again as it is: whatever became of it, what
there is to do is in the store, and the watch that every process keeps wakes it anew. That also
takes up what a process that died has left behind, and what it had not asked for yet.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import structlog
from procrastinate import App, JobContext, PsycopgConnector, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import DeleteJobCondition, Job, Status
from procrastinate.manager import JobManager
from procrastinate.worker import Worker
from sqlalchemy import bindparam, text
from sqlalchemy.exc import SQLAlchemyError

from gsid_service.jobs import Away, Sender, Work
from gsid_service.jobs.alive import ALIVE, PAUSE_SECONDS, Alive, Manager
from gsid_service.jobs.connections import Connection, each_statement_alone, pool_of
from gsid_service.store import alerts, upkeep
from gsid_service.store.database import Database

log = structlog.get_logger()
SCORE, DELIVER, LOOK, SWEEP, FORGET = "score", "deliver", "look", "sweep", "forget"
UPKEEP = "upkeep"  # a queue of its own: no long round of a network delays it
QUEUES = {SCORE: SCORE, DELIVER: DELIVER, LOOK: DELIVER, SWEEP: UPKEEP, FORGET: UPKEEP}
SCORER, NOTIFIER = "scorer", "notifier"  # who takes jobs
URGENT = 10  # the priority of networks with open alerts
URGENT_EVERY = timedelta(seconds=10)  # and so often each, or the noisiest would be the only one
POLL_SECONDS = 1.0  # for jobs that nobody was told of, such as one whose lock is free again
TICK_SECONDS = 1.0
AWAY_SECONDS = 3.0  # without a connection; then it is tried anew, and not ever more rarely
FORGET_SECONDS = 3600.0  # of many networks it takes a while
BEATS = 10  # of a worker in the time after which it counts as dead,
MISSED = 1.5  # and so many missed are enough where its process is gone, too
STOP_SECONDS = 25.0  # Kubernetes kills after 30
AWAY = (ConnectorException, SQLAlchemyError)
_QUEUED = text(
    "SELECT queueing_lock FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock IN :locks"
).bindparams(bindparam("locks", expanding=True))
_DEAD = text(
    "SELECT id FROM procrastinate_workers"
    " WHERE last_heartbeat < now() - make_interval(secs => :quiet)"
    " AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = id"
    " AND classid = :alive)"
)
_RUNNING = text("SELECT lock FROM procrastinate_jobs WHERE status = 'doing' AND task_name = :task")


class Wanted(NamedTuple):
    """A job to be: a task, and what it is about, if anything."""

    task: str
    about: str = ""

    @property
    def lock(self) -> str:
        return f"{self.task} {self.about}"

    def job(self, priority: int = 0) -> Job:
        argument = {SCORE: "network", DELIVER: "receiver"}.get(self.task)
        return Job(
            queue=QUEUES[self.task],
            lock=self.lock,
            queueing_lock=self.lock,
            task_name=self.task,
            task_kwargs={argument: self.about} if argument else {},
            priority=priority,
        )


class Queue:
    """The jobs of all processes; this one takes those of its roles."""

    shared = True

    def __init__(
        self,
        database: Database,
        roles: Collection[str],
        at_once: int = 2,
        stalled_seconds: float = 10.0,
    ) -> None:
        self.database, self.roles = database, frozenset(roles) & {SCORER, NOTIFIER}
        self.at_once, self.stalled_seconds = at_once, stalled_seconds
        self._asking = JobManager(SyncPsycopgConnector())  # on the store's connections
        self._wanted: dict[Wanted, None] = {}
        self._wake = threading.Condition()
        self._stopping = False
        self._threads: list[threading.Thread] = []
        self._workers: set[Worker] = set()
        self._lost: set[int] = set()  # workers of ours that ended while the database was away
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    # Starting and stopping

    def start(self, work: Work) -> None:
        self._begin("asks for jobs", self._ask)
        if self.roles:
            self._begin("takes jobs", lambda: asyncio.run(self._take(work)))

    def _begin(self, name: str, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))

    def _end(self) -> None:
        if self._stopped is not None:
            self._stopped.set()
        for worker in self._workers:
            worker.stop()  # type: ignore[no-untyped-call]

    @property
    def alive(self) -> bool:
        return bool(self._threads) and all(thread.is_alive() for thread in self._threads)

    # Asking for jobs

    def score(self, networks: Iterable[str]) -> None:
        self._want(Wanted(SCORE, name) for name in networks)

    def deliver(self, receivers: Iterable[str]) -> None:
        self._want(Wanted(DELIVER, name) for name in receivers)

    def look(self, at: datetime | None = None) -> None:
        if at is None:  # who delivers looks every second anyway
            self._want([Wanted(LOOK)])

    def _want(self, wanted: Iterable[Wanted]) -> None:
        with self._wake:
            self._wanted |= dict.fromkeys(wanted)
            self._wake.notify()

    def _ask(self) -> None:
        """On a thread, so that nobody who has news waits for the queue, and many go at once."""
        while True:
            with self._wake:
                if not self._wanted and not self._stopping:
                    self._wake.wait()
                wanted, self._wanted = list(self._wanted), {}
                ending = self._stopping
            try:
                self.defer(wanted)
            except AWAY as error:
                log.warning("the queue does not answer", problem=type(error).__name__)
                self._want(wanted)
                time.sleep(PAUSE_SECONDS)
            if ending:
                return

    def defer(self, wanted: Collection[Wanted]) -> None:
        """Put jobs into the queue, save for those that wait in it already."""
        if not wanted:
            return
        with self.database.read() as connection:
            queued = set(connection.scalars(_QUEUED, {"locks": [w.lock for w in wanted]}))
            names = [w.about for w in wanted if w.task == SCORE and w.lock not in queued]
            urgent = alerts.urgent(connection, names, datetime.now(UTC) - URGENT_EVERY)
        fresh = [
            w.job(URGENT if w.task == SCORE and w.about in urgent else 0)
            for w in sorted(wanted)
            if w.lock not in queued
        ]
        try:
            self._put(fresh)
        except AlreadyEnqueued:  # another process was faster with one of them
            for job in fresh:
                try:
                    self._put([job])
                except AlreadyEnqueued:
                    continue

    def _put(self, found: list[Job]) -> None:
        if found:
            with self.database.write() as connection:
                driver: Any = connection.connection.driver_connection
                self._asking.batch_defer_jobs(found, connection=driver)

    # Taking jobs

    async def _take(self, work: Work) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        if self._stopping:
            return
        lanes = [(UPKEEP, 1)]
        if SCORER in self.roles:
            lanes.append((SCORE, self.at_once))
        if NOTIFIER in self.roles:
            lanes.append((DELIVER, len(work.senders) + 1))
        threads = 2 + sum(count for _, count in lanes)
        self._loop.set_default_executor(ThreadPoolExecutor(threads, "job"))
        alive = Alive(self.database.place)
        app = self._app(work, alive, connections=2 + 2 * len(lanes))
        await self._insist(app.open_async)
        try:
            await asyncio.gather(
                *(self._keep_working(app, queue, count) for queue, count in lanes),
                self._keep_watch(app.job_manager, work, alive),
            )
        finally:
            await alive.close()
            await app.close_async()

    def _app(self, work: Work, alive: Alive, connections: int) -> App:
        connector = PsycopgConnector(
            conninfo=self.database.place,
            pool_factory=pool_of,
            connection_class=Connection,
            kwargs={"client_encoding": "utf8"},
            configure=each_statement_alone,
            min_size=1,
            max_size=connections,
            timeout=AWAY_SECONDS,
            reconnect_timeout=AWAY_SECONDS,
        )
        app = App(connector=connector)
        app.job_manager = manager = Manager(connector, alive)
        stalled = self.stalled_seconds

        @app.task(name=SCORE)
        def score(network: str) -> None:
            if not self._ran(lambda: work.score(network)):
                time.sleep(PAUSE_SECONDS)
                self.score([network])

        @app.task(name=DELIVER, pass_context=True)
        def deliver(context: JobContext, receiver: str) -> None:
            sender = work.senders.get(receiver)
            if sender is None:
                log.warning("not one of our receivers", receiver=receiver)
                return
            self._ran(lambda: self._send(sender, lambda: manager.is_ours(context.job, stalled)))

        @app.task(name=LOOK)
        def look() -> None:
            self._ran(work.look)

        @app.task(name=SWEEP)
        def sweep() -> None:
            self._ran(work.sweep)

        @app.task(name=FORGET)
        def forget() -> None:
            self._ran(work.forget)

        return app

    def _send(self, sender: Sender, is_ours: Callable[[], bool]) -> None:
        """What is due, unless another process may have taken over meanwhile."""
        sender.resume()
        while not self._stopping and is_ours():
            if sender.step() > 0:
                return

    def _ran(self, run: Callable[[], object]) -> bool:
        """Whether what it needs was there; it may come back, and what is pending stays so."""
        try:
            run()
        except Away as error:
            log.warning("the cycle goes on", problem=str(error))
            return False
        except SQLAlchemyError as error:
            log.warning("the database does not answer", problem=str(error).splitlines()[0])
            return False
        return True

    async def _keep_working(self, app: App, queue: str, at_once: int) -> None:
        """A worker, and another one whenever the database was away."""
        while not self._stopping:
            worker = Worker(
                app,
                queues=[queue],
                name=queue,
                concurrency=at_once,
                fetch_job_polling_interval=POLL_SECONDS,
                delete_jobs=DeleteJobCondition.ALWAYS,
                install_signal_handlers=False,
                update_heartbeat_interval=self.stalled_seconds / BEATS,
                stalled_worker_timeout=self.stalled_seconds,
            )
            self._workers.add(worker)
            try:
                await worker.run()  # type: ignore[no-untyped-call]
            except ConnectorException as error:
                cause = type(error.__cause__ or error).__name__
                log.warning("the queue does not answer", queue=queue, problem=cause)
            finally:
                self._workers.discard(worker)
            if worker.worker_id is not None:
                self._lost.add(worker.worker_id)
            if not self._stopping:
                await asyncio.sleep(PAUSE_SECONDS)

    async def _insist(self, ask: Callable[[], Awaitable[Any]]) -> None:
        while not self._stopping:
            try:
                await ask()
                return
            except (psycopg.Error, ConnectorException) as error:
                log.warning("the queue does not answer", problem=type(error).__name__)
                await asyncio.sleep(PAUSE_SECONDS)

    # Watching

    async def _keep_watch(self, manager: JobManager, work: Work, alive: Alive) -> None:
        looked = 0.0
        while not self._stopping:
            try:
                await alive.show(w.worker_id for w in self._workers if w.worker_id is not None)
                await self._revive(manager)
                if NOTIFIER in self.roles:
                    await asyncio.to_thread(self._wake_due, work)
                if time.monotonic() - looked >= self.stalled_seconds / 2:
                    looked = time.monotonic()
                    await asyncio.to_thread(self._wake_behind, work)
                    await asyncio.to_thread(self._wake_upkeep, work)
            except (*AWAY, psycopg.Error) as error:
                log.warning("the queue does not answer", problem=type(error).__name__)
            await self._rest(TICK_SECONDS)

    async def _rest(self, seconds: float) -> None:
        if self._stopped is not None:
            try:
                await asyncio.wait_for(self._stopped.wait(), seconds)
            except TimeoutError:
                return

    async def _revive(self, manager: JobManager) -> None:
        """End the jobs of workers that died, which hold their locks, and wake what they did."""
        ours = {worker.worker_id for worker in self._workers}
        for number in {*self._lost, *await asyncio.to_thread(self._dead)} - ours:
            await manager.unregister_worker(number)
            self._lost.discard(number)
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=self.stalled_seconds):
            log.warning("taken up again", job=job.task_name, about=job.lock)
            await manager.finish_job(job, Status.FAILED, delete_job=True)
            self._want([Wanted(job.task_name, *map(str, job.task_kwargs.values()))])
        await manager.prune_stalled_workers(self.stalled_seconds)

    def _dead(self) -> list[int]:
        """Workers that miss beats and whose process is gone: a killed one is found out early."""
        quiet = {"quiet": self.stalled_seconds / BEATS * MISSED, "alive": ALIVE}
        with self.database.read() as connection:
            return list(connection.scalars(_DEAD, quiet))

    def _wake_due(self, work: Work) -> None:
        work.look()
        self.deliver(work.due())

    def _wake_behind(self, work: Work) -> None:
        """Networks whose news nobody has dealt with, nor is about to: whoever kept it died before
        it could ask."""
        with self.database.read() as connection:
            running = set(connection.scalars(_RUNNING, {"task": SCORE}))
        self.score(name for name in work.behind() if Wanted(SCORE, name).lock not in running)

    def _wake_upkeep(self, work: Work) -> None:
        now, sweep = datetime.now(UTC), work.sweep_seconds()
        for task, seconds in ((SWEEP, sweep), (FORGET, max(sweep, FORGET_SECONDS))):
            with self.database.write() as connection:
                mine = upkeep.take(connection, task, now, timedelta(seconds=seconds))
            if mine:
                self._want([Wanted(task)])
