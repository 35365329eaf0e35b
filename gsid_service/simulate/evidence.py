"""Evidence: what a forwarding state says of the facts and intents of its network.

Of an intent, whether the state satisfies it; of a link or a route, whether any traffic uses it.
None where a network without one stable outcome leaves that open.
"""

from collections.abc import Iterable

import numpy as np

from gsid_service import schema
from gsid_service.records import BoolArray, Entity, Fact, FactKey
from gsid_service.simulate import bgp, intents
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build


def evidence(
    entities: Iterable[Entity],
    facts: Iterable[Fact],
    wanted: Iterable[Fact],
    always_compare_med: bool,
) -> dict[FactKey, bool | None]:
    state = forward(build(entities, facts), always_compare_med)
    satisfied = {intent.key: intents.satisfied(intent, state) for intent in wanted}
    return _routes_in_use(state) | _links_in_use(state) | satisfied


def _routes_in_use(state: Forwarding) -> dict[FactKey, bool | None]:
    """Whether any router selects the route."""
    plane = state.plane
    selected = set(np.unique(state.selection.route).tolist())
    selected |= {route for routes in state.selection.equal_peers.values() for route in routes}
    used: dict[FactKey, bool | None] = {}
    for route, (_, peer, network) in enumerate(plane.announced.tolist()):
        key = FactKey(schema.BGP_ROUTE.name, (plane.peers[peer], plane.networks[network]))
        if not state.is_stable(network):
            used[key] = None
        else:
            used[key] = used.get(key) or route in selected
    return used


def _links_in_use(state: Forwarding) -> dict[FactKey, bool | None]:
    """Whether a link, in the direction of the fact or the other, is a next hop for any network."""
    plane, paths = state.plane, state.paths
    used: BoolArray = np.zeros(len(plane.links), dtype=np.bool_)
    if len(plane.announced):
        # [G, R]: whether a router sends the traffic of any network towards a gateway.
        towards = np.zeros((len(paths.gateways), len(plane.routers)), dtype=np.bool_)
        network, router = np.nonzero(state.selection.route != bgp.NO_ROUTE)
        gateway = plane.announced[state.selection.route[network, router], 0]
        towards[np.searchsorted(paths.gateways, gateway), router] = True
        used = np.any(paths.on_path & towards[:, plane.links[:, 0]], axis=0)
    ends = plane.links[used].tolist()
    pairs = {(a, b) for a, b in ends} | {(b, a) for a, b in ends}
    names = plane.routers
    return {
        FactKey(schema.CONNECTED.name, (names[a], names[b])): (a, b) in pairs
        for a, b in plane.links.tolist()
    }
