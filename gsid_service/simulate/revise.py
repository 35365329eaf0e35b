"""A forwarding state with one value changed: only what the value touches is computed anew.

An attribute of a route touches one network. The weight of a link touches the gateways that some
router reaches, or now would reach, over it, and the networks that these gateways announce.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from gsid_service import schema
from gsid_service.records import BoolArray, Fact, FactKey, IntArray
from gsid_service.simulate import bgp, ospf
from gsid_service.simulate.forwarding import Forwarding, next_hop
from gsid_service.simulate.plane import ATTRIBUTES

Array = TypeVar("Array", IntArray, BoolArray, ospf.Cost)
COLUMN = {parameter.name: column for column, parameter in enumerate(ATTRIBUTES)}


class Revised(NamedTuple):
    """The state after a change, and the networks for which it was worked out anew."""

    state: Forwarding
    networks: list[int]


@dataclass(frozen=True)
class Rows:
    """Where the values of facts stand in a plane: rows of its links, and of its announcements."""

    links: dict[FactKey, list[int]]
    routes: dict[FactKey, list[int]]

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
        routes: dict[FactKey, list[int]] = {}
        for number, (_, peer, network) in enumerate(plane.announced.tolist()):
            args = plane.peers[peer], plane.networks[network]
            routes.setdefault(FactKey(schema.BGP_ROUTE.name, args), []).append(number)
        return cls(links, routes)

    def revise(self, state: Forwarding, key: FactKey, parameter: str, value: int) -> Revised | None:
        """The state with another value; None for what forwarding does not depend on."""
        if key in self.links and parameter == schema.OSPF_WEIGHT.name:
            return _reweighted(state, self.links[key], value)
        if key in self.routes and parameter in COLUMN:
            return _reannounced(state, self.routes[key], COLUMN[parameter], value)
        return None


def _reannounced(state: Forwarding, routes: list[int], column: int, value: int) -> Revised:
    attributes = state.plane.attributes.copy()
    attributes[routes, column] = value
    plane = replace(state.plane, attributes=attributes)
    networks = np.unique(plane.announced[routes, 2]).tolist()
    return _reselected(replace(state, plane=plane, asked={}, passed={}), networks)


def _reweighted(state: Forwarding, links: list[int], weight: int) -> Revised:
    weights = state.plane.weights.copy()
    weights[links] = weight
    plane = replace(state.plane, weights=weights)
    touched = _touched(state, links, weight)
    paths = state.paths
    if touched.any():
        old = ospf.Paths(
            paths.gateways[touched],
            paths.cost[touched],
            paths.on_path[touched],
            paths.first_hop[touched],
        )
        anew = ospf.reweighted(state.plane, plane, old, links)
        paths = ospf.Paths(
            paths.gateways,
            _overwritten(paths.cost, touched, anew.cost),
            _overwritten(paths.on_path, touched, anew.on_path),
            _overwritten(paths.first_hop, touched, anew.first_hop),
        )
    rows = np.searchsorted(paths.gateways, plane.announced[:, 0])
    networks = np.unique(plane.announced[touched[rows], 2]).tolist()
    return _reselected(replace(state, plane=plane, paths=paths, asked={}, passed={}), networks)


def _touched(state: Forwarding, links: list[int], weight: int) -> BoolArray:
    """[G]: the gateways to which some path uses one of the links, or now would."""
    paths, ends = state.paths, state.plane.links[links]
    onward = paths.cost[:, ends[:, 1]] + weight  # [G, links]
    would = (onward <= paths.cost[:, ends[:, 0]]) & np.isfinite(onward)
    touched: BoolArray = np.any(paths.on_path[:, links] | would, axis=1)
    return touched


def _overwritten(old: Array, rows: BoolArray, new: Array) -> Array:
    changed = old.copy()
    changed[rows] = new
    return changed


def _reselected(state: Forwarding, networks: list[int]) -> Revised:
    selection = bgp.reselect(
        state.plane, state.paths, state.always_compare_med, state.selection, networks
    )
    hops = state.next_hop.copy()
    hops[networks] = next_hop(state.plane, state.paths, selection.route[networks])
    return Revised(replace(state, selection=selection, next_hop=hops), networks)
