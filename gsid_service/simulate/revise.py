"""A forwarding state with some values changed: only what the values touch is computed anew.

An attribute of a route touches one network. The weight of a link touches the gateways that some
router reaches, or now would reach, over it, and the networks that these gateways announce; what
gateways and reflectors agree on stands unless one of them has other costs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gsid_service import schema
from gsid_service.records import BoolArray, Fact, FactKey
from gsid_service.simulate import bgp, ospf
from gsid_service.simulate.forwarding import Forwarding
from gsid_service.simulate.plane import ATTRIBUTES, Plane, attributes_of

Value = tuple[FactKey, str, int]
COLUMN = {parameter.name: column for column, parameter in enumerate(ATTRIBUTES)}


class Revised(NamedTuple):
    """The state after a change, and the networks for which it was worked out anew."""

    state: Forwarding
    networks: list[int]


@dataclass(frozen=True)
class Rows:
    """Where the values of facts stand in a plane: rows of its links, and of its announcements."""

    plane: Plane
    links: dict[FactKey, list[int]]

    @classmethod
    def of(cls, state: Forwarding, facts: Iterable[Fact]) -> "Rows":
        plane = state.plane
        row = {link: i for i, link in enumerate(map(tuple, plane.links.tolist()))}
        index = plane.router_index
        reported = [
            (index[f.args[0]], index[f.args[1]])
            for f in facts
            if f.predicate == schema.CONNECTED.name
        ]
        both = set(reported)
        links = {}
        for a, b in reported:
            # A link that is reported in one direction only stands for both.
            ends = [(a, b)] if (b, a) in both else [(a, b), (b, a)]
            key = FactKey(schema.CONNECTED.name, (plane.routers[a], plane.routers[b]))
            links[key] = [row[link] for link in ends]
        return cls(plane, links)

    def routes(self, key: FactKey) -> list[int]:
        """The announcements that are a route; none where its peer has no session."""
        if key.predicate != schema.BGP_ROUTE.name:
            return []
        plane, (peer, network) = self.plane, key.args
        hop, k = plane.hop_index.get(peer), plane.network_index.get(network)
        if hop is None or k is None:
            return []
        number = hop - len(plane.routers)
        return [route for route in plane.routes_to.get(k, ()) if plane.peer_of[route] == number]

    def known(self, values: Iterable[Value]) -> list[Value]:
        """Those of values on which forwarding depends."""
        return [value for value in values if value[0] in self.links or self.routes(value[0])]

    def revise(self, state: Forwarding, values: Iterable[Value]) -> Revised | None:
        """The state with other values; None where forwarding does not depend on one of them."""
        weights, attributes = state.plane.weights.copy(), state.plane.attributes.copy()
        links: list[int] = []
        routes: list[int] = []
        for key, parameter, value in values:
            if key in self.links and parameter == schema.OSPF_WEIGHT.name:
                weights[self.links[key]] = value
                links += self.links[key]
            elif parameter in COLUMN and (rows := self.routes(key)):
                attributes[rows, COLUMN[parameter]] = value
                routes += rows
            else:
                return None
        return _revised(state, state.plane.with_values(weights, attributes), links, routes)


def values_of(fact: Fact) -> Iterator[Value]:
    """All that forwarding depends on in a fact."""
    if fact.predicate == schema.CONNECTED.name:
        yield fact.key, schema.OSPF_WEIGHT.name, fact.params[schema.OSPF_WEIGHT.name]
    elif fact.predicate == schema.BGP_ROUTE.name:
        for parameter, value in zip(ATTRIBUTES, attributes_of(fact.params), strict=True):
            yield fact.key, parameter.name, value


def _revised(state: Forwarding, plane: Plane, links: list[int], routes: list[int]) -> Revised:
    """The state after these links and routes have the values of another plane."""
    paths, before = state.paths, state.selection
    disputed = set(plane.announced[routes, 2].tolist())
    networks = disputed.copy()
    if routes:
        preference = bgp.prefer(plane, paths, state.always_compare_med)
        before = replace(before, preference=preference)
    if links:
        paths = ospf.reweighted(state.plane, plane, paths, links)
        networks |= _networks_behind(state.paths, paths, plane, before)
        disputed |= _networks_in_doubt(state.paths.cost != paths.cost, plane, before)
    where = sorted(networks)
    selection = bgp.reselect(plane, paths, before, where, disputed)
    anew = Forwarding(plane, paths, selection, state.always_compare_med)
    return Revised(anew, where)


def _networks_behind(
    old: ospf.Paths, new: ospf.Paths, plane: Plane, selection: bgp.Selection
) -> set[int]:
    """Those to one of whose gateways some router has other paths."""
    turned = np.any(old.cost != new.cost, axis=1) | np.any(old.on_path != new.on_path, axis=1)
    return set(plane.announced[turned[selection.preference.row], 2].tolist())


def _networks_in_doubt(changed: BoolArray, plane: Plane, selection: bgp.Selection) -> set[int]:
    """Those of which a gateway or a reflector has another cost [G, R] to one of the gateways."""
    network, route, gateway = plane.rivals.T
    row = selection.preference.row[route]
    at_reflector: BoolArray = np.any(changed[:, selection.sessions.reflectors], axis=1)
    return set(network[changed[row, gateway] | at_reflector[row]].tolist())
