"""BGP: from announcements and iBGP sessions to the route that every router selects, per network.

Decision order: local_pref, as_path_length, origin, med, eBGP over iBGP, IGP cost, lowest router id
of the gateway. med counts within one neighbouring AS, or across all with `always_compare_med`.
Reflection is RFC 4456's: a reflector passes on to everyone what it has from its clients and from
outside, and to its clients alone what it has from other reflectors.

Only the gateways of a network and the reflectors influence others: what they agree on is settled
first (`dispute.py`). All other routers then choose at once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
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
Routes = npt.NDArray[np.int32]  # [R]: row of `Plane.announced` that each selects, or NO_ROUTE
CHUNK = 1 << 21  # elements of one [networks, routers] block, which bounds the memory


@dataclass(frozen=True, eq=False)
class Preference:
    """How announcements compare, wherever they are heard."""

    rank: IntArray  # [A] equal where local_pref, as_path_length, origin (and med) are equal
    tie: IntArray  # [A] the final order, unique
    row: IntArray  # [A] row of the gateway in `Paths`
    asn: IntArray  # [A] neighbouring AS; UNKNOWN where med is not compared within one AS
    med: IntArray  # [A]


@dataclass(frozen=True, eq=False)
class Selection:
    """What each router selects; only networks with one stable outcome have any selection."""

    route: tuple[Routes, ...]  # [K] of [R]; a network that kept its routes shares them
    outcome: tuple[Outcome, ...]  # [K]
    equal_peers: dict[tuple[int, int], tuple[int, ...]]  # (network, gateway): routes kept as a set
    settled: dict[int, list[tuple[int, int]]]  # network: speakers and what they agreed on
    preference: Preference
    sessions: Sessions

    def routes(self, networks: Iterable[int]) -> npt.NDArray[np.int32]:
        """[networks, R]: what each router selects for some networks."""
        return np.stack([self.route[network] for network in networks])


def select(plane: Plane, paths: Paths, always_compare_med: bool) -> Selection:
    """Run the decision for every network."""
    everything = range(len(plane.networks))
    nowhere = np.full(len(plane.routers), NO_ROUTE, dtype=np.int32)
    nothing = Selection(
        route=(nowhere,) * len(plane.networks),
        outcome=(Outcome.ONE,) * len(plane.networks),
        equal_peers={},
        settled={},
        preference=prefer(plane, paths, always_compare_med),
        sessions=_sessions(plane, paths),
    )
    return reselect(plane, paths, nothing, everything, everything)


def reselect(
    plane: Plane,
    paths: Paths,
    before: Selection,
    networks: Collection[int],
    disputed: Collection[int],
) -> Selection:
    """Run the decision for some networks; the others keep what they had.

    Of these networks, the gateways and reflectors settle anew on those that are `disputed`.
    """
    preference, sessions = before.preference, before.sessions
    outcome, settled = list(before.outcome), dict(before.settled)
    equal_peers = {at: kept for at, kept in before.equal_peers.items() if at[0] not in disputed}
    views = _views(plane, paths, preference)
    for network in plane.routes_to.keys() & disputed:
        dispute = Dispute(views, sessions, worth_hearing(views, sessions, plane.routes_to[network]))
        outcome[network] = dispute.resolve()
        settled[network] = []
        if outcome[network] is Outcome.ONE:
            settled[network] = dispute.choices()
            for gateway, equal in dispute.equal_peers():
                equal_peers[network, gateway] = equal
    route = list(before.route)
    for network, routes in zip(
        networks, _spread(settled, networks, plane, paths, before), strict=True
    ):
        route[network] = routes
    return replace(
        before, route=tuple(route), outcome=tuple(outcome), equal_peers=equal_peers, settled=settled
    )


def _spread(
    settled: Mapping[int, list[tuple[int, int]]],
    networks: Collection[int],
    plane: Plane,
    paths: Paths,
    how: Selection,
) -> npt.NDArray[np.int32]:
    """[networks, R]: what everybody selects, given what the gateways and reflectors settled on."""
    route = np.full((len(networks), len(plane.routers)), NO_ROUTE, dtype=np.int32)
    choices = [
        (k, *choice) for k, network in enumerate(networks) for choice in settled.get(network, ())
    ]
    if choices:
        place, speaker, choice = np.array(choices).T
        route[place, speaker] = choice
        _choose_at_clients(route, paths, how.preference, how.sessions)
        route[place, speaker] = choice
    return route


def prefer(plane: Plane, paths: Paths, always_compare_med: bool) -> Preference:
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
    return Preference(rank, tie, np.searchsorted(paths.gateways, gateway), asn, med)


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


def _views(plane: Plane, paths: Paths, preference: Preference) -> Views:
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
    route: npt.NDArray[np.int32], paths: Paths, preference: Preference, sessions: Sessions
) -> None:
    """Fill in `route` for the clients, from what their reflectors (already in it) select."""
    clients, heard = sessions.clients, sessions.heard
    if not len(clients):
        return
    for some in chunks(len(route), heard.size):
        offers = route[some][:, heard]  # [k, clients, reflectors]
        route[some, clients] = _best_offer(offers, clients, paths, preference)


def chunks(networks: int, width: int) -> Iterator[slice]:
    """Some networks after another, so that no more than `CHUNK` elements are at work at once."""
    step = max(1, CHUNK // max(1, width))
    return (slice(low, low + step) for low in range(0, networks, step))


def _best_offer(
    offers: npt.NDArray[np.int32], clients: IntArray, paths: Paths, preference: Preference
) -> npt.NDArray[np.int32]:
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
