"""`gsid bench verify`: proving what changed values break, against computing every state anew."""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gsid_service.bench.figure import Figure
from gsid_service.bench.simulate import ROUTERS_PER_REFLECTOR, seconds
from gsid_service.records import Fact
from gsid_service.simulate import designs, faults, intents, topologies
from gsid_service.simulate.designs import Design
from gsid_service.simulate.faults import Slot
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.intents import Amounts
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, changed
from gsid_service.simulate.revise import Value
from gsid_service.verify.proof import prove
from gsid_service.verify.repair import Suspect, search

WANTED = Amounts(fwd_per_network=(5, 5), reachable_per_network=(5, 5), isolation=(20, 20))
PRIOR = 0.5
CHECKED = 5  # reverts that are computed anew as well


class Changed(NamedTuple):
    """A network in which values were changed, and what they were."""

    design: Design
    facts: tuple[Fact, ...]
    wanted: tuple[Fact, ...]
    before: list[Value]


def measure() -> Iterator[Figure]:
    yield from _verifying(_network(routers=23, networks=7, values=10), allowed=0.05)
    yield from _verifying(_network(routers=1_000, networks=100, values=50), allowed=10.0)


def _verifying(network: Changed, allowed: float) -> Iterator[Figure]:
    entities = network.design.entities
    observed = forward(build(entities, network.facts), always_compare_med=True)
    name = f"{len(observed.plane.routers):,} routers, {len(network.before)} changed values"
    whole = seconds(lambda: _verify(network))
    yield Figure(f"verify {name}", whole, "s", f"{allowed:g} s allowed", allowed / whole)
    ours = seconds(lambda: _incremental(network, observed)) / len(network.before)
    some = network.before[:CHECKED]
    theirs = seconds(lambda: [_anew(network, value) for value in some]) / len(some)
    for value in some:
        _compare(network, observed, value)
    against = f"computed anew ({theirs * 1000:.2f} ms)"
    yield Figure(f"one revert, {name}", ours * 1000, "ms", against, theirs / ours)


def _verify(network: Changed) -> None:
    """All that the cycle does once the scores are there."""
    observed = forward(build(network.design.entities, network.facts), always_compare_med=True)
    bench = Bench(observed, network.facts, network.wanted)
    suspects = [Suspect(*value, PRIOR) for value in network.before]
    kept = [revert.suspect for revert in search(bench, suspects).reverts]
    for suspect in suspects:
        prove(bench, suspect, kept)


def _incremental(network: Changed, observed: Forwarding) -> None:
    bench = Bench(observed, network.facts, network.wanted)
    for value in network.before:
        bench.attempt(value)


def _anew(network: Changed, value: Value) -> Forwarding:
    key, parameter, number = value
    facts = faults.with_values(network.facts, {(key, parameter): number})
    state = forward(build(network.design.entities, facts), always_compare_med=True)
    for intent in network.wanted:
        intents.satisfied(intent, state)
    return state


def _compare(network: Changed, observed: Forwarding, value: Value) -> None:
    """A time counts only where both lead to the same next hops."""
    bench = Bench(observed, network.facts)
    trial = bench.attempt(value)
    everything = range(len(observed.plane.networks))
    hops = _anew(network, value).hops(everything)
    if trial is None or not np.array_equal(bench.state_of(trial).hops(everything), hops):
        raise RuntimeError(f"the state with {value} differs when it is computed anew")


def _network(routers: int, networks: int, values: int) -> Changed:
    """A network of some size with values redrawn by chance, half of them on links."""
    rng = random.Random(f"bench verify {routers}")
    size = designs.Size((networks, networks), (3, 3), WANTED)
    topology = topologies.planar(routers, rng)
    reflectors = max(2, routers // ROUTERS_PER_REFLECTOR)
    design = designs.propose(topology, size, rng, reflectors)
    wanted = intents.sample(design.forwarding(), WANTED, rng)
    links, routes = _places(design.facts)
    chosen = [*rng.sample(links, values // 2), *rng.sample(routes, values - values // 2)]
    redrawn = {
        (design.facts[slot.place].key, slot.parameter.name): faults.another_value(
            slot.parameter, design.facts[slot.place].params[slot.parameter.name], rng
        )
        for slot in chosen
    }
    facts = faults.with_values(design.facts, redrawn)
    return Changed(design, facts, wanted, list(changed(facts, design.facts)))


def _places(facts: tuple[Fact, ...]) -> tuple[list[Slot], list[Slot]]:
    """The places of values on links, and of those on routes."""
    by_parameter = list(faults.slots(facts).values())
    return by_parameter[-1], [slot for places in by_parameter[:-1] for slot in places]
