"""`gsid bench classes`: a full table at four gateways, as classes of prefixes that are alike.

The table is drawn. Four gateways have a transit provider each, two of them the same one, which
tells by med how far from each it hears an origin. Origin ASes announce few prefixes or many; the
path to one has a length that providers see alike or off by one; a tenth of the prefixes is longer
towards some provider. One gateway also has peers for a sixth of the origins, another has customers.
"""

import re
import time
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from gsid_service.bench.figure import Figure
from gsid_service.collect.classes import Grouping, alike
from gsid_service.collect.source import Route, Sight
from gsid_service.collect.tables import Tables
from gsid_service.collect.view import view_of
from gsid_service.records import Fact, IntArray
from gsid_service.schema import ROUTER

PREFIXES, ORIGINS = 1_000_000, 75_000
PROVIDERS = {"G1": "A", "G2": "B", "G3": "C", "G4": "A"}
CHANGED = 1_000
SAMPLE = 10_000
INTERVAL = 30.0  # seconds in which a collector has to be done
MEBIBYTE = 1 << 20
# Values and their shares, roughly as a full table has them.
LENGTHS = {2: 5, 3: 25, 4: 36, 5: 20, 6: 8, 7: 4, 8: 2}
OFF = {0: 60, 1: 25, -1: 15}  # of one provider against another
PREPENDS = {0: 967, 1: 17, 2: 10, 3: 6}  # towards one provider
CODES = {0: 90, 2: 9, 1: 1}
REGIONS = {0: 40, 1: 35, 2: 25}
MEDS = {"G1": np.array([0, 50, 100]), "G4": np.array([100, 50, 0])}  # by region
PEERED, CUSTOMERS = 0.16, 0.001  # of the origins

Heard = tuple[Route, ...]


def measure() -> Iterator[Figure]:
    """Taking the tables in, grouping them, memory, and what is left to tell."""
    drawn = full_table()
    before, begun = _memory(), time.perf_counter()
    tables = Tables()
    for gateway, routes in drawn.items():
        tables.put(gateway, dict(heard(gateway, routes)), {})
    taken = time.perf_counter() - begun
    yield Figure("four full tables taken in", taken, "s", "an interval, 30 s", INTERVAL / taken)
    begun = time.perf_counter()
    grouping = alike(tables, None)
    seconds = time.perf_counter() - begun
    rows = _by_rows(tables)
    yield Figure("prefixes grouped", seconds, "s", f"numpy.unique, {rows:.1f} s", rows / seconds)
    used = (_memory() - before) / MEBIBYTE
    yield from _told(tables, grouping, used)
    yield from _again(tables, drawn, grouping)


def _told(tables: Tables, grouping: Grouping, used: float) -> Iterator[Figure]:
    classes = len(grouping.destinations)
    yield Figure("classes", classes, "", f"{PREFIXES:,} prefixes", PREFIXES / classes)
    views = [view_of(g, Sight(g, ROUTER.name, (), ()), tables, grouping) for g in PROVIDERS]
    facts = [fact for view in views for fact in view.facts.values()]
    routes = sum(
        grouping.destinations[number].size * len(tables.routes(value))
        for gateway in PROVIDERS
        for number, value in _values(tables, gateway, grouping)
    )
    yield Figure("facts", len(facts), "", f"{routes:,} routes", routes / len(facts))
    singly = routes * _bytes_a_fact(facts) / MEBIBYTE
    against = f"a fact for each route, {singly:,.0f} MiB"
    yield Figure("memory for tables and classes", used, "MiB", against, singly / used)


def _values(tables: Tables, gateway: str, grouping: Grouping) -> Iterator[tuple[int, int]]:
    column = tables.columns[gateway].routes
    for number, destination in enumerate(grouping.destinations):
        yield number, int(column[destination.first])


def _again(tables: Tables, drawn: dict[str, IntArray], before: Grouping) -> Iterator[Figure]:
    """Some prefixes change at one gateway: how long that takes, and how many classes remain."""
    gateway, routes = "G1", drawn["G1"].copy()
    routes[:: PREFIXES // CHANGED, 0] += 1
    begun = time.perf_counter()
    tables.put(gateway, dict(heard(gateway, routes)), {})
    after = alike(tables, before)
    seconds = time.perf_counter() - begun
    name = f"{CHANGED:,} prefixes changed at a gateway"
    yield Figure(name, seconds, "s", "an interval, 30 s", INTERVAL / seconds)
    kept = {d.id for d in before.destinations} & {d.id for d in after.destinations}
    share = len(kept) / len(before.destinations)
    yield Figure("classes that keep their id then", share, "", "all of them", share)


def _by_rows(tables: Tables) -> float:
    matrix = tables.matrix()
    begun = time.perf_counter()
    np.unique(matrix, axis=0, return_inverse=True)
    return time.perf_counter() - begun


def _bytes_a_fact(facts: list[Fact]) -> float:
    """What a fact of its own would take."""
    tracemalloc.start()
    copies = [Fact(f.predicate, tuple(map(str, f.args)), dict(f.params)) for f in facts[:SAMPLE]]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / len(copies)


def full_table() -> dict[str, IntArray]:
    """Of each gateway and every prefix: path length, origin, med, and the length at a peer or 0."""
    rng = np.random.default_rng(0)
    # Few origins have most of the prefixes.
    origin = np.minimum(rng.zipf(1.35, PREFIXES), ORIGINS) - 1
    length, code = _draw(rng, LENGTHS, ORIGINS), _draw(rng, CODES, ORIGINS)
    off = {provider: _draw(rng, OFF, ORIGINS) for provider in sorted({*PROVIDERS.values()})}
    prepended = {provider: _draw(rng, PREPENDS, PREFIXES) for provider in off}
    region = _draw(rng, REGIONS, ORIGINS)
    nearer = {"G2": CUSTOMERS, "G3": PEERED}
    found = {}
    for gateway, provider in PROVIDERS.items():
        lengths = np.maximum(1, (length + off[provider])[origin] + prepended[provider])
        far = MEDS.get(gateway, np.zeros(len(REGIONS), dtype=np.int64))[region[origin]]
        near = rng.random(ORIGINS) < nearer.get(gateway, 0.0)
        short = np.where(near, np.maximum(1, length - 2), 0)[origin]
        found[gateway] = np.stack((lengths, code[origin], far, short), axis=1)
    return found


def _draw(rng: np.random.Generator, shares: dict[int, int], count: int) -> IntArray:
    weights = np.array([*shares.values()]) / sum(shares.values())
    return rng.choice([*shares], count, p=weights)


def heard(gateway: str, routes: IntArray) -> Iterator[tuple[str, Heard]]:
    """What a source would say of them."""
    transit, nearby = f"AS65100@{gateway}", f"AS65200@{gateway}"
    preference = 200 if gateway == "G2" else 150

    @cache
    def each(length: int, origin: int, med: int, near: int) -> Heard:
        first = Route(transit, length, origin, 100, med)
        return (first, Route(nearby, near, origin, preference)) if near else (first,)

    for number, row in enumerate(routes.tolist()):
        yield f"{1 + number // 65536}.{number // 256 % 256}.{number % 256}.0/24", each(*row)


def _memory() -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0
