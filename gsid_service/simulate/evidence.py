"""Evidence: what the intents and the traffic say of a fact, under observed and approved values.

Each fact has a row of counts. Of a link or a route, how much traffic uses it, and of the intents
whose traffic uses it, how many hold and how many do not; and how many name this very hop. A broken
intent does not say which value broke it, but the links and routes on its way, before and after,
are the ones to ask, and those that serve intents that hold are less likely to be wrong. Where a
network has no one stable outcome, its intents say nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gsid_service import schema
from gsid_service.records import EVIDENCE, Fact, FactKey, FloatArray, IntArray
from gsid_service.simulate import bgp, intents, ospf
from gsid_service.simulate.forwarding import Forwarding
from gsid_service.simulate.plane import Plane

COLUMN = {name: column for column, name in enumerate(EVIDENCE)}
NO_ROW = -1

RowOf = Mapping[FactKey, int]


@dataclass(frozen=True, eq=False)
class Traffic:
    """How many pairs of a router and a network send their traffic over each link and route."""

    state: Forwarding
    towards: IntArray  # [G, R]: the networks that a router reaches by a gateway
    using: IntArray  # [A]: the routers that use a route
    link_rows: IntArray  # [L]: the row of the fact behind each link, or NO_ROW
    route_rows: IntArray  # [A]

    @classmethod
    def of(cls, state: Forwarding, row_of: RowOf) -> "Traffic":
        everything = range(len(state.plane.networks))
        return cls(state, *_counted(state, everything), *_rows(state.plane, row_of))

    def after(self, state: Forwarding) -> "Traffic":
        """That of another state of the same links and routes: only what moved is counted."""
        before, now = self.state.selection.route, state.selection.route
        touched = [k for k, routes in enumerate(now) if routes is not before[k]]
        less, more = _counted(self.state, touched), _counted(state, touched)
        towards, using = self.towards - less[0] + more[0], self.using - less[1] + more[1]
        return Traffic(state, towards, using, self.link_rows, self.route_rows)

    def flows(self, rows: int) -> FloatArray:
        """[rows]: the pairs whose traffic uses each fact."""
        over = np.zeros(len(self.link_rows), dtype=np.int64)
        start = self.state.plane.links[:, 0]
        step = max(1, ospf.CHUNK // max(1, len(start)))
        for low in range(0, len(self.towards), step):
            on_path = self.state.paths.on_path[low : low + step]
            over += (on_path * self.towards[low : low + step, start]).sum(axis=0)
        found = np.zeros(rows + 1, dtype=np.float64)  # the last for all that is no row's
        np.add.at(found, self.link_rows, over)
        np.add.at(found, self.route_rows, self.using)
        return found[:rows]


def evidence(
    facts: Sequence[Fact],
    wanted: Sequence[Fact],
    observed: Forwarding,
    approved: Forwarding | None = None,
) -> FloatArray:
    """[facts and intents, EVIDENCE]: what there is to say of each."""
    row_of = {fact.key: row for row, fact in enumerate((*facts, *wanted))}
    before = Traffic.of(approved, row_of) if approved else None
    now = Traffic.of(observed, row_of)
    return counts(row_of, len(facts) + len(wanted), wanted, now, before)


def counts(
    row_of: RowOf, rows: int, wanted: Iterable[Fact], observed: Traffic, approved: Traffic | None
) -> FloatArray:
    """The same, where the traffic is counted."""
    table = np.zeros((rows, len(EVIDENCE)), dtype=np.float64)
    states = [("observed", observed)] + ([("approved", approved)] if approved else [])
    for name, traffic in states:
        table[:, COLUMN[f"{name} flows"]] = traffic.flows(rows)
    served: Counter[tuple[str, str, str]] = Counter()
    for intent in wanted:
        outcome = _outcome(intent, observed.state, approved.state if approved else None)
        if outcome is None:
            continue
        table[row_of[intent.key], COLUMN[f"observed {outcome}"]] = 1
        source, networks = intents.traffic(intent)
        served.update((outcome, source, network) for network in networks)
        demand = "wanted" if intents.asks_for_its_hop(intent) else "unwanted"
        met = "met" if outcome in ("kept", "gained") else "unmet"
        for row in _known(row_of, intents.hops(intent)):
            table[row, COLUMN[f"{demand} {met}"]] += 1
        for row in _passed_over(intent, observed):
            table[row, COLUMN[f"unwanted {met}"]] += 1
    _count_rivals(table, observed)
    for name, traffic in states:
        ways: dict[tuple[str, str], list[int]] = {}
        for (outcome, source, network), count in served.items():
            way = source, network
            if way not in ways:
                ways[way] = list(_known(row_of, _way(traffic.state, source, network)))
            for row in ways[way]:
                table[row, COLUMN[f"{name} {outcome}"]] += count
    return table


def _passed_over(intent: Fact, traffic: Traffic) -> Iterator[int]:
    """The routes of a gateway that is to forward to another router, and so not to leave by them."""
    if intent.predicate != schema.FWD.name or not intent.holds:
        return
    plane, (router, network, hop) = traffic.state.plane, intent.args
    routes = plane.routes_to.get(plane.network_index.get(network, NO_ROW), [])
    gateway = plane.router_index.get(router)
    own = [route for route in routes if plane.gateway_of[route] == gateway]
    if all(plane.peers[plane.peer_of[route]] != hop for route in own):
        yield from (row for row in traffic.route_rows[own].tolist() if row != NO_ROW)


def _count_rivals(table: FloatArray, traffic: Traffic) -> None:
    """How many intents want another route to the same network than each one."""
    there = traffic.route_rows != NO_ROW
    rows, network = traffic.route_rows[there], traffic.state.plane.announced[there, 2]
    for met in ("met", "unmet"):
        wanted = table[rows, COLUMN[f"wanted {met}"]]
        table[rows, COLUMN[f"rivalled {met}"]] = np.bincount(network, wanted)[network] - wanted


def _outcome(intent: Fact, observed: Forwarding, approved: Forwarding | None) -> str | None:
    """kept, lost or gained since the approved values, or unmet by both."""
    now = intents.satisfied(intent, observed)
    before = now if approved is None else intents.satisfied(intent, approved)
    if now is None or before is None:
        return None
    if now:
        return "kept" if before else "gained"
    return "lost" if before else "unmet"


def _counted(state: Forwarding, networks: Sequence[int]) -> tuple[IntArray, IntArray]:
    """`towards` and `using` of the traffic to some networks; without one outcome there is none."""
    gateways, routers = state.paths.cost.shape
    towards = np.zeros(gateways * routers, dtype=np.int64)
    using = np.zeros(len(state.plane.announced), dtype=np.int64)
    for some in bgp.chunks(len(networks), routers):
        selected = state.selection.routes(networks[some])  # [k, R]
        at = np.flatnonzero(selected != bgp.NO_ROUTE)
        route, router = selected.ravel()[at], at % routers
        by = state.selection.preference.row[route] * routers + router
        towards += np.bincount(by, minlength=len(towards))
        using += np.bincount(route, minlength=len(using))
    return towards.reshape(gateways, routers), using


def _rows(plane: Plane, row_of: RowOf) -> tuple[IntArray, IntArray]:
    """The rows of the facts behind the links and the routes of a plane."""
    links = [(plane.routers[a], plane.routers[b]) for a, b in plane.links.tolist()]
    routes = [(plane.peers[p], plane.networks[n]) for p, n in plane.announced[:, 1:].tolist()]
    of_links = [_link_row(row_of, ends) for ends in links]
    of_routes = [row_of.get(FactKey(schema.BGP_ROUTE.name, ends), NO_ROW) for ends in routes]
    return np.array(of_links, dtype=np.int64), np.array(of_routes, dtype=np.int64)


def _link_row(row_of: RowOf, ends: tuple[str, ...]) -> int:
    """A link that is reported in one direction only stands for both."""
    row = row_of.get(FactKey(schema.CONNECTED.name, ends))
    return row_of.get(FactKey(schema.CONNECTED.name, ends[::-1]), NO_ROW) if row is None else row


def _known(row_of: RowOf, keys: Iterable[FactKey]) -> Iterator[int]:
    """The rows of links and routes, as far as there are facts of them."""
    for key in keys:
        is_link = key.predicate == schema.CONNECTED.name
        row = _link_row(row_of, key.args) if is_link else row_of.get(key, NO_ROW)
        if row != NO_ROW:
            yield row


def _way(state: Forwarding, source: str, network: str) -> Iterator[FactKey]:
    """The links and the routes that a router's traffic to a network uses, all of equal ones."""
    plane, names = state.plane, state.hop_names
    k, router = plane.network_index.get(network), plane.router_index.get(source)
    if k is None or router is None:
        return
    for hop in state.reached(k, router):
        if hop < len(plane.routers):
            for following in state.next_hops(k, hop):
                if following < len(plane.routers):
                    yield FactKey(schema.CONNECTED.name, (names[hop], names[following]))
        else:
            yield FactKey(schema.BGP_ROUTE.name, (names[hop], network))
