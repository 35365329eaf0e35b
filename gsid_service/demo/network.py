"""A network that looks like an operator's: from a topology and a seed to a snapshot of the whole.

Routers are named for their cities, link costs follow distance, the best connected routers reflect.
Each destination is a customer's, who peers at two gateways, one of them preferred in one of four
ways; transit providers announce every destination too, for when the customer is not there.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import combinations, count
from math import asin, cos, radians, sin, sqrt
from typing import NamedTuple

from gsid_service import schema
from gsid_service.records import Collector, Entity, Fact, Snapshot
from gsid_service.schema import AS_PATH_LENGTH, LOCAL_PREF, MED, ORIGIN, OSPF_WEIGHT
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.topologies import Topology, part, real

LARGE = "backbone/europe_nosc"
COST_STEP, COST_STEPS = 10, 20  # the longest link costs 200
ROUTERS_PER_REFLECTOR, REFLECTORS_AT_LEAST = 50, 2
ROUTERS_PER_GATEWAY, GATEWAYS_AT_LEAST = 6, 4
MORE_NETWORKS = 2  # than gateways
FIRST_CUSTOMER, FIRST_TRANSIT, TRANSITS = 65101, 65201, 2  # private, RFC 6996
# For documentation (RFC 5737); where these do not suffice, for benchmarks (RFC 2544).
DOCUMENTED = ("203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24")
BEGIN = datetime(2026, 11, 15, 22, tzinfo=UTC)
WHOLE = Collector("whole", "simulator")


class Route(NamedTuple):
    """What a peering announces for a destination."""

    local_pref: int
    as_path_length: int
    med: int

    @property
    def params(self) -> dict[str, int]:
        return {
            LOCAL_PREF.name: self.local_pref,
            AS_PATH_LENGTH.name: self.as_path_length,
            ORIGIN.name: 0,
            MED.name: self.med,
        }


# The customer's route at the preferred gateway, and at the other one.
WAYS = (
    (Route(200, 2, 0), Route(100, 2, 0)),  # the other is a backup
    (Route(200, 2, 0), Route(200, 2, 50)),  # as the customer asks
    (Route(200, 2, 0), Route(200, 4, 0)),  # the customer prepends there
    (Route(200, 2, 0), Route(200, 2, 0)),  # whichever is nearer
)


class Peering(NamedTuple):
    """A gateway, the AS that it peers with there, and what that announces."""

    gateway: str
    asn: int
    label: str
    routes: dict[str, Route]

    @property
    def peer(self) -> str:
        return f"AS{self.asn}@{self.gateway}"


def large(routers: int, seed: int = 0) -> Snapshot:
    """A part of Europe's backbone with so many routers."""
    return network(f"europe-{routers}", part(real(LARGE), routers), seed)


def network(name: str, topology: Topology, seed: int) -> Snapshot:
    """All that there is in a network; every destination has one stable outcome."""
    attempts = (_drawn(topology, random.Random(f"gsid demo {seed} {n}")) for n in count())
    entities, facts = next(a for a in attempts if not forward(build(*a)).unsettled())
    return Snapshot(name, WHOLE, 1, BEGIN, True, entities, facts)


