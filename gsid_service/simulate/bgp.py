"""BGP: from announcements and iBGP sessions to the route that every router selects, per network.

Decision order: local_pref, as_path_length, origin, med, eBGP over iBGP, IGP cost, lowest router id
of the gateway. med counts within one neighbouring AS, or across all with `always_compare_med`.
Reflection is RFC 4456's: a reflector passes on to everyone what it has from its clients and from
outside, and to its clients alone what it has from other reflectors.

Only the gateways of a network and the reflectors influence others. Their selections are narrowed
down until nothing changes (`_Dispute.settle`): a speaker has decided once its choice is the same
whatever the undecided ones do. Where some stay open, the outcomes they could agree on are searched,
so that a network with none or with several is recognised. All other routers then choose at once.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from gsid_service.records import IntArray
from gsid_service.simulate.ospf import Paths
from gsid_service.simulate.plane import (
    AS_PATH_LENGTH,
    LOCAL_PREF,
    MED,
    ORIGIN,
    SPEAKER,
    UNKNOWN,
    Plane,
)

NO_ROUTE = -1
SEARCH_LIMIT = 2_000  # settlings tried before a dispute counts as undecided
CHUNK = 1 << 21  # elements of one [networks, routers] block, which bounds the memory


class Outcome(Enum):
    """How many stable states the routers can settle in for a network."""

    ONE = "one stable outcome"
    NONE = "no stable outcome"
    SEVERAL = "two or more stable outcomes"
    UNDECIDED = "more possible outcomes than can be searched"


@dataclass(frozen=True, eq=False)
class Selection:
    """What each router selects; only networks with one stable outcome have any selection."""

    route: IntArray  # [K, R] row of `Plane.announced`, or NO_ROUTE
    outcome: tuple[Outcome, ...]  # [K]
    equal_peers: dict[tuple[int, int], tuple[int, ...]]  # (network, gateway): routes kept as a set


@dataclass(frozen=True, eq=False)
class _Preference:
    """How announcements compare, wherever they are heard."""

    rank: IntArray  # [A] equal where local_pref, as_path_length, origin (and med) are equal
    tie: IntArray  # [A] the final order, unique
    row: IntArray  # [A] row of the gateway in `Paths`
    asn: IntArray  # [A] neighbouring AS; UNKNOWN where med is not compared within one AS
    med: IntArray  # [A]


@dataclass(frozen=True)
class _Sessions:
    """The iBGP sessions whose two ends reach each other."""

    reflectors_of: dict[int, list[int]]  # client: its reflectors
    mesh: dict[int, list[int]]  # reflector: its non-client peers
    reflectors: list[int]

    @cached_property
    def is_full_mesh(self) -> bool:
        others = len(self.reflectors) - 1
        return all(len(self.mesh.get(r, ())) == others for r in self.reflectors)

    @cached_property
    def speakers(self) -> set[int]:
        """Everyone who has a session."""
        return {*self.reflectors, *self.reflectors_of}


def select(
    plane: Plane, paths: Paths, always_compare_med: bool, networks: Sequence[int] | None = None
) -> Selection:
    """Run the decision for `networks`, by default for all; the rest stay without a route."""
    wanted = range(len(plane.networks)) if networks is None else networks
    preference = _preference(plane, paths, always_compare_med)
    sessions = _sessions(plane, paths)
    views = _views(plane, paths, preference)
    route = np.full((len(plane.networks), len(plane.routers)), NO_ROUTE, dtype=np.int64)
    outcome = [Outcome.ONE] * len(plane.networks)
    equal_peers: dict[tuple[int, int], tuple[int, ...]] = {}
    speakers: list[tuple[int, int, int]] = []  # network, speaker, route
    for network, routes in _by_network(plane, wanted).items():
        dispute = _Dispute(views, sessions, _worth_hearing(views, sessions, routes))
        outcome[network] = dispute.resolve()
        if outcome[network] is Outcome.ONE:
            speakers += [(network, speaker, choice) for speaker, choice in dispute.choices()]
            for gateway, equal in dispute.equal_peers():
                equal_peers[network, gateway] = equal
    if speakers:
        at = np.array(speakers)
        route[at[:, 0], at[:, 1]] = at[:, 2]
        _choose_at_clients(route, paths, preference, sessions)
        route[at[:, 0], at[:, 1]] = at[:, 2]
    return Selection(route, tuple(outcome), equal_peers)


def _preference(plane: Plane, paths: Paths, always_compare_med: bool) -> _Preference:
    attributes, (gateway, peer, network) = plane.attributes, plane.announced.T
    med = attributes[:, MED]
    keys = [attributes[:, ORIGIN], attributes[:, AS_PATH_LENGTH], -attributes[:, LOCAL_PREF]]
    if always_compare_med:
        keys.insert(0, med)
    order = np.lexsort(keys)
    changes = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.concatenate(([0], np.cumsum(changes)))[: len(order)]
    # Router ids count where every gateway of the network reports one, else the entity order.
    unreported = np.zeros(len(plane.networks), dtype=np.bool_)
    unreported[network[attributes[:, SPEAKER] == UNKNOWN]] = True
    identity = np.where(unreported[network], gateway, attributes[:, SPEAKER])
    tie = np.empty(len(order), dtype=np.int64)
    tie[np.lexsort((peer, gateway, identity))] = np.arange(len(order))
    asn = np.full(len(order), UNKNOWN) if always_compare_med else plane.peer_asn[peer]
    return _Preference(rank, tie, np.searchsorted(paths.gateways, gateway), asn, med)


def _sessions(plane: Plane, paths: Paths) -> _Sessions:
    if np.isfinite(paths.cost).all():
        island = [0] * len(plane.routers)
    else:
        size = len(plane.routers)
        links = csr_matrix((np.ones(len(plane.links)), plane.links.T), shape=(size, size))
        island = connected_components(links, directed=False)[1].tolist()
    reflectors_of, mesh = defaultdict(list), defaultdict(list)
    for client, reflector in plane.clients:
        if island[client] == island[reflector]:
            reflectors_of[client].append(reflector)
    for reflector, peer in plane.mesh:
        if island[reflector] == island[peer]:
            mesh[reflector].append(peer)
    reflectors = sorted({r for rs in reflectors_of.values() for r in rs} | mesh.keys())
    return _Sessions(dict(reflectors_of), dict(mesh), reflectors)


def _by_network(plane: Plane, wanted: Sequence[int]) -> dict[int, list[int]]:
    """The announcements of each wanted network that has any."""
    routes: dict[int, list[int]] = {network: [] for network in wanted}
    for route, network in enumerate(plane.announced[:, 2].tolist()):
        if network in routes:
            routes[network].append(route)
    return {network: found for network, found in routes.items() if found}


@dataclass(frozen=True)
class _Views:
    """What speakers compare by, as lists (they are asked one by one), one entry an announcement."""

    gateway: list[int]
    row: list[int]  # of the gateway in `paths`
    rank: list[int]
    tie: list[int]
    asn: list[int]
    med: list[int]
    paths: Paths

    def cost(self, routes: list[int], speakers: list[int]) -> list[list[float]]:
        """For each speaker, the cost to the gateway of each route."""
        rows = [self.row[route] for route in routes]
        costs: list[list[float]] = self.paths.cost[np.ix_(rows, speakers)].T.tolist()
        return costs


def _views(plane: Plane, paths: Paths, preference: _Preference) -> _Views:
    return _Views(
        gateway=plane.gateway_of,
        row=preference.row.tolist(),
        rank=preference.rank.tolist(),
        tie=preference.tie.tolist(),
        asn=preference.asn.tolist(),
        med=preference.med.tolist(),
        paths=paths,
    )


def _worth_hearing(views: _Views, sessions: _Sessions, routes: list[int]) -> list[int]:
    """Drop the routes that nobody can select in a stable state.

    Where all reflectors peer with each other, a route of the best rank reaches every speaker that
    has a session: its gateway announces it, or one that beats it, and so does the reflector. Routes
    of gateways without any session concern these gateways alone.
    """
    if not sessions.is_full_mesh:
        return routes
    heard = [r for r in routes if views.gateway[r] in sessions.speakers]
    best = min((views.rank[r] for r in heard), default=0)
    hopeless = {r for r in heard if views.rank[r] > best}
    return [r for r in routes if r not in hopeless]


class _Dispute:
    """The gateways and reflectors of one network, and what each may still select.

    Sets of routes are bit masks over `routes`. `options[s]` is what speaker s may select, bit
    `len(routes)` standing for nothing; `chosen[s]` is what it surely selects.
    """

    def __init__(self, views: _Views, sessions: _Sessions, routes: list[int]) -> None:
        self.routes = routes
        self.nothing = 1 << len(routes)
        # Gateways first: most of them decide at once, and what they decide decides the rest.
        self.own: dict[int, int] = {}
        for bit, route in enumerate(routes):
            gateway = views.gateway[route]
            self.own[gateway] = self.own.get(gateway, 0) | 1 << bit
        for reflector in sessions.reflectors:
            self.own.setdefault(reflector, 0)
        self.rank = [views.rank[route] for route in routes]
        self.worse_med_than = _med_rivals(views, routes)
        self._hear(sessions)
        costs = zip(self.own, views.cost(routes, list(self.own)), strict=True)
        self.order = {speaker: _order(views, routes, speaker, cost) for speaker, cost in costs}
        self.options = dict.fromkeys(self.own, self.nothing * 2 - 1)
        self.chosen = dict.fromkeys(self.own, 0)

    def _hear(self, sessions: _Sessions) -> None:
        """For each speaker: its client gateways, its reflectors, its non-client peers."""
        self.clients: dict[int, list[int]] = {speaker: [] for speaker in self.own}
        self.reflectors = {s: sessions.reflectors_of.get(s, []) for s in self.own}
        self.mesh = {s: sessions.mesh.get(s, []) for s in self.own}
        for gateway, reflectors in self.reflectors.items():
            for reflector in reflectors:
                self.clients[reflector].append(gateway)

    def resolve(self) -> Outcome:
        """Settle, and where speakers stay open, look for the states that they could agree on."""
        self.settle()
        if not self.open():
            return Outcome.ONE
        found: list[dict[int, int]] = []
        budget = SEARCH_LIMIT
        pending = [(self.options, self.chosen, frozenset[int]())]
        while pending and len(found) < 2:
            if budget == 0:
                return Outcome.UNDECIDED
            budget -= 1
            options, chosen, assumed = pending.pop()
            self.options, self.chosen = dict(options), dict(chosen)
            self.settle()
            undecided = self.open()
            if undecided:
                pending += self._suppose(undecided[0], assumed)
            elif all(self._decide(s)[1] == self.chosen[s] for s in assumed):
                found.append(self.chosen)
        if len(found) == 1:
            self.chosen = found[0]
            return Outcome.ONE
        return Outcome.SEVERAL if found else Outcome.NONE

    def _suppose(
        self, speaker: int, assumed: frozenset[int]
    ) -> list[tuple[dict[int, int], dict[int, int], frozenset[int]]]:
        """One branch for each thing that the undecided speaker may select."""
        bits = [1 << b for b in range(len(self.routes) + 1) if self.options[speaker] >> b & 1]
        return [
            (self.options | {speaker: bit}, self.chosen | {speaker: bit}, assumed | {speaker})
            for bit in bits
        ]

    def open(self) -> list[int]:
        return [speaker for speaker, chosen in self.chosen.items() if not chosen]

    def settle(self) -> None:
        """Narrow down what each open speaker may select until nothing changes."""
        changed = True
        while changed:
            changed = False
            for speaker in self.open():
                options, chosen = self._decide(speaker)
                if (options, chosen) != (self.options[speaker], self.chosen[speaker]):
                    self.options[speaker], self.chosen[speaker] = options, chosen
                    changed = True

    def _decide(self, speaker: int) -> tuple[int, int]:
        """What the speaker may select, and what it surely does (0 while that is open)."""
        possible, certain = self._heard(speaker)
        options = 0
        for route in self.order[speaker]:
            bit, rivals = 1 << route, self.worse_med_than[route]
            if not possible & bit or rivals & certain:
                continue
            options |= bit
            if certain & bit and not rivals & possible:
                return options, bit if options == bit else 0
        if not certain:
            options |= self.nothing
        return options, options if options == self.nothing else 0

    def _heard(self, speaker: int) -> tuple[int, int]:
        """The routes that may reach the speaker, and those that surely do."""
        return self._reach(speaker, self.options), self._reach(speaker, self.chosen)

    def _reach(self, speaker: int, state: dict[int, int]) -> int:
        """What reaches a speaker if the others select what `state` says."""
        heard = self._first_hand(speaker, state)
        for reflector in self.reflectors[speaker]:
            heard |= state[reflector]
        for peer in self.mesh[speaker]:
            heard |= state[peer] & self._first_hand(peer, state)
        return heard & ~self.nothing

    def _first_hand(self, speaker: int, state: dict[int, int]) -> int:
        """What a speaker has from outside and from its clients, and may tell other reflectors."""
        own = self.own
        known = own[speaker]
        for gateway in self.clients[speaker]:
            known |= state[gateway] & own[gateway]
        return known

    def choices(self) -> list[tuple[int, int]]:
        """(speaker, row of the announcement) for all that select one."""
        return [
            (speaker, self.routes[chosen.bit_length() - 1])
            for speaker, chosen in self.chosen.items()
            if chosen != self.nothing
        ]

    def equal_peers(self) -> list[tuple[int, tuple[int, ...]]]:
        """(gateway, its routes) where a gateway's own routes are equal up to IGP cost."""
        sets = []
        for gateway, chosen in self.chosen.items():
            if chosen & self.own[gateway]:
                best = self.rank[chosen.bit_length() - 1]
                heard = self._heard(gateway)[1]
                equal = tuple(
                    route
                    for bit, route in enumerate(self.routes)
                    if self.own[gateway] >> bit & 1
                    and self.rank[bit] == best
                    and not self.worse_med_than[bit] & heard
                )
                if len(equal) > 1:
                    sets.append((gateway, equal))
        return sets


