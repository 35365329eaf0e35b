"""`gsid bench large`: one large network, from POST to its scores, and again after one change.

At first all of it comes in one snapshot, of which the answer is waited for. Then its facts are told
by collectors of at most 50,000 each, as large sites do, and single values change. A server that
starts anew on the same database stands for computing everything anew. Where that would take too
long, a round alone is measured: what the service keeps of the network in this process, and the
scoring process that is told of it; no requests, and no store.
"""

import json
import os
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from gsid_service import schema
from gsid_service.assemble.merge import View, extend, merge
from gsid_service.bench.figure import Figure
from gsid_service.bench.server import MODEL, ask, memory, processor_seconds, running, wait_until
from gsid_service.bench.simulate import ROUTERS_PER_REFLECTOR
from gsid_service.diagnose.apart import Apart
from gsid_service.diagnose.diagnosis import Limits
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.ingest.wire import dump_snapshot
from gsid_service.records import Collector, Entity, Fact, Snapshot
from gsid_service.simulate import designs, topologies
from gsid_service.simulate.designs import Design
from gsid_service.simulate.intents import Amounts

FACTS = 100_000
FACTS_PER_ROUTER, ROUTERS_AT_MOST = 100, 1_000
GATEWAYS = 3  # of a network; each is a peering and a route
COLLECTOR_FACTS = 50_000
CHANGES = 3
ALLOWED_MB = 8_000
AT_ONCE = 100_000  # facts of the one snapshot that these are allowed for
ACCEPTED_WITHIN, ACCEPTED_MB = 5.0, 1_500
SCORED_WITHIN = 3_600.0
LOOK_SECONDS, MEMORY_LOOK_SECONDS = 0.02, 0.5


class Told(NamedTuple):
    """A part of a network that one collector tells."""

    collector: Collector
    facts: tuple[Fact, ...]


class Took(NamedTuple):
    seconds: float
    computed: float  # seconds of processor time, of all processes: steady on a busy machine

    def figures(self, name: str, against: str, other: "Took") -> Iterator[Figure]:
        for what, unit, mine, theirs in (
            (name, "s", self.seconds, other.seconds),
            (f"{name}, computing", "processor s", self.computed, other.computed),
        ):
            yield Figure(what, mine, unit, f"{against} ({theirs:.1f} s)", theirs / mine)


def measure(facts: int = FACTS, only_round: bool = False) -> Iterator[Figure]:
    """Until it is acknowledged, scored first, after a value changed, and anew; and memory up to
    then."""
    if only_round:
        return _round(facts)
    return chain(_accepted(facts) if facts <= AT_ONCE else (), _served(facts))


def _accepted(facts: int) -> Iterator[Figure]:
    design, collector = _design(facts), Collector("rr0", "route_reflector")
    name = f"{len(design.facts):,} facts in one snapshot"
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as (port, process):
        site = Site(design, port, process.pid)
        body = site.body(collector, design.facts, complete=True)
        with _watching(process.pid, every=0.1) as most:
            begun = time.perf_counter()
            site.post(body)
            took = time.perf_counter() - begun
            peak = most[0]
    within = f"{ACCEPTED_WITHIN:g} s allowed"
    yield Figure(f"{name}, acknowledged", took, "s", within, ACCEPTED_WITHIN / took)
    yield _memory(f"{name}, up to then", peak, ACCEPTED_MB)


def _served(facts: int) -> Iterator[Figure]:
    design = _design(facts)
    told, size = _told(design), f"{len(design.facts):,} facts"
    with tempfile.TemporaryDirectory() as folder:
        with running(Path(folder)) as (port, process), _watching(process.pid) as most:
            site = Site(design, port, process.pid)
            first = site.tell(told)
            again = {kind: site.change(told, kind) for kind in (schema.BGP_ROUTE, schema.CONNECTED)}
        with running(Path(folder)) as (port, process), _watching(process.pid) as restarted:
            begun = Site(design, port, process.pid, site.sequence)
            anew = begun.change(told, schema.BGP_ROUTE, times=1)
    yield from first.figures(f"{size}, scored first", "once more by a new server", anew)
    for kind, took in again.items():
        name = f"{size}, scored after one {kind.parameters[0].name}"
        yield from took.figures(name, "by a new server", anew)
    yield _memory(size, max(*most, *restarted))


def _round(facts: int) -> Iterator[Figure]:
    """One round of a network that is merged already; the rest of a service is not in this."""
    views = _views(_design(facts))  # kept to the end, as the service keeps them
    merged = merge(views)
    size = f"{len(merged.facts):,} facts"
    approved = Reference(merged.entities, merged.facts)
    seen = Observation(merged.entities, merged.facts, reference=approved, network="as65000")
    apart = Apart(MODEL, threads=1)
    try:
        with _watching(os.getpid()) as most:
            before = processor_seconds(os.getpid())
            apart(seen, Limits())
            computed = processor_seconds(os.getpid()) - before
    finally:
        apart.stop()
    each = 1e3 * computed / len(merged.facts)
    yield Figure(f"{size}, one round, computing", computed, "processor s", f"{each:.2f} ms each", 1)
    yield _memory(size, *most)


