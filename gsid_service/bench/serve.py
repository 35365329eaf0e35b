"""`gsid bench serve`: a real server in a process of its own, loaded from this one over loopback."""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from gsid_service.bench.figure import Figure
from gsid_service.bench.server import MODEL, ask, memory, running, wait_until
from gsid_service.evaluate import settings
from gsid_service.evaluate.splits import SPLITS
from gsid_service.ingest.wire import dump_fact, dump_snapshot
from gsid_service.records import Collector, Fact, Snapshot
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF, ROUTERS
from gsid_service.score.scorer import load, use_cores
from gsid_service.simulate.cases import Case
from gsid_service.simulate.faults import with_values
from gsid_service.simulate.forwarding import Forwarding, forward, moved
from gsid_service.simulate.plane import build
from gsid_service.store import tokens
from gsid_service.store.database import connect

ROUTERS_WANTED = 23
SENDERS, PACED_SENDERS = 8, 4
SECONDS = 10.0
PACE = 100  # a second
ALERTS = 20
MINUTE, HOUR = 60, 3600  # snapshots, at one a second
REST_SECONDS = 5.0  # until what a burst took for a moment has gone back
ALLOWED_ACK, ALLOWED_ALERT, WANTED_RATE = 0.05, 1.0, 300
ALWAYS_COMPARE_MED = "always_compare_med"
POST = (
    b"POST /ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
)
Post = Callable[[], Awaitable[None]]


def measure(hour: bool = False) -> Iterator[Figure]:
    """Acknowledgements a second, their 99th percentile, POST to alert, and memory; or only memory,
    an hour long."""
    case = _case()
    if not hour:
        with _server() as (place, _):
            yield _acknowledged(place, case)
            yield _paced(place, case)
            yield _to_alert(place, case)
    with _server() as (place, pid):
        yield _memory(place, case, pid, pause=1.0 if hour else 0.0)


class _Place(NamedTuple):
    """Where a server is, and who may do what there."""

    port: int
    tokens: dict[str, str]  # by role


@contextmanager
def _server() -> Iterator[tuple[_Place, int]]:
    """As in operation: collectors and people have tokens."""
    with tempfile.TemporaryDirectory() as folder:
        database = connect(f"sqlite:///{folder}/bench.db", migrate=True)
        with database.write() as connection:
            now = datetime.now(UTC)
            made = {
                role: tokens.create(connection, role, role, (), now)
                for role in (tokens.INGEST, tokens.OPERATE)
            }
        database.close()
        with running(Path(folder)) as (port, process):
            yield _Place(port, made), process.pid


def _case() -> Case:
    names = {kind.name for kind in ROUTERS}
    cases = (SPLITS["standard"].case("bench", index) for index in range(1000))
    return next(c for c in cases if sum(e.kind in names for e in c.entities) == ROUTERS_WANTED)


