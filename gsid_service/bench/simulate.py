"""`gsid bench simulate`: making networks and forwarding, against the same work with networkx."""

import random
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter

from gsid_service.bench.figure import Figure
from gsid_service.bench.rival import Rival
from gsid_service.evaluate.splits import DATA_SETS, SPLITS
from gsid_service.records import Fact
from gsid_service.simulate import designs, intents, topologies
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.intents import Amounts
from gsid_service.simulate.plane import Plane, build

MADE = 200
ROUNDS = 3
MEMORY_ALLOWED = 2_000  # MB
ROUTERS_PER_REFLECTOR = 500


def measure() -> Iterator[Figure]:
    yield _making()
    yield _forwarding(routers=1_000, networks=100, checked=100)
    yield from _forwarding_apart(routers=10_000, networks=200, checked=4)


def _making() -> Figure:
    split = SPLITS["standard"]
    ours = seconds(lambda: [split.case("bench", i) for i in range(MADE)]) / MADE
    theirs = seconds(lambda: [_make_with_rival(i) for i in range(MADE)]) / MADE
    name = "standard networks with intents, made on one core"
    return Figure(name, 1 / ours, "networks/s", f"networkx ({1 / theirs:.0f}/s)", theirs / ours)


def _make_with_rival(index: int) -> tuple[Fact, ...]:
    data_set = DATA_SETS["standard"]
    rng = random.Random(f"bench {index}")
    design = designs.propose(data_set.topology(rng), data_set.size, rng)
    state = Rival(build(design.entities, design.facts))
    return intents.sample(state, data_set.size.intents, rng)


def _forwarding(routers: int, networks: int, checked: int) -> Figure:
    """Forwarding of the whole network; the rival's time for `checked` networks, scaled to all."""
    plane = _large(routers, networks)
    state = forward(plane, always_compare_med=True)
    ours = seconds(lambda: forward(plane, always_compare_med=True))
    begun = perf_counter()
    rival = Rival(plane, list(range(checked)))
    theirs = (perf_counter() - begun) * networks / checked
    _compare(state, rival)
    size = f"{routers:,} routers, {len(plane.links) // 2:,} links, {networks} networks"
    part = "" if checked == networks else f", from {checked} of the networks"
    against = f"networkx ({theirs:.1f} s{part})"
    return Figure(f"forwarding of {size}", ours, "s", against, theirs / ours)


def _forwarding_apart(routers: int, networks: int, checked: int) -> Iterator[Figure]:
    """The same in a process of its own, so that its peak memory is its own too."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        figure = process.submit(_forwarding, routers, networks, checked).result()
        peak = process.submit(_peak_memory).result()
    yield figure
    allowed = f"{MEMORY_ALLOWED:,} MB"
    yield Figure(f"peak memory, {figure.name}", peak, "MB", allowed, MEMORY_ALLOWED / peak)


def _peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


def _large(routers: int, networks: int) -> Plane:
    rng = random.Random(f"bench {routers}")
    size = designs.Size((networks, networks), (3, 3), Amounts((0, 0), (0, 0), (0, 0)))
    topology = topologies.planar(routers, rng)
    design = designs.propose(topology, size, rng, max(2, routers // ROUTERS_PER_REFLECTOR))
    return build(design.entities, design.facts)


def _compare(state: Forwarding, rival: Rival) -> None:
    """A time counts only where both say the same of every network that has one outcome."""
    for network in filter(state.is_stable, rival.hops):
        for router, hops in enumerate(rival.hops[network]):
            if list(state.next_hops(network, router)) != hops:
                raise RuntimeError(f"networkx disagrees on network {network} at router {router}")


def seconds(work: Callable[[], object]) -> float:
    """The best of a few rounds: a busy machine only ever makes a round slower."""
    return min(_timed(work) for _ in range(ROUNDS))


def _timed(work: Callable[[], object]) -> float:
    begun = perf_counter()
    work()
    return perf_counter() - begun
