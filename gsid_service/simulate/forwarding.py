"""Forwarding: from a plane to the next hops of every router for every network."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from gsid_service.records import BoolArray, IntArray
from gsid_service.simulate import bgp, ospf
from gsid_service.simulate.dispute import Outcome
from gsid_service.simulate.plane import Plane

PER_NETWORK = 100  # bytes, for what is listed of it
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Forwarding:
    """Where every router sends traffic for every network.

    Next hops are numbered routers first, then external peers, as in `Plane.hop_index`.
    """

    plane: Plane
    paths: ospf.Paths
    selection: bgp.Selection
    always_compare_med: bool
    asked: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict, repr=False)
    passed: dict[tuple[int, int], set[int]] = field(default_factory=dict, repr=False)

    @cached_property
    def hop_names(self) -> tuple[str, ...]:
        return self.plane.routers + self.plane.peers

    @property
    def size(self) -> int:
        """The bytes of what depends on values, at most: states share what they do not change."""
        paths, preference = vars(self.paths), vars(self.selection.preference)
        tables = [t for t in (*paths.values(), *preference.values()) if isinstance(t, np.ndarray)]
        return sum(t.nbytes for t in tables) + PER_NETWORK * (1 + len(self.plane.networks))

    def next_hop(self, network: int, router: int) -> int:
        """The lowest-numbered of equal next hops, NO_HOP for none."""
        route = int(self.selection.route[network][router])
        if route == bgp.NO_ROUTE:
            return ospf.NO_HOP
        gateway = self.plane.gateway_of[route]
        if gateway == router:
            return len(self.plane.routers) + self.plane.peer_of[route]
        return int(self.paths.first_hop[self.paths.row_of[gateway], router])

    def hops(self, networks: Iterable[int]) -> IntArray:
        """[networks, R]: the same of every router."""
        plane, chosen = self.plane, self.selection.routes(networks)
        if not len(plane.announced):
            return np.full(chosen.shape, ospf.NO_HOP, dtype=np.int64)
        routers = np.arange(len(plane.routers))
        inside = self.paths.first_hop[self.selection.preference.row[chosen], routers]
        peer = len(plane.routers) + plane.announced[chosen, 1]
        hop = np.where(plane.announced[chosen, 0] == routers, peer, inside)
        return np.where(chosen == bgp.NO_ROUTE, ospf.NO_HOP, hop)

    def is_stable(self, network: int) -> bool:
        return self.selection.outcome[network] is Outcome.ONE

    def next_hops(self, network: int, router: int) -> tuple[int, ...]:
        """All equal next hops: equal-cost first hops, or equal external peers at a gateway."""
        known = self.asked.get((network, router))
        if known is None:
            known = self.asked[network, router] = self._next_hops(network, router)
        return known

    def _next_hops(self, network: int, router: int) -> tuple[int, ...]:
        plane, route = self.plane, int(self.selection.route[network][router])
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
        hop = self.next_hop(network, router)
        return None if hop == ospf.NO_HOP else self.hop_names[hop]

    def _hop_names(self, network: int, router: int) -> list[str]:
        return [self.hop_names[hop] for hop in self.next_hops(network, router)]

    def walk(self, network: int, router: int) -> list[int]:
        """The hops from `router` on, one next hop each; ends at a peer, a dead end or a loop."""
        hops = [router]
        seen = {router}
        while hops[-1] < len(self.plane.routers):
            hop = self.next_hop(network, hops[-1])
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
    return Forwarding(plane, paths, selection, always_compare_med)


def moved(before: Forwarding, after: Forwarding) -> IntArray:
    """[n, 2] network and router whose next hops differ; both states have the same entities."""
    if _is_alike(before, after):
        return _moved_alike(before, after)
    found = [NO_PAIRS]
    equal_hops = _equal_hops(before), _equal_hops(after)
    for some in bgp.chunks(len(after.plane.networks), len(after.plane.routers)):
        networks = np.arange(len(after.plane.networks))[some]
        # Sets with the same lowest hop may still differ in the others.
        suspects = before.hops(networks) != after.hops(networks)
        for state, equal in zip((before, after), equal_hops, strict=True):
            suspects |= _has_several(state, equal, networks)
        found.append(_differing(before, after, networks, suspects))
    return np.concatenate(found)


def _differing(
    before: Forwarding, after: Forwarding, networks: IntArray, suspects: BoolArray
) -> IntArray:
    """Those of the suspects [networks, R] whose next hops differ."""
    place, router = ospf.true_at(suspects)
    pairs = np.stack((networks[place], router), axis=1)
    differ = [before.next_hops(*pair) != after.next_hops(*pair) for pair in pairs.tolist()]
    return pairs[np.array(differ, dtype=np.bool_)]


def _is_alike(before: Forwarding, after: Forwarding) -> bool:
    """Whether two states differ in values alone, so that links and routes have the same numbers."""
    one, other = before.plane, after.plane
    return (
        _is_same(one.links, other.links)
        and _is_same(one.announced, other.announced)
        and _is_same(before.paths.gateways, after.paths.gateways)
    )


def _is_same(one: IntArray, other: IntArray) -> bool:
    return one is other or np.array_equal(one, other)


def _moved_alike(before: Forwarding, after: Forwarding) -> IntArray:
    """The same, where links and routes have the same numbers in both states.

    Routes that are shared were not touched. Elsewhere traffic moves where the ways to the gateway
    of the same route turned, and may where another route is chosen.
    """
    old, new = before.selection, after.selection
    touched = np.array([k for k, of in enumerate(new.route) if of is not old.route[k]], dtype=int)
    turned, peers = _turned(before, after), _with_other_peers(old, new)
    found = [NO_PAIRS]
    for some in bgp.chunks(len(touched), len(after.plane.routers)):
        networks = touched[some]
        chosen = new.routes(networks)
        another = old.routes(networks) != chosen
        for place in np.flatnonzero(np.isin(networks, list(peers))).tolist():
            another[place, peers[int(networks[place])]] = True
        found.append(_differing(before, after, networks, another))
        if turned is not None:
            rows = new.preference.row[chosen]
            ways = turned[rows, np.arange(chosen.shape[1])] & (chosen != bgp.NO_ROUTE) & ~another
            at, router = ospf.true_at(ways)
            found.append(np.stack((networks[at], router), axis=1))
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _turned(before: Forwarding, after: Forwarding) -> BoolArray | None:
    """[G, R]: whether a router has other ways to a gateway; None where no paths changed."""
    if before.paths is after.paths or not len(after.plane.announced):
        return None
    gateway, link = ospf.true_at(before.paths.on_path != after.paths.on_path)
    turned = np.zeros(after.paths.cost.shape, dtype=np.bool_)
    turned[gateway, after.plane.links[link, 0]] = True
    return turned


def _with_other_peers(one: bgp.Selection, other: bgp.Selection) -> dict[int, list[int]]:
    """The gateways of each network whose sets of equal peers differ."""
    found: dict[int, list[int]] = {}
    for at in one.equal_peers.keys() | other.equal_peers.keys():
        if one.equal_peers.get(at) != other.equal_peers.get(at):
            found.setdefault(at[0], []).append(at[1])
    return found


def _equal_hops(state: Forwarding) -> IntArray:
    """[G, R]: how many equal first hops each router has to each gateway."""
    paths = state.paths
    ahead = np.zeros((len(paths.gateways), len(state.plane.links) + 1), dtype=np.int32)
    np.cumsum(paths.on_path, axis=1, out=ahead[:, 1:])
    return np.diff(ahead[:, state.plane.link_starts], axis=1)


def _has_several(state: Forwarding, equal_hops: IntArray, networks: IntArray) -> BoolArray:
    """[networks, R]: whether a router has more than one next hop for a network."""
    several = np.zeros((len(networks), len(state.plane.routers)), dtype=np.bool_)
    if len(state.plane.announced):
        rows = state.selection.preference.row[state.selection.routes(networks)]
        several = equal_hops[rows, np.arange(len(state.plane.routers))] > 1
    place = {network: i for i, network in enumerate(networks.tolist())}
    for network, router in state.selection.equal_peers:
        if network in place:
            several[place[network], router] = True
    return several
