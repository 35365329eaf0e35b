"""Designs: random networks as the paper's data has them, with intents that hold in them.

Two of the routers are reflectors, every other is a client of one of them. For each destination
network a pool of announcements is drawn, and each gateway takes one of the pool at a random router.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from gsid_service import schema
from gsid_service.records import Entity, Fact
from gsid_service.schema import AS_PATH_LENGTH, LOCAL_PREF, MED, ORIGIN, OSPF_WEIGHT, Parameter
from gsid_service.simulate import intents
from gsid_service.simulate.chance import between, pick
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.topologies import Topology

REFLECTORS = 2
FREE_MED = (0, 10)
FIRST_ASN = 4_200_000_000  # private, RFC 6996
Route = dict[str, int]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a design is, as inclusive ranges."""

    networks: tuple[int, int]
    gateways_per_network: tuple[int, int]
    intents: intents.Amounts


@dataclass(frozen=True, slots=True)
class Peering:
    """A peering at a gateway, and the route to the one network that it announces."""

    gateway: int
    peer: str
    asn: int
    network: str
    route: Route


@dataclass(frozen=True)
class Design:
    """A network whose values are as they should be."""

    topology: Topology
    reflectors: tuple[int, ...]
    reflector_of: tuple[int, ...]  # of each router; its own number for a reflector
    weights: tuple[int, ...]  # of each link of the topology
    networks: tuple[str, ...]
    peerings: tuple[Peering, ...]

    def router(self, number: int) -> str:
        return f"RR{number}" if number in self.reflectors else f"R{number}"

    @cached_property
    def entities(self) -> tuple[Entity, ...]:
        kinds = [
            schema.ROUTE_REFLECTOR.name if r in self.reflectors else schema.ROUTER.name
            for r in range(self.topology.routers)
        ]
        places = zip(kinds, self.topology.labels, self.topology.positions, strict=True)
        routers = [
            Entity(self.router(r), kind, None, label, position)
            for r, (kind, label, position) in enumerate(places)
        ]
        peers = [Entity(p.peer, schema.EXTERNAL_AS.name, p.asn) for p in self.peerings]
        return (*routers, *peers, *(Entity(n, schema.NETWORK.name) for n in self.networks))

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        names = [self.router(r) for r in range(self.topology.routers)]
        reflectors = [names[r] for r in self.reflectors]
        mesh = [(a, b) for i, a in enumerate(reflectors) for b in reflectors[i + 1 :]]
        clients = [
            (name, names[reflector])
            for name, reflector in zip(names, self.reflector_of, strict=True)
            if name != names[reflector]
        ]
        links = zip(self.topology.links, self.weights, strict=True)
        return (
            *(
                Fact(schema.CONNECTED.name, (names[a], names[b]), {OSPF_WEIGHT.name: weight})
                for (a, b), weight in links
            ),
            *(Fact(schema.IBGP.name, session) for session in mesh + clients),
            *(Fact(schema.EBGP.name, (names[p.gateway], p.peer)) for p in self.peerings),
            *(Fact(schema.BGP_ROUTE.name, (p.peer, p.network), p.route) for p in self.peerings),
        )

    def forwarding(self) -> Forwarding:
        return forward(build(self.entities, self.facts), always_compare_med=True)

    def in_use(self) -> int:
        """The next free number for a peering's AS."""
        return max((p.asn - FIRST_ASN + 1 for p in self.peerings), default=0)


def draw(topology: Topology, size: Size, rng: random.Random) -> tuple[Design, Forwarding]:
    """A random design on a topology, with its forwarding state; every network has one outcome."""
    return settle(propose(topology, size, rng), rng)


def propose(
    topology: Topology, size: Size, rng: random.Random, reflectors: int = REFLECTORS
) -> Design:
    """A random design, of which nobody has looked yet where its traffic goes."""
    routers = range(topology.routers)
    chosen = tuple(sorted(rng.sample(routers, min(reflectors, topology.routers))))
    design = Design(
        topology=topology,
        reflectors=chosen,
        reflector_of=tuple(r if r in chosen else pick(rng, chosen) for r in routers),
        weights=tuple(draw_value(OSPF_WEIGHT, rng) for _ in topology.links),
        networks=tuple(f"N{k}" for k in range(between(rng, *size.networks))),
        peerings=(),
    )
    peerings: list[Peering] = []
    for network in design.networks:
        count = between(rng, *size.gateways_per_network)
        peerings += draw_peerings(design, network, count, len(peerings), rng)
    return replace(design, peerings=tuple(peerings))


def draw_peerings(
    design: Design, network: str, gateways: int, number: int, rng: random.Random
) -> list[Peering]:
    """Fresh peerings that announce a network, numbered from `number` on."""
    pool = announcements(rng)
    count = min(gateways, design.topology.routers)
    return [
        peering(design, gateway, number + i, network, pick(rng, pool))
        for i, gateway in enumerate(rng.sample(range(design.topology.routers), count))
    ]


def peering(design: Design, gateway: int, number: int, network: str, route: Route) -> Peering:
    asn = FIRST_ASN + number
    return Peering(gateway, f"AS{asn}@{design.router(gateway)}", asn, network, route)


def settle(design: Design, rng: random.Random) -> tuple[Design, Forwarding]:
    """Redraw the networks that have no stable outcome, or more than one."""
    while True:
        state = design.forwarding()
        unstable = [n for k, n in enumerate(design.networks) if not state.is_stable(k)]
        if not unstable:
            return design, state
        for network in unstable:
            design = redraw_network(design, network, rng)


def redraw_network(design: Design, network: str, rng: random.Random) -> Design:
    """The design with one network's peerings replaced by fresh ones, as many as before."""
    kept = tuple(p for p in design.peerings if p.network != network)
    count = len(design.peerings) - len(kept)
    fresh = draw_peerings(design, network, count, design.in_use(), rng)
    return replace(design, peerings=kept + tuple(fresh))


def announcements(rng: random.Random) -> list[Route]:
    """The paper's pool of 11: two free, then two each that match the pool's best ever further."""
    pool = [_free(rng) for _ in range(2)]
    fixed: Route = {}
    for parameter, best in _BEST:
        fixed[parameter.name] = best(route[parameter.name] for route in pool)
        pool += [_free(rng) | fixed for _ in range(2)]
    for route in pool[-2:]:
        route[MED.name] = draw_value(MED, rng)
    winner = min((r for r in pool if r | fixed == r), key=lambda route: route[MED.name])
    return pool + [dict(winner) for _ in range(3)]


_BEST: tuple[tuple[Parameter, Callable[..., int]], ...] = (
    (LOCAL_PREF, max),
    (AS_PATH_LENGTH, min),
    (ORIGIN, min),
)


def _free(rng: random.Random) -> Route:
    drawn = {p.name: draw_value(p, rng) for p in (LOCAL_PREF, AS_PATH_LENGTH, ORIGIN)}
    return drawn | {MED.name: between(rng, *FREE_MED)}


def draw_value(parameter: Parameter, rng: random.Random) -> int:
    """A value drawn uniformly from the paper's range."""
    if parameter.paper is None:
        raise ValueError(f"{parameter.name} has no range to draw from")
    return between(rng, *parameter.paper)