def _order(views: _Views, routes: list[int], speaker: int, cost: list[float]) -> list[int]:
    """The routes (as bits) from the speaker's best to its worst, med within one AS aside."""
    gateway, rank, tie = views.gateway, views.rank, views.tie
    keys = [
        (rank[route], gateway[route] != speaker, cost[bit], tie[route], bit)
        for bit, route in enumerate(routes)
    ]
    return [key[-1] for key in sorted(keys)]


def _med_rivals(views: _Views, routes: list[int]) -> list[int]:
    """For each route, the routes that beat it by med alone, being of the same neighbouring AS."""
    groups = defaultdict(list)
    for bit, route in enumerate(routes):
        if views.asn[route] != UNKNOWN:
            groups[views.asn[route], views.rank[route]].append((views.med[route], bit))
    rivals = [0] * len(routes)
    for group in groups.values():
        for med, bit in group:
            rivals[bit] = sum(1 << other for lower, other in group if lower < med)
    return rivals


def _choose_at_clients(
    route: IntArray, paths: Paths, preference: _Preference, sessions: _Sessions
) -> None:
    """Fill in `route` for the clients, from what their reflectors (already in it) select."""
    clients = list(sessions.reflectors_of)
    if not clients:
        return
    most = max(len(reflectors) for reflectors in sessions.reflectors_of.values())
    # A client with fewer reflectors hears its first one again.
    heard = np.array([(rs + rs[:1] * most)[:most] for rs in sessions.reflectors_of.values()])
    step = max(1, CHUNK // heard.size)
    for low in range(0, len(route), step):
        offers = route[low : low + step][:, heard]  # [k, clients, reflectors]
        route[low : low + step, clients] = _best_offer(offers, np.array(clients), paths, preference)


def _best_offer(
    offers: IntArray, clients: IntArray, paths: Paths, preference: _Preference
) -> IntArray:
    """[k, clients]: the best of each client's offers."""
    alive = [offers[..., i] != NO_ROUTE for i in range(offers.shape[2])]
    for i, mine in enumerate(alive):
        for j in range(offers.shape[2]):
            a, b = offers[..., i], offers[..., j]
            if i != j and (preference.asn != UNKNOWN).any():
                same = (preference.asn[a] == preference.asn[b]) & (preference.asn[a] != UNKNOWN)
                same &= (preference.rank[a] == preference.rank[b]) & (b != NO_ROUTE)
                mine &= ~(same & (preference.med[b] < preference.med[a]))
    best = np.where(alive[0], offers[..., 0], NO_ROUTE)
    for i in range(1, offers.shape[2]):
        new = offers[..., i]
        keys = [
            (preference.rank[new], preference.rank[best]),
            (paths.cost[preference.row[new], clients], paths.cost[preference.row[best], clients]),
            (preference.tie[new], preference.tie[best]),
        ]
        better = np.zeros(new.shape, dtype=np.bool_)
        for mine, theirs in reversed(keys):
            better = (mine < theirs) | ((mine == theirs) & better)
        best = np.where(alive[i] & (better | (best == NO_ROUTE)), new, best)
    return best