class _Sender:
    """One collector of one network, on a connection of its own."""

    def __init__(self, place: _Place, case: Case, network: str) -> None:
        self.connection = HTTPConnection("127.0.0.1", place.port, timeout=60)
        self.tokens = place.tokens
        self.network, self.case, self.sequence = network, case, 0
        self.body = self._body(case.facts)

    def _body(self, facts: tuple[Fact, ...]) -> str:
        collector = Collector("rr1", "route_reflector")
        now = datetime.now(UTC)
        view = Snapshot(self.network, collector, 0, now, True, self.case.entities, facts)
        return json.dumps(dump_snapshot(view)).replace('"sequence": 0', '"sequence": %d')

    def next_body(self, body: str | None = None) -> bytes:
        self.sequence += 1
        return ((body or self.body) % self.sequence).encode()

    def send(self, body: str | None = None) -> str:
        token = self.tokens[tokens.INGEST]
        status, answer = ask(self.connection, "POST", "/ingest", self.next_body(body), token)
        if status != 202:
            raise RuntimeError(f"the server answered {status}: {answer}")
        return str(answer["snapshot_id"])

    def faulty(self) -> str:
        """The body with the local preference, above all others, that moves the most traffic."""
        routes = [fact for fact in self.case.facts if fact.predicate == BGP_ROUTE.name]
        highest = 1 + max(fact.params[LOCAL_PREF.name] for fact in routes)
        right = self._forwarding(self.case.facts)
        wrong = [with_values(self.case.facts, {(r.key, LOCAL_PREF.name): highest}) for r in routes]
        return self._body(max(wrong, key=lambda facts: len(moved(right, self._forwarding(facts)))))

    def _forwarding(self, facts: tuple[Fact, ...]) -> Forwarding:
        return forward(build(self.case.entities, facts), always_compare_med=True)

    def state_intents(self) -> None:
        """What is wanted of the network, which is simulated as the data sets are."""
        about = f"/api/v1/networks/{self.network}"
        wanted = {"intents": [dump_fact(intent) for intent in self.case.intents]}
        for method, path, body in (
            ("PATCH", about, {ALWAYS_COMPARE_MED: True}),
            ("PUT", f"{about}/intents", wanted),
        ):
            status, answer = self.operate(method, path, json.dumps(body).encode())
            if status != 200:
                raise RuntimeError(f"the server answered {status}: {answer}")

    def operate(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        return ask(self.connection, method, path, body, self.tokens[tokens.OPERATE])

    def scored(self) -> str | None:
        _, found = self.operate("GET", f"/api/v1/networks/{self.network}")
        return None if found is None else found.get("scored_snapshot")


@asynccontextmanager
async def _posting(sender: _Sender) -> AsyncIterator[Post]:
    """A connection for one snapshot after another, at little cost: the server shares the cores."""
    reader, writer = await asyncio.open_connection("127.0.0.1", sender.connection.port)
    token = sender.tokens[tokens.INGEST].encode()

    async def post() -> None:
        body = sender.next_body()
        writer.write(POST % (token, len(body)) + body)
        head = await reader.readuntil(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().splitlines()[1:] if line)
        answer = await reader.readexactly(int(fields[b"content-length"]))
        if not head.startswith(b"HTTP/1.1 202 "):
            raise RuntimeError(f"the server answered {answer.decode()}")

    try:
        yield post
    finally:
        writer.close()
        await writer.wait_closed()


def _acknowledged(place: _Place, case: Case) -> Figure:
    """Several senders as fast as they can, while the cycle scores what comes in."""
    senders = [_Sender(place, case, f"as{65000 + number}") for number in range(SENDERS)]
    until = time.perf_counter() + SECONDS

    async def run(sender: _Sender) -> None:
        async with _posting(sender) as post:
            while time.perf_counter() < until:
                await post()

    _together(run(sender) for sender in senders)
    if senders[0].scored() is None:
        raise RuntimeError("nothing was scored meanwhile")
    rate = sum(sender.sequence for sender in senders) / SECONDS
    name = f"snapshots of {ROUTERS_WANTED} routers acknowledged while scoring"
    return Figure(name, rate, "1/s", f"{WANTED_RATE} wanted", rate / WANTED_RATE)


def _paced(place: _Place, case: Case) -> Figure:
    """100 a second from four connections; how long the slowest hundredth waits."""
    delays: list[float] = []
    begun = time.perf_counter() + 0.1

    async def run(number: int) -> None:
        async with _posting(_Sender(place, case, f"as{65100 + number}")) as post:
            for turn in range(int(SECONDS * PACE / PACED_SENDERS)):
                due = begun + (turn * PACED_SENDERS + number) / PACE
                await asyncio.sleep(due - time.perf_counter())
                await post()
                delays.append(time.perf_counter() - due)  # a late start counts, too

    _together(run(number) for number in range(PACED_SENDERS))
    slow = statistics.quantiles(delays, n=100)[98]
    name = f"acknowledgement at {PACE} a second, 99th percentile"
    return Figure(name, slow, "s", f"{ALLOWED_ACK} s allowed", ALLOWED_ACK / slow)


def _together(work: Iterable[Awaitable[None]]) -> None:
    async def run() -> None:
        await asyncio.gather(*work)

    asyncio.run(run())


def _to_alert(place: _Place, case: Case) -> Figure:
    """From POST to an alert that `GET /alerts` shows; the value is wrong and right in turns."""
    sender = _Sender(place, case, "as65200")
    snapshot = sender.send()
    wait_until(lambda: sender.scored() == snapshot, 30, "the first snapshot is not scored")
    sender.state_intents()
    faulty, waits = sender.faulty(), []
    path = f"/api/v1/alerts?network={sender.network}&status=firing"

    def firing() -> bool:
        return bool(sender.operate("GET", path)[1]["items"])

    for _ in range(ALERTS):
        begun = time.perf_counter()
        sender.send(faulty)
        wait_until(firing, 30, "no alert")
        waits.append(time.perf_counter() - begun)
        sender.send()
        wait_until(lambda: not firing(), 30, "the alert does not resolve")
    middle = statistics.median(waits)
    bare = _forward_seconds(case)
    return Figure("from POST to alert, median", middle, "s", f"model {bare:.4f} s", bare / middle)


def _forward_seconds(case: Case) -> float:
    """The model alone, on the same network."""
    use_cores(1)
    scorer = load(MODEL)
    case = replace(case, baseline=(case.entities, case.facts))
    graph = settings.in_operation(case).graph
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        scorer(graph)
        times.append(time.perf_counter() - begun)
    return min(times)


def _memory(place: _Place, case: Case, pid: int, pause: float) -> Figure:
    """Memory of all processes after a minute's worth of snapshots, and after an hour's."""
    sender = _Sender(place, case, "as65300")
    found = []
    for goal in (MINUTE, HOUR):
        snapshot = ""
        while sender.sequence < goal:
            snapshot = sender.send()
            time.sleep(pause)
        wait_until(lambda s=snapshot: sender.scored() == s, 60, "not scored")  # type: ignore[misc]
        time.sleep(REST_SECONDS)
        found.append(memory(pid) / 1e6)
    after_minute, after_hour = found
    against = f"{after_minute:.1f} MB after {MINUTE}"
    name = f"memory of all processes after {HOUR} snapshots"
    return Figure(name, after_hour, "MB", against, after_minute / after_hour)
