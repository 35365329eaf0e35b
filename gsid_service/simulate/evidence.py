"""Evidence: what the intents and the traffic say of a fact, under observed and approved values.

Each fact has a row of counts. Of a link or a route, how much traffic uses it, and of the intents
whose traffic uses it, how many hold and how many do not; and how many name this very hop. A broken
intent does not say which value broke it, but the links and routes on its way, before and after,
are the ones to ask, and those that serve intents that hold are less likely to be wrong. Where a
network has no one stable outcome, its intents say nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from gsid_service import schema
from gsid_service.records import EVIDENCE, Fact, FactKey
from gsid_service.simulate import bgp, intents
from gsid_service.simulate.forwarding import Forwarding

Evidence = dict[FactKey, list[int]]
COLUMN = {name: column for column, name in enumerate(EVIDENCE)}


def evidence(
    facts: Sequence[Fact],
    wanted: Iterable[Fact],
    observed: Forwarding,
    approved: Forwarding | None = None,
) -> Evidence:
    """A row of `EVIDENCE` for each fact and intent of which there is anything to say."""
    rows: Evidence = defaultdict(lambda: [0] * len(EVIDENCE))
    states = [("observed", observed)] + ([("approved", approved)] if approved else [])
    for name, state in states:
        for key, flows in _flows(state):
            rows[key][COLUMN[f"{name} flows"]] += flows
    served: Counter[tuple[str, str, str]] = Counter()
    for intent in wanted:
        outcome = _outcome(intent, observed, approved)
        if outcome is None:
            continue
        rows[intent.key][COLUMN[f"observed {outcome}"]] = 1
        source, networks = intents.traffic(intent)
        served.update((outcome, source, network) for network in networks)
        demand = "wanted" if intents.asks_for_its_hop(intent) else "unwanted"
        met = "met" if outcome in ("kept", "gained") else "unmet"
        for key in intents.hops(intent):
            rows[key][COLUMN[f"{demand} {met}"]] += 1
    for (outcome, source, network), count in served.items():
        for name, state in states:
            column = COLUMN[f"{name} {outcome}"]
            for key in _way(state, source, network):
                rows[key][column] += count
    _fold_directions(rows, facts)
    return dict(rows)


def _outcome(intent: Fact, observed: Forwarding, approved: Forwarding | None) -> str | None:
    """kept, lost or gained since the approved values, or unmet by both."""
    now = intents.satisfied(intent, observed)
    before = now if approved is None else intents.satisfied(intent, approved)
    if now is None or before is None:
        return None
    if now:
        return "kept" if before else "gained"
    return "lost" if before else "unmet"


def _flows(state: Forwarding) -> Iterator[tuple[FactKey, int]]:
    """How many pairs of a router and a network send their traffic over each link and route."""
    plane, paths = state.plane, state.paths
    if not len(plane.announced):
        return
    stable = [k for k in range(len(plane.networks)) if state.is_stable(k)]
    selected = state.selection.route[stable]  # [K, R]
    network, router = np.nonzero(selected != bgp.NO_ROUTE)
    route = selected[network, router]
    towards = np.zeros((len(paths.gateways), len(plane.routers)), dtype=np.int64)
    np.add.at(towards, (np.searchsorted(paths.gateways, plane.announced[route, 0]), router), 1)
    flows = (paths.on_path * towards[:, plane.links[:, 0]]).sum(axis=0)
    for (a, b), count in zip(plane.links.tolist(), flows.tolist(), strict=True):
        if count:
            yield FactKey(schema.CONNECTED.name, (plane.routers[a], plane.routers[b])), count
    for number, count in enumerate(np.bincount(route).tolist()):
        if count:
            _, peer, to = plane.announced[number].tolist()
            yield FactKey(schema.BGP_ROUTE.name, (plane.peers[peer], plane.networks[to])), count


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


def _fold_directions(rows: Evidence, facts: Iterable[Fact]) -> None:
    """A link that is reported in one direction only stands for both."""
    links = {fact.args for fact in facts if fact.predicate == schema.CONNECTED.name}
    for a, b in links:
        back = FactKey(schema.CONNECTED.name, (b, a))
        if (b, a) not in links and back in rows:
            there = rows[FactKey(schema.CONNECTED.name, (a, b))]
            there[:] = [x + y for x, y in zip(there, rows.pop(back), strict=True)]
