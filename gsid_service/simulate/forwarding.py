"""Forwarding: from a plane to the next hops of every router for every network."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from gsid_service.records import BoolArray, IntArray
from gsid_service.simulate import bgp, ospf
from gsid_service.simulate.dispute import Outcome
from gsid_service.simulate.plane import Plane


@dataclass(frozen=True, eq=False)
class Forwarding:
    """Where every router sends traffic for every network.

    Next hops are numbered routers first, then external peers, as in `Plane.hop_index`.
    """

    plane: Plane
    paths: ospf.Paths
    selection: bgp.Selection
    next_hop: IntArray  # [K, R]; the lowest-numbered where several are equal, NO_HOP for none
    always_compare_med: bool
    asked: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict, repr=False)
    passed: dict[tuple[int, int], set[int]] = field(default_factory=dict, repr=False)

    @cached_property
    def hop_names(self) -> tuple[str, ...]:
        return self.plane.routers + self.plane.peers

    def is_stable(self, network: int) -> bool:
        return self.selection.outcome[network] is Outcome.ONE

    def next_hops(self, network: int, router: int) -> tuple[int, ...]:
        """All equal next hops: equal-cost first hops, or equal external peers at a gateway."""
        known = self.asked.get((network, router))
        if known is None:
            known = self.asked[network, router] = self._next_hops(network, router)
        return known

    def _next_hops(self, network: int, router: int) -> tuple[int, ...]:
        plane, route = self.plane, int(self.selection.route[network, router])
        if route == bgp.NO_ROUTE:
            return ()
        gateway = plane.gateway_of[route]
        if gateway == router:
            routes = self.selection.equal_peers.get((network, router), (route,))
            return tuple(sorted(len(plane.routers) + plane.peer_of[r] for r in routes))
        start, end = plane.link_starts[router], plane.link_starts[router + 1]
        used = self.paths.on_path[self.paths.row_of[gateway], start:end].tolist()
        return tuple(compress(plane.link_ends[start:end], used))

    def unsettled(self) -> dict[str, Outcome]:
        """The networks that have not exactly one stable outcome."""
        outcomes = zip(self.plane.networks, self.selection.outcome, strict=True)
        return {name: outcome for name, outcome in outcomes if outcome is not Outcome.ONE}

    def by_name(self, equal: bool = False) -> dict[str, dict[str, Any] | None]:
        """{network: {router: next hop}}, the hop None where there is none; or lists of equal hops.

        A network that has not exactly one stable outcome has None in place of its routers.
        """
        hop = self._hop_names if equal else self._hop_name
        routers = list(enumerate(self.plane.routers))
        return {
            network: {name: hop(k, r) for r, name in routers} if self.is_stable(k) else None
            for k, network in enumerate(self.plane.networks)
        }

    def _hop_name(self, network: int, router: int) -> str | None:
        hop = int(self.next_hop[network, router])
        return None if hop == ospf.NO_HOP else self.hop_names[hop]

    def _hop_names(self, network: int, router: int) -> list[str]:
        return [self.hop_names[hop] for hop in self.next_hops(network, router)]

    def walk(self, network: int, router: int) -> list[int]:
        """The hops from `router` on, one next hop each; ends at a peer, a dead end or a loop."""
        hops = [router]
        seen = {router}
        while hops[-1] < len(self.plane.routers):
            hop = int(self.next_hop[network, hops[-1]])
            if hop == ospf.NO_HOP or hop in seen:
                break
            hops.append(hop)
            seen.add(hop)
        return hops

    def reached(self, network: int, router: int) -> set[int]:
        """Every hop on some path of traffic from `router`, itself included."""
        if (network, router) in self.passed:
            return self.passed[network, router]
        seen, pending = {router}, [router]
        while pending:
            hop = pending.pop()
            if hop < len(self.plane.routers):
                fresh = [n for n in self.next_hops(network, hop) if n not in seen]
                seen.update(fresh)
                pending += fresh
        self.passed[network, router] = seen
        return seen


def forward(plane: Plane, always_compare_med: bool = False) -> Forwarding:
    """The forwarding state that the plane's values lead to."""
    gateways = np.unique(plane.announced[:, 0])
    paths = ospf.shortest_paths(plane, gateways)
    selection = bgp.select(plane, paths, always_compare_med)
    hops = next_hop(plane, paths, selection.route)
    return Forwarding(plane, paths, selection, hops, always_compare_med)


def moved(before: Forwarding, after: Forwarding) -> list[tuple[int, int]]:
    """Every (network, router) whose next hops differ; both states have the same entities."""
    if _is_alike(before, after):
        suspects = _may_differ(before, after)
    else:
        # Sets with the same lowest hop may still differ in the others.
        several = _has_several(before) | _has_several(after)
        suspects = (before.next_hop != after.next_hop) | several
    return [
        (network, router)
        for network, router in np.argwhere(suspects).tolist()
        if before.next_hops(network, router) != after.next_hops(network, router)
    ]


def _is_alike(before: Forwarding, after: Forwarding) -> bool:
    """Whether two states differ in values alone, so that links and routes have the same numbers."""
    one, other = before.plane, after.plane
    return (
        np.array_equal(one.links, other.links)
        and np.array_equal(one.announced, other.announced)
        and np.array_equal(before.paths.gateways, after.paths.gateways)
    )


def _may_differ(before: Forwarding, after: Forwarding) -> BoolArray:
    """[K, R]: where another route is chosen, or the ways to the gateway of the same one turned."""
    route = after.selection.route
    suspects: BoolArray = before.selection.route != route
    gateway, link = np.nonzero(before.paths.on_path != after.paths.on_path)
    if len(link):
        turned = np.zeros(after.paths.cost.shape, dtype=np.bool_)  # [G, R]
        turned[gateway, after.plane.links[link, 0]] = True
        rows = np.searchsorted(after.paths.gateways, after.plane.announced[route, 0])
        suspects |= turned[rows, np.arange(len(after.plane.routers))] & (route != bgp.NO_ROUTE)
    one, other = before.selection.equal_peers, after.selection.equal_peers
    for at in one.keys() | other.keys():
        if one.get(at) != other.get(at):
            suspects[at] = True
    return suspects


def _has_several(state: Forwarding) -> BoolArray:
    """[K, R]: whether a router has more than one next hop for a network."""
    several = np.zeros(state.next_hop.shape, dtype=np.bool_)
    if len(state.plane.announced):
        plane, paths = state.plane, state.paths
        ahead = np.zeros((len(paths.gateways), len(plane.links) + 1), dtype=np.int32)
        np.cumsum(paths.on_path, axis=1, out=ahead[:, 1:])
        hops = np.diff(ahead[:, plane.link_starts], axis=1)  # [G, R]
        rows = np.searchsorted(paths.gateways, plane.announced[state.selection.route, 0])
        several = hops[rows, np.arange(len(plane.routers))] > 1
    for network, router in state.selection.equal_peers:
        several[network, router] = True
    return several


def next_hop(plane: Plane, paths: ospf.Paths, route: IntArray) -> IntArray:
    """[K, R]: the hop that each router's selected route leads to."""
    if not len(plane.announced):
        return np.full(route.shape, ospf.NO_HOP, dtype=np.int64)
    gateway = plane.announced[route, 0]
    peer = len(plane.routers) + plane.announced[route, 1]
    routers = np.arange(len(plane.routers))
    inside = paths.first_hop[np.searchsorted(paths.gateways, gateway), routers]
    hop = np.where(gateway == routers, peer, inside)
    return np.where(route == bgp.NO_ROUTE, ospf.NO_HOP, hop)