def _drawn(topology: Topology, rng: random.Random) -> tuple[tuple[Entity, ...], tuple[Fact, ...]]:
    names, reflectors = _names(topology), _reflectors(topology)
    others = [names[r] for r in range(topology.routers) if r not in reflectors]
    gateways = rng.sample(others, max(GATEWAYS_AT_LEAST, topology.routers // ROUTERS_PER_GATEWAY))
    networks = _prefixes(len(gateways) + MORE_NETWORKS)
    peerings = [*_customers(gateways, networks, rng), *_transits(gateways, networks, rng)]
    kinds = [schema.ROUTER.name] * topology.routers
    for reflector in reflectors:
        kinds[reflector] = schema.ROUTE_REFLECTOR.name
    entities = (
        *(
            Entity(name, kind, None, label or name, place)
            for name, kind, label, place in zip(
                names, kinds, topology.labels, topology.positions, strict=True
            )
        ),
        *(Entity(p.peer, schema.EXTERNAL_AS.name, p.asn, p.label) for p in peerings),
        *(Entity(prefix, schema.NETWORK.name) for prefix in networks),
    )
    facts = (*_links(topology, names), *_sessions(topology, names, reflectors), *_routes(peerings))
    return tuple(sorted(entities)), facts


def _names(topology: Topology) -> list[str]:
    """A readable id for each router, and none twice."""
    labels = ["-".join((label or "R").split()) for label in topology.labels]
    total, so_far = Counter(labels), Counter[str]()
    names = []
    for label in labels:
        so_far[label] += 1
        names.append(label if total[label] == 1 else f"{label}-{so_far[label]}")
    return names


def _reflectors(topology: Topology) -> list[int]:
    """Well connected routers that are far from each other."""
    degree = Counter(end for link in topology.links for end in link)
    places = topology.positions
    chosen = [max(range(topology.routers), key=lambda router: degree[router])]

    def worth(router: int) -> float:
        return degree[router] * min(distance(places[router], places[r]) for r in chosen)

    while len(chosen) < max(REFLECTORS_AT_LEAST, topology.routers // ROUTERS_PER_REFLECTOR):
        chosen.append(max(range(topology.routers), key=worth))
    return chosen


def _prefixes(wanted: int) -> list[str]:
    more = (f"198.{18 + n // 256}.{n % 256}.0/24" for n in range(512))
    return [prefix for prefix, _ in zip((*DOCUMENTED, *more), range(wanted), strict=False)]


def _customers(
    gateways: Sequence[str], networks: Sequence[str], rng: random.Random
) -> Iterator[Peering]:
    """Each destination at two gateways, and every way of preferring one of them in turn."""
    for number, prefix in enumerate(networks):
        places = rng.sample(gateways, 2)
        asn = FIRST_CUSTOMER + number
        for gateway, route in zip(places, WAYS[number % len(WAYS)], strict=True):
            yield Peering(gateway, asn, f"AS{asn} (customer)", {prefix: route})


def _transits(
    gateways: Sequence[str], networks: Sequence[str], rng: random.Random
) -> Iterator[Peering]:
    for number, gateway in enumerate(rng.sample(gateways, TRANSITS)):
        asn = FIRST_TRANSIT + number
        routes = {prefix: Route(100, rng.randint(3, 5), 0) for prefix in networks}
        yield Peering(gateway, asn, f"AS{asn} (transit)", routes)


def _links(topology: Topology, names: Sequence[str]) -> Iterator[Fact]:
    places = topology.positions
    lengths = [distance(places[a], places[b]) for a, b in topology.links]
    for (a, b), length in zip(topology.links, lengths, strict=True):
        cost = COST_STEP * max(1, round(COST_STEPS * length / max(lengths)))
        yield Fact(schema.CONNECTED.name, (names[a], names[b]), {OSPF_WEIGHT.name: cost})


def _sessions(
    topology: Topology, names: Sequence[str], reflectors: Sequence[int]
) -> Iterator[Fact]:
    """Reflectors peer with each other, every other router with the nearest of them."""
    places = topology.positions
    for a, b in combinations(reflectors, 2):
        yield Fact(schema.IBGP.name, (names[a], names[b]))
    for router in range(topology.routers):
        if router not in reflectors:
            nearest = min(reflectors, key=lambda r: distance(places[r], places[router]))
            yield Fact(schema.IBGP.name, (names[router], names[nearest]))


def _routes(peerings: Sequence[Peering]) -> Iterator[Fact]:
    for p in peerings:
        yield Fact(schema.EBGP.name, (p.gateway, p.peer))
    for p in peerings:
        for prefix, route in p.routes.items():
            yield Fact(schema.BGP_ROUTE.name, (p.peer, prefix), route.params)


def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Along a great circle, as an angle."""
    (x1, y1), (x2, y2) = ((radians(x), radians(y)) for x, y in (one, other))
    half = sin((y2 - y1) / 2) ** 2 + cos(y1) * cos(y2) * sin((x2 - x1) / 2) ** 2
    return 2 * asin(sqrt(half))
