"""`gsid bench cluster`: scorers beside an API on a real PostgreSQL, against all in one process.

All networks have 20 routers. What is timed is from the first POST until every network's newest
snapshot is scored, one snapshot a network, so that none is coalesced.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import NamedTuple
from zlib import compress

from sqlalchemy import text, update

from gsid_service.bench.figure import Figure
from gsid_service.bench.postgres import Cluster, cluster, create_database
from gsid_service.bench.server import ask, memory, running, wait_until
from gsid_service.evaluate.splits import SPLITS
from gsid_service.ingest.wire import dump_snapshot, parse_snapshot
from gsid_service.records import Collector, Fact, Snapshot
from gsid_service.schema import CONNECTED, OSPF_WEIGHT, ROUTERS
from gsid_service.simulate.cases import Case
from gsid_service.store import networks, snapshots
from gsid_service.store.database import Database, connect
from gsid_service.store.snapshots import Incoming
from gsid_service.store.tables import networks as networks_table

ROUTERS_WANTED = 20
NETWORKS = 60  # of which each is scored once
SCORERS = (1, 2, 3)
AT_ONCE = (1, 4)  # in place of the usual
USUAL = 2
ROUNDS = 4
GROWING = (10, 100, 1_000, 10_000)
WITHIN = 300.0
STORED_AT_ONCE = 200
_numbers = count()


def measure() -> Iterator[Figure]:
    """Snapshots scored a second by 1, 2 and 3 scorers, and by one as networks grow in number."""
    body = _Body()
    with tempfile.TemporaryDirectory() as folder, cluster() as server:
        with running(Path(folder)) as (port, _):
            url = f"sqlite:///{Path(folder) / 'bench.db'}"
            alone = _rate(port, url, body)
        yield Figure("snapshots scored, all in one process on SQLite", alone, "1/s", "itself", 1.0)
        against = f"one process, {alone:.1f} 1/s"
        for scorers in SCORERS:
            rate = _scored(server, body, scorers)
            name = f"snapshots scored, {scorers} scorer{'s' * (scorers > 1)} on PostgreSQL"
            yield Figure(name, rate, "1/s", against, rate / alone)
        yield from _processor_time(server, body)
        for at_once in AT_ONCE:
            rate = _scored(server, body, 1, at_once)
            name = f"snapshots scored, 1 scorer that scores {at_once} at once"
            yield Figure(name, rate, "1/s", against, rate / alone)
        first = None
        for known in GROWING:
            milliseconds, size, most = _grown(server, body, known)
            first = first or milliseconds
            against = f"{GROWING[0]} networks, {first:.1f} ms"
            name = f"of {known:,} networks, one scored"
            yield Figure(name, milliseconds, "ms", against, first / milliseconds)
            yield Figure("and the database", size / 1e6, "MB", f"{known:,} snapshots", 1.0)
            yield Figure("and the memory of its scorer", most / 1e6, "MB", "all processes", 1.0)


class _Body:
    """Snapshots of one design, with one link weight that changes."""

    def __init__(self) -> None:
        case = _case()
        links = [fact for fact in case.facts if fact.predicate == CONNECTED.name]
        key, weight = links[0].key, links[0].params[OSPF_WEIGHT.name]
        changed = tuple(_with_weight(f, weight + 1) if f.key == key else f for f in case.facts)
        self.texts = [_text(case, facts) for facts in (case.facts, changed)]

    def of(self, network: str, sequence: int) -> bytes:
        text = self.texts[sequence % 2].replace("@network", network)
        return text.replace('"sequence": 0', f'"sequence": {sequence}').encode()


def _case() -> Case:
    names = {kind.name for kind in ROUTERS}
    cases = (SPLITS["standard"].case("bench", index) for index in range(1000))
    return next(c for c in cases if sum(e.kind in names for e in c.entities) == ROUTERS_WANTED)


def _with_weight(fact: Fact, weight: int) -> Fact:
    return fact._replace(params={**fact.params, OSPF_WEIGHT.name: weight})


def _text(case: Case, facts: tuple[Fact, ...]) -> str:
    collector, now = Collector("rr1", "route_reflector"), datetime.now(UTC)
    return json.dumps(
        dump_snapshot(Snapshot("@network", collector, 0, now, True, case.entities, facts))
    )


class _Running(NamedTuple):
    port: int  # of the API
    api: int  # processes
    scorers: list[int]


@contextmanager
def _processes(folder: Path, url: str, scorers: int, at_once: int) -> Iterator[_Running]:
    """An API with so many scorers."""
    with ExitStack() as stack:
        port, api = stack.enter_context(running(folder, url, GSID_SERVER_ROLE="api"))
        wanted = {"GSID_SERVER_ROLE": "scorer", "GSID_JOBS_AT_ONCE": str(at_once)}
        started = [stack.enter_context(running(folder, url, **wanted)) for _ in range(scorers)]
        yield _Running(port, api.pid, [process.pid for _, process in started])


def _scored(server: Cluster, body: _Body, scorers: int, at_once: int = USUAL) -> float:
    url = create_database(server.url, f"bench{next(_numbers)}")
    with (
        tempfile.TemporaryDirectory() as folder,
        _processes(Path(folder), url, scorers, at_once) as processes,
    ):
        return _rate(processes.port, url, body)


def _processor_time(server: Cluster, body: _Body) -> Iterator[Figure]:
    """What a snapshot costs each of them, whatever else the machine does meanwhile."""
    url = create_database(server.url, f"bench{next(_numbers)}")
    names = [f"as{number}" for number in range(NETWORKS)]
    with (
        tempfile.TemporaryDirectory() as folder,
        _processes(Path(folder), url, 1, USUAL) as processes,
    ):
        database = connect(url, migrate=False)
        pids = {"API": processes.api, "scorer": processes.scorers[0], "PostgreSQL": server.pid}
        _round(processes.port, database, body, names, 1)
        before = {who: _processor_seconds(pid) for who, pid in pids.items()}
        for number in range(2, 2 + ROUNDS):
            _round(processes.port, database, body, names, number)
        spent = {who: _processor_seconds(pid) - before[who] for who, pid in pids.items()}
        database.close()
    whole = sum(spent.values())
    for who, seconds in spent.items():
        each = 1e3 * seconds / ROUNDS / len(names)
        yield Figure(f"processor time of a snapshot, {who}", each, "ms", "all", seconds / whole)


def _processor_seconds(pid: int) -> float:
    """Of a process and all that it started, those that ended included."""
    stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    own = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    return own + sum(map(_processor_seconds, children))


def _rate(port: int, url: str, body: _Body) -> float:
    names = [f"as{number}" for number in range(NETWORKS)]
    database = connect(url, migrate=False)
    try:
        for sequence in (1, 2):  # first what is approved, and learned; then what is timed
            seconds = _round(port, database, body, names, sequence)
    finally:
        database.close()
    return len(names) / seconds


def _round(port: int, database: Database, body: _Body, names: Sequence[str], number: int) -> float:
    """Seconds from the first POST until all is scored."""
    connection, begun = HTTPConnection("127.0.0.1", port, timeout=60), time.perf_counter()
    for name in names:
        status, answer = ask(connection, "POST", "/ingest", body.of(name, number))
        if status != 202:
            raise RuntimeError(f"the server answered {status}: {answer}")
    wait_until(lambda: not _behind(database), WITHIN, "not all is scored", every=0.02)
    return time.perf_counter() - begun


def _behind(database: Database) -> list[str]:
    with database.read() as connection:
        return networks.with_news(connection)


def _grown(server: Cluster, body: _Body, known: int) -> tuple[float, int, int]:
    """With so many networks: milliseconds a snapshot, bytes of the database and of the scorer."""
    url = create_database(server.url, f"bench{next(_numbers)}")
    database = connect(url, migrate=True)
    names = [f"as{number:05}" for number in range(known)]
    try:
        _fill(database, body, names)
        chosen = names[:: max(known // NETWORKS, 1)][:NETWORKS]
        with (
            tempfile.TemporaryDirectory() as folder,
            _processes(Path(folder), url, 1, USUAL) as processes,
        ):
            _round(processes.port, database, body, chosen, 2)
            seconds = _round(processes.port, database, body, chosen, 3)
            most = sum(map(memory, processes.scorers))
            return 1e3 * seconds / len(chosen), _size(database), most
    finally:
        database.close()


def _fill(database: Database, body: _Body, names: Sequence[str]) -> None:
    """A first snapshot of each network, as if it had been scored: to do it would take minutes."""
    for start in range(0, len(names), STORED_AT_ONCE):
        bodies = [body.of(name, 1) for name in names[start : start + STORED_AT_ONCE]]
        kept = [Incoming(parse_snapshot(b), sha256(b).digest(), compress(b, 1)) for b in bodies]
        with database.write() as connection:
            snapshots.add(connection, kept, datetime.now(UTC))
            connection.execute(update(networks_table).values(done=networks_table.c.news))


def _size(database: Database) -> int:
    with database.read() as connection:
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
