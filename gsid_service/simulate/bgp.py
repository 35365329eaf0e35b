"""BGP: from announcements and iBGP sessions to the route that every router selects, per network.

Decision order: local_pref, as_path_length, origin, med, eBGP over iBGP, IGP cost, lowest router id
of the gateway. med counts within one neighbouring AS, or across all with `always_compare_med`.
Reflection is RFC 4456's: a reflector passes on to everyone what it has from its clients and from
outside, and to its clients alone what it has from other reflectors.

Only the gateways of a network and the reflectors influence others: what they agree on is settled
first (`dispute.py`). All other routers then choose at once.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from gsid_service.records import IntArray
from gsid_service.simulate.dispute import Dispute, Outcome, Sessions, Views, worth_hearing
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
CHUNK = 1 << 21  # elements of one [networks, routers] block, which bounds the memory


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


def select(plane: Plane, paths: Paths, always_compare_med: bool) -> Selection:
    """Run the decision for every network."""
    route = np.full((len(plane.networks), len(plane.routers)), NO_ROUTE, dtype=np.int64)
    nothing = Selection(route, (Outcome.ONE,) * len(plane.networks), {})
    return reselect(plane, paths, always_compare_med, nothing, range(len(plane.networks)))


def reselect(
    plane: Plane,
    paths: Paths,
    always_compare_med: bool,
    before: Selection,
    networks: Collection[int],
) -> Selection:
    """Run the decision for some networks; the others keep what they had."""
    preference = _preference(plane, paths, always_compare_med)
    sessions = _sessions(plane, paths)
    views = _views(plane, paths, preference)
    outcome = list(before.outcome)
    equal_peers = {at: kept for at, kept in before.equal_peers.items() if at[0] not in networks}
    speakers: list[tuple[int, int, int]] = []  # place in `networks`, speaker, route
    announced = _by_network(plane)
    for place, network in enumerate(networks):
        routes = announced.get(network)
        if routes is None:
            continue
        dispute = Dispute(views, sessions, worth_hearing(views, sessions, routes))
        outcome[network] = dispute.resolve()
        if outcome[network] is Outcome.ONE:
            speakers += [(place, speaker, choice) for speaker, choice in dispute.choices()]
            for gateway, equal in dispute.equal_peers():
                equal_peers[network, gateway] = equal
    anew = np.full((len(networks), len(plane.routers)), NO_ROUTE, dtype=np.int64)
    if speakers:
        at = np.array(speakers)
        anew[at[:, 0], at[:, 1]] = at[:, 2]
        _choose_at_clients(anew, paths, preference, sessions)
        anew[at[:, 0], at[:, 1]] = at[:, 2]
    route = before.route.copy()
    route[list(networks)] = anew
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


def _sessions(plane: Plane, paths: Paths) -> Sessions:
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
    return Sessions(dict(reflectors_of), dict(mesh), reflectors)


def _by_network(plane: Plane) -> dict[int, list[int]]:
    """The announcements of each network that has any."""
    routes = defaultdict(list)
    for route, network in enumerate(plane.announced[:, 2].tolist()):
        routes[network].append(route)
    return routes


def _views(plane: Plane, paths: Paths, preference: _Preference) -> Views:
    return Views(
        gateway=plane.gateway_of,
        row=preference.row.tolist(),
        rank=preference.rank.tolist(),
        tie=preference.tie.tolist(),
        asn=preference.asn.tolist(),
        med=preference.med.tolist(),
        paths=paths,
    )


def _choose_at_clients(
    route: IntArray, paths: Paths, preference: _Preference, sessions: Sessions
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
