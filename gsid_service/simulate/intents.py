"""Intents: whether they hold in a forwarding state, and samples of such as do.

Where equal-cost next hops exist, traffic may take any of them, and so an intent speaks of any:
- fwd(R, N, H): H is a next hop of R towards N.
- reachable(R, N, V): some path of R's traffic to N passes V (or leaves by it) and arrives.
- traffic_isolation(R1, R2, N1, N2): not both N1 and N2 have R2 as a next hop of R1.
A negated intent is satisfied where the plain one is not. What is not there forwards nothing.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol

from gsid_service import schema
from gsid_service.records import Fact, FactKey
from gsid_service.simulate.chance import between, pick
from gsid_service.simulate.forwarding import Forwarding
from gsid_service.simulate.plane import Plane

TRIES = 100  # draws before an intent counts as not to be had in this network


@dataclass(frozen=True, slots=True)
class Amounts:
    """How many intents to sample, as inclusive ranges."""

    fwd_per_network: tuple[int, int]
    reachable_per_network: tuple[int, int]
    isolation: tuple[int, int]


class State(Protocol):
    """What sampling asks of a forwarding state."""

    @property
    def plane(self) -> Plane: ...
    @property
    def hop_names(self) -> tuple[str, ...]: ...
    def is_stable(self, network: int) -> bool: ...
    def next_hops(self, network: int, router: int) -> tuple[int, ...]: ...
    def walk(self, network: int, router: int) -> list[int]: ...
    def reached(self, network: int, router: int) -> set[int]: ...


def satisfied(intent: Fact, forwarding: Forwarding) -> bool | None:
    """Whether the forwarding state satisfies an intent; None where a network has no one outcome."""
    outcome = _OUTCOMES[intent.predicate](intent, forwarding)
    return None if outcome is None else outcome == intent.holds


def broken(intents: Iterable[Fact], forwarding: Forwarding) -> list[Fact]:
    return [intent for intent in intents if satisfied(intent, forwarding) is False]


def traffic(intent: Fact) -> tuple[str, tuple[str, ...]]:
    """The router whose traffic an intent speaks of, and the networks that it goes to."""
    if intent.predicate == schema.TRAFFIC_ISOLATION.name:
        return intent.args[0], intent.args[2:]
    return intent.args[0], intent.args[1:2]


def hops(intent: Fact) -> tuple[FactKey, ...]:
    """The link or route, as far as there is one, that an intent names."""
    if intent.predicate == schema.TRAFFIC_ISOLATION.name:
        return (FactKey(schema.CONNECTED.name, intent.args[:2]),)
    router, network, via = intent.args
    route = FactKey(schema.BGP_ROUTE.name, (via, network))
    if intent.predicate == schema.FWD.name:
        return route, FactKey(schema.CONNECTED.name, (router, via))
    return (route,)


def asks_for_its_hop(intent: Fact) -> bool:
    """Whether the hop that an intent names is to be taken, and not to be left alone."""
    return intent.holds != (intent.predicate == schema.TRAFFIC_ISOLATION.name)


def _forwards(intent: Fact, state: Forwarding) -> bool | None:
    router, network, hop = intent.args
    hops = _next_hops(state, network, router)
    return None if hops is None else state.plane.hop_index.get(hop) in hops


def _reaches(intent: Fact, state: Forwarding) -> bool | None:
    router, network, via = intent.args
    k, r = state.plane.network_index.get(network), state.plane.router_index.get(router)
    hop = state.plane.hop_index.get(via)
    if k is None or r is None or hop is None:
        return False
    if not state.is_stable(k):
        return None
    return hop in state.reached(k, r) and _arrives(state, k, hop)


def _arrives(state: Forwarding, network: int, hop: int) -> bool:
    return any(h >= len(state.plane.routers) for h in state.reached(network, hop))


def _is_isolated(intent: Fact, state: Forwarding) -> bool | None:
    first, second, *networks = intent.args
    hops = [_next_hops(state, network, first) for network in networks]
    if any(h is None for h in hops):
        return None
    hop = state.plane.hop_index.get(second)
    return not all(hop in h for h in hops if h is not None)


def _next_hops(state: Forwarding, network: str, router: str) -> tuple[int, ...] | None:
    """The next hops; none for a router or network that is not there, None without one outcome."""
    k, r = state.plane.network_index.get(network), state.plane.router_index.get(router)
    if k is None or r is None:
        return ()
    return state.next_hops(k, r) if state.is_stable(k) else None


_OUTCOMES = {
    schema.FWD.name: _forwards,
    schema.REACHABLE.name: _reaches,
    schema.TRAFFIC_ISOLATION.name: _is_isolated,
}


def derive(state: Forwarding, at_most: int) -> tuple[Fact, ...]:
    """`reachable` from routers to networks by the exit router that the state uses.

    Re-tuning inside the AS leaves these alone. Where there are more than `at_most`, an even choice.
    """
    plane = state.plane
    networks = [k for k in range(len(plane.networks)) if state.is_stable(k)]
    pairs: Sequence[int] = range(len(plane.routers) * len(networks))  # numbered: they are many
    if len(pairs) > at_most:
        pairs = sorted(random.Random(at_most).sample(pairs, at_most))
    derived = []
    for pair in pairs:
        router, place = divmod(pair, len(networks))
        network = networks[place]
        way = state.walk(network, router)
        if way[-1] >= len(plane.routers) and len(way) > 2:
            args = plane.routers[router], plane.networks[network], plane.routers[way[-2]]
            derived.append(Fact(schema.REACHABLE.name, args))
    return tuple(derived)


def sample(state: State, amounts: Amounts, rng: random.Random) -> tuple[Fact, ...]:
    """Intents that the state satisfies, half of each kind negated, none twice."""
    sampler = _Sampler(state, rng)
    for network in sampler.networks:
        wanted = between(rng, *amounts.fwd_per_network)
        sampler.collect(wanted, partial(sampler.fwd, network))
        wanted = between(rng, *amounts.reachable_per_network)
        sampler.collect(wanted, partial(sampler.reachable, network))
    sampler.collect(between(rng, *amounts.isolation), sampler.isolation)
    return tuple(Fact(*key, holds=holds) for key, holds in sampler.found.items())


class _Sampler:
    """Draws intents by chance; a draw that finds nothing answers None and is tried again."""

    def __init__(self, state: State, rng: random.Random) -> None:
        self.state, self.rng = state, rng
        self.names = state.hop_names
        self.routers = range(len(state.plane.routers))
        self.networks = [k for k in range(len(state.plane.networks)) if state.is_stable(k)]
        self.walks: dict[int, list[tuple[int, int]]] = defaultdict(list)  # still to be used
        self.found: dict[FactKey, bool] = {}

    def collect(self, wanted: int, draw: Callable[[bool], FactKey | None]) -> None:
        """Add `wanted` new intents, every other one negated, or as many as chance brings up."""
        first = self.rng.random() < 0.5
        for number in range(wanted):
            holds = first ^ (number % 2 == 1)
            for _ in range(TRIES):
                key = draw(holds)
                if key is not None and key not in self.found:
                    self.found[key] = holds
                    break

    def fwd(self, network: int, holds: bool) -> FactKey | None:
        """The next hop of a walk of 2 to 4 hops; negated: a neighbour that is no next hop."""
        if not self.walks[network]:
            self.walks[network] = self._walk(network)
            return None
        router, hop = self.walks[network].pop()
        if not holds:
            taken = self.state.next_hops(network, router)
            others = [n for n in self.state.plane.neighbours(router) if n not in taken]
            if not others:
                return None
            hop = pick(self.rng, others)
        name = self.state.plane.networks[network]
        return FactKey(schema.FWD.name, (self.names[router], name, self.names[hop]))

    def _walk(self, network: int) -> list[tuple[int, int]]:
        """Each router of a walk with its next hop, the last first."""
        walk = self.state.walk(network, pick(self.rng, self.routers))
        hops = walk[: 1 + between(self.rng, 2, 4)]
        return list(pairwise(hops))[::-1]

    def reachable(self, network: int, holds: bool) -> FactKey | None:
        """A hop on the path to the exit, the exit included; negated: a router on no path."""
        router = pick(self.rng, self.routers)
        if holds:
            walk = self.state.walk(network, router)
            if walk[-1] in self.routers:
                return None
            via = pick(self.rng, walk[1:])
        else:
            via = pick(self.rng, self.routers)
            if via in self.state.reached(network, router):
                return None
        name = self.state.plane.networks[network]
        return FactKey(schema.REACHABLE.name, (self.names[router], name, self.names[via]))

    def isolation(self, holds: bool) -> FactKey | None:
        """A hop that one network's traffic takes and another's does not; negated: both take it."""
        if len(self.networks) < 2:
            return None
        one, other = pick(self.rng, self.networks), pick(self.rng, self.networks)
        router = pick(self.rng, self.routers)
        if one == other:
            return None
        hop = next(iter(self.state.next_hops(one, router)), None)
        if hop is None or hop not in self.routers:
            return None
        if (hop in self.state.next_hops(other, router)) == holds:
            return None
        ends = self.names[router], self.names[hop]
        pair = self.state.plane.networks[one], self.state.plane.networks[other]
        return FactKey(schema.TRAFFIC_ISOLATION.name, (*ends, *pair))