def _memory(size: str, peak: int, allowed: int = ALLOWED_MB) -> Figure:
    used, against = peak / 1e6, f"{allowed:,} MB allowed"
    return Figure(f"{size}, memory of all processes", used, "MB", against, allowed / used)


def _told(design: Design) -> list[Told]:
    return [
        Told(Collector(f"rr{i}", "route_reflector"), design.facts[low : low + COLLECTOR_FACTS])
        for i, low in enumerate(range(0, len(design.facts), COLLECTOR_FACTS))
    ]


def _views(design: Design) -> list[View]:
    entities = {entity.id: entity for entity in design.entities}
    return [
        extend(None, _snapshot(entities, collector, facts, number, complete=True), f"s{number}")
        for number, (collector, facts) in enumerate(_told(design), 1)
    ]


def _snapshot(
    entities: Mapping[str, Entity],
    collector: Collector,
    facts: Sequence[Fact],
    sequence: int,
    complete: bool,
) -> Snapshot:
    named = dict.fromkeys(arg for fact in facts for arg in fact.args)
    return Snapshot(
        *("as65000", collector, sequence, datetime.now(UTC), complete),
        *(tuple(entities[name] for name in named), tuple(facts)),
    )


def _design(facts: int) -> Design:
    rng = random.Random("bench large")
    routers = max(10, min(ROUTERS_AT_MOST, facts // FACTS_PER_ROUTER))
    networks = max(1, (facts - 4 * routers) // (2 * GATEWAYS))  # about 3 links, 1 session a router
    size = designs.Size((networks,) * 2, (GATEWAYS,) * 2, Amounts((0, 0), (0, 0), (0, 0)))
    topology = topologies.planar(routers, rng)
    return designs.propose(topology, size, rng, max(2, routers // ROUTERS_PER_REFLECTOR))


class Site:
    """The collectors of a network, and the server that they tell."""

    def __init__(self, design: Design, port: int, pid: int, sequence: int = 0) -> None:
        self.pid = pid
        self.entities = {entity.id: entity for entity in design.entities}
        self.server = HTTPConnection("127.0.0.1", port, timeout=600)
        self.sequence = sequence
        self.rng = random.Random("bench large changes")

    def tell(self, told: Sequence[Told]) -> Took:
        """Until all that the collectors see is scored."""
        bodies = [self.body(collector, facts, complete=True) for collector, facts in told]
        return self._scored(bodies)

    def change(self, told: Sequence[Told], kind: schema.FactKind, times: int = CHANGES) -> Took:
        """Until one changed value is scored, the median of some."""
        places = [(t.collector, f) for t in told for f in t.facts if f.predicate == kind.name]
        name, took = kind.parameters[0].name, []
        for collector, fact in self.rng.sample(places, times):
            other = fact._replace(params={**fact.params, name: fact.params[name] + 1})
            took.append(self._scored([self.body(collector, [other], complete=False)]))
        return Took(*map(statistics.median, zip(*took, strict=True)))

    def post(self, body: bytes) -> Any:
        """A snapshot, until it is acknowledged."""
        status, answer = ask(self.server, "POST", "/ingest", body)
        if status != 202:
            raise RuntimeError(f"the server answered {status}: {answer}")
        return answer

    def body(self, collector: Collector, facts: Sequence[Fact], complete: bool) -> bytes:
        self.sequence += 1
        view = _snapshot(self.entities, collector, facts, self.sequence, complete)
        return json.dumps(dump_snapshot(view)).encode()

    def _scored(self, bodies: Sequence[bytes]) -> Took:
        """From the first POST until the last is scored."""
        begun, computed = time.perf_counter(), processor_seconds(self.pid)
        for body in bodies:
            answer = self.post(body)
        path = f"/api/v1/networks/{answer['network']}"

        def is_scored() -> bool:
            network = ask(self.server, "GET", path)[1]
            if network["problem"]:
                raise RuntimeError(network["problem"])
            return bool(network["scored_snapshot"] == answer["snapshot_id"])

        wait_until(is_scored, SCORED_WITHIN, "it is not scored", LOOK_SECONDS)
        return Took(time.perf_counter() - begun, processor_seconds(self.pid) - computed)


@contextmanager
def _watching(pid: int, every: float = MEMORY_LOOK_SECONDS) -> Iterator[list[int]]:
    """The most memory that a process and its children have had so far, in a list of one."""
    most, ending = [memory(pid)], threading.Event()

    def look() -> None:
        while not ending.wait(every):
            most[0] = max(most[0], memory(pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        ending.set()
        watcher.join()
