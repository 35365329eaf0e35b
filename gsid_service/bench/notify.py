"""`gsid bench notify`: signed webhooks from a durable outbox to a receiver process on loopback."""

import logging
import os
import socket
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import structlog

from gsid_service.bench.figure import Figure
from gsid_service.config import Notify, Receiver, Settings
from gsid_service.jobs.embedded import Embedded
from gsid_service.metrics import Metrics
from gsid_service.notices import Group, Message, Outgoing, Sending
from gsid_service.notifier import Notifier
from gsid_service.notify.post import Poster
from gsid_service.notify.receivers.webhook import fitting
from gsid_service.notify.sample import sample
from gsid_service.store import outbox, snapshots
from gsid_service.store.database import Database, connect

MESSAGES = 1000
RECEIVERS = (1, 10, 50)
PENDING, FEW = 100_000, 1000
RUN_SECONDS = 5.0  # with a receiver that is away
NETWORK = "bench"
SECRET = "GSID_BENCH_SECRET"  # noqa: S105 (the variable's name)


def measure() -> Iterator[Figure]:
    """Deliveries a second with some receivers, and memory with many messages pending."""
    quiet = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=quiet)  # a receiver that is away is part of it
    os.environ[SECRET] = "whsec_" + b64encode(os.urandom(32)).decode()
    with _sink() as port:
        bare = _bare(port)
        for count in RECEIVERS:
            yield _delivered(port, count, bare)
    yield _memory()


@contextmanager
def _sink() -> Iterator[int]:
    port = _free_port()
    command = [sys.executable, "-m", "gsid_service.bench.sink", str(port)]
    process = subprocess.Popen(command)  # noqa: S603 (our own program)
    try:
        _wait_until(lambda: _listens(port), 30)
        yield port
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def _notifier(port: int, receivers: int) -> Iterator[tuple[Notifier, Database, list[str]]]:
    names = [f"r{number}" for number in range(receivers)]
    url = f"http://127.0.0.1:{port}/"
    made = [Receiver(name=name, type="webhook", url=url, secret_env=SECRET) for name in names]
    settings = Settings(receivers=tuple(made), notify=Notify(give_up_seconds=3600))
    with tempfile.TemporaryDirectory() as folder:
        database = connect(f"sqlite:///{Path(folder) / 'bench.db'}", migrate=True)
        jobs = Embedded()
        notifier = Notifier(settings, database, Metrics(), _now, jobs)
        yield notifier, database, names
        jobs.stop()
        notifier.close()
        database.close()


def _start(notifier: Notifier) -> None:
    notifier.prepare()
    notifier.jobs.start(notifier.work(score=lambda _: None))


def _fill(database: Database, names: list[str], count: int) -> None:
    """Messages of a group each, shared out among receivers."""
    now = _now()
    message = sample(now)
    with database.write() as connection:
        snapshots.announce(connection, [NETWORK], now)
        for place, name in enumerate(names):
            mine = range(place, count, len(names))
            out = [_outgoing(Group(uuid4().hex, NETWORK, now), message) for _ in mine]
            outbox.put(connection, NETWORK, name, out, now)


def _outgoing(group: Group, message: Message) -> Outgoing:
    return Outgoing(f"msg_{uuid4().hex}", group, "new", message)


def _delivered(port: int, receivers: int, bare: float) -> Figure:
    with _notifier(port, receivers) as (notifier, database, names):
        _fill(database, names, MESSAGES)
        begun = time.perf_counter()
        _start(notifier)
        _wait_until(lambda: _pending(database) == 0, 300)
        rate = MESSAGES / (time.perf_counter() - begun)
    name = f"deliveries with {receivers} receiver{'s' * (receivers > 1)}"
    return Figure(name, rate, "1/s", f"{bare:.0f} bare POSTs a second", rate / bare)


def _bare(port: int) -> float:
    """The same body by the same client on one connection, and nothing else."""
    poster = Poster(f"http://127.0.0.1:{port}/", 10)
    body = fitting(sample(_now()), "bench", "").encode()
    begun = time.perf_counter()
    for _ in range(MESSAGES):
        poster.post(body, {})
    poster.close()
    return MESSAGES / (time.perf_counter() - begun)


def _memory() -> Figure:
    """Resident memory while the only receiver is away, with few and with many messages pending."""
    resident = []
    for count in (FEW, PENDING):
        with _notifier(_free_port(), 1) as (notifier, database, names):
            for _ in range(0, count, FEW):
                _fill(database, names, FEW)
            _start(notifier)
            time.sleep(RUN_SECONDS)
            if _pending(database) != count:
                raise RuntimeError("a message is gone that nobody took")
            resident.append(_resident())
    few, many = resident
    against = f"{few / 1e6:.0f} MB with {FEW:,}"
    return Figure(
        f"memory with {PENDING:,} messages pending", many / 1e6, "MB", against, few / many
    )


def _pending(database: Database) -> int:
    with database.read() as connection:
        counted = outbox.count(connection)
    return sum(n for (_, status), n in counted.items() if status == Sending.PENDING.value)


def _wait_until(is_true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} seconds")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _now() -> datetime:
    return datetime.now(UTC)


def _resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")
