"""From entities and facts to a `Plane`: links, iBGP sessions and announcements, by index.

Routers are numbered in entity order, reflectors among them. A `router` that has an `ibgp` session
with a reflector is its client; two reflectors that have one are non-client peers of each other. A
plain iBGP speaker of a full mesh is therefore written as a reflector without clients, which behaves
the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from gsid_service import schema
from gsid_service.records import Entity, Fact, IntArray

ATTRIBUTES = (schema.LOCAL_PREF, schema.AS_PATH_LENGTH, schema.ORIGIN, schema.MED, schema.SPEAKER)
LOCAL_PREF, AS_PATH_LENGTH, ORIGIN, MED, SPEAKER = range(len(ATTRIBUTES))
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Plane:
    """What OSPF and BGP need to know of a network, by index into `routers`, `peers`, `networks`."""

    routers: tuple[str, ...]
    peers: tuple[str, ...]
    networks: tuple[str, ...]
    links: IntArray  # [L, 2] from, to; sorted, both directions of every link
    weights: IntArray  # [L]
    clients: tuple[tuple[int, int], ...]  # (client, reflector)
    mesh: tuple[tuple[int, int], ...]  # (reflector, reflector), both directions
    announced: IntArray  # [A, 3] gateway, peer, network
    attributes: IntArray  # [A, 5] as ATTRIBUTES, UNKNOWN where not reported
    peer_asn: IntArray  # [P], UNKNOWN where not reported

    @cached_property
    def router_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.routers)}

    @cached_property
    def network_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.networks)}

    @cached_property
    def hop_index(self) -> dict[str, int]:
        """Next hops in one numbering: routers first, then the external peers."""
        return {name: i for i, name in enumerate(self.routers + self.peers)}

    @cached_property
    def first_link(self) -> IntArray:
        """[R + 1]: the links of router r are rows first_link[r] to first_link[r + 1]."""
        return np.searchsorted(self.links[:, 0], np.arange(len(self.routers) + 1))

    @cached_property
    def link_starts(self) -> list[int]:
        """`first_link` as a list, for those who ask for one router at a time."""
        return cast(list[int], self.first_link.tolist())

    @cached_property
    def other_direction(self) -> IntArray:
        """[L]: the row of each link's other direction."""
        start, end = self.links.T
        return np.lexsort((start, end))

    @cached_property
    def link_ends(self) -> list[int]:
        return cast(list[int], self.links[:, 1].tolist())

    @cached_property
    def gateway_of(self) -> list[int]:
        """The gateway of each announcement."""
        return cast(list[int], self.announced[:, 0].tolist())

    @cached_property
    def peer_of(self) -> list[int]:
        """The external peer of each announcement."""
        return cast(list[int], self.announced[:, 1].tolist())

    @cached_property
    def routes_to(self) -> dict[int, list[int]]:
        """The announcements of each network that has any."""
        routes = defaultdict(list)
        for route, network in enumerate(self.announced[:, 2].tolist()):
            routes[network].append(route)
        return dict(routes)

    @cached_property
    def rivals(self) -> IntArray:
        """[n, 3] network, announcement, gateway: what each gateway of a network may hear."""
        found = [
            (network, route, self.gateway_of[other])
            for network, routes in self.routes_to.items()
            for route in routes
            for other in routes
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 3)

    def with_values(self, weights: IntArray, attributes: IntArray) -> "Plane":
        """The same network with other values; what was worked out of its shape is kept."""
        other = copy(self)
        vars(other).update(weights=weights, attributes=attributes)
        return other

    def neighbours(self, router: int) -> list[int]:
        return self.link_ends[self.link_starts[router] : self.link_starts[router + 1]]


def build(entities: Iterable[Entity], facts: Iterable[Fact]) -> Plane:
    """Read a network's routing facts; intents among them are passed over."""
    entities = tuple(entities)
    is_router = {kind.name for kind in schema.ROUTERS}
    routers = tuple(e.id for e in entities if e.kind in is_router)
    peers = tuple(e for e in entities if e.kind == schema.EXTERNAL_AS.name)
    networks = tuple(e.id for e in entities if e.kind == schema.NETWORK.name)
    reflectors = {e.id for e in entities if e.kind == schema.ROUTE_REFLECTOR.name}
    router_index = {name: i for i, name in enumerate(routers)}
    peer_index = {peer.id: i for i, peer in enumerate(peers)}
    network_index = {name: i for i, name in enumerate(networks)}

    weights: dict[tuple[int, int], int] = {}
    clients: set[tuple[int, int]] = set()
    mesh: set[tuple[int, int]] = set()
    gateways: dict[int, list[int]] = {}
    routes: list[tuple[int, int, Mapping[str, int]]] = []
    for predicate, args, params, _ in facts:
        if predicate == schema.CONNECTED.name:
            ends = router_index[args[0]], router_index[args[1]]
            weights[ends] = params[schema.OSPF_WEIGHT.name]
        elif predicate == schema.IBGP.name:
            a, b = router_index[args[0]], router_index[args[1]]
            if args[0] in reflectors:
                mesh |= {(a, b), (b, a)}
            else:
                clients.add((a, b))
        elif predicate == schema.EBGP.name:
            gateways.setdefault(peer_index[args[1]], []).append(router_index[args[0]])
        elif predicate == schema.BGP_ROUTE.name:
            routes.append((peer_index[args[0]], network_index[args[1]], params))

    for (a, b), weight in list(weights.items()):
        weights.setdefault((b, a), weight)
    links = sorted(weights)
    announced = [
        (gateway, peer, network, *attributes_of(params))
        for peer, network, params in routes
        for gateway in gateways.get(peer, ())
    ]
    table = np.array(announced, dtype=np.int64).reshape(-1, 3 + len(ATTRIBUTES))
    return Plane(
        routers=routers,
        peers=tuple(peer.id for peer in peers),
        networks=networks,
        links=np.array(links, dtype=np.int64).reshape(-1, 2),
        weights=np.array([weights[link] for link in links], dtype=np.int64),
        clients=tuple(sorted(clients)),
        mesh=tuple(sorted(mesh)),
        announced=table[:, :3],
        attributes=table[:, 3:],
        peer_asn=np.array([UNKNOWN if p.asn is None else p.asn for p in peers], dtype=np.int64),
    )


def attributes_of(params: Mapping[str, int]) -> tuple[int, ...]:
    """As `ATTRIBUTES`, with the protocol's default where one was left out."""
    return tuple(
        params.get(p.name, UNKNOWN if p.default is None else p.default) for p in ATTRIBUTES
    )
