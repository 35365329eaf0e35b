"""From a network's state and scores to what the map shows: nodes with places, and lines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from gsid_service.console import cluster
from gsid_service.console.layout import HEIGHT, WIDTH, Places, Point, layout
from gsid_service.records import Entity, Fact
from gsid_service.schema import BGP_ROUTE, CONNECTED, EBGP, EXTERNAL_AS, IBGP, NETWORK, ROUTERS

LINES = (CONNECTED.name, IBGP.name, EBGP.name, BGP_ROUTE.name)  # as they lie upon each other
ROUTER_KINDS = {kind.name for kind in ROUTERS}


@dataclass(frozen=True, slots=True)
class Drawing:
    """What to draw; `shape` is the same as long as nodes and lines are."""

    nodes: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    heads: dict[str, str]  # who stands for what is not drawn itself
    shape: str
    routers: int  # in the network; more than there are nodes for where they are clustered

    def document(self) -> dict[str, Any]:
        size = {"width": WIDTH, "height": HEIGHT}
        parts = {"nodes": self.nodes, "lines": self.lines, "heads": self.heads}
        return size | {"shape": self.shape} | parts

    @property
    def places(self) -> Places:
        return {node["id"]: Point(node["x"], node["y"]) for node in self.nodes}


def draw(
    entities: Sequence[Entity],
    facts: Sequence[Fact],
    fixed: Places,
    centre: str | None = None,
) -> Drawing:
    """All of a network, or what is near one thing of it; what is in `fixed` keeps its place."""
    routers = [e for e in entities if e.kind in ROUTER_KINDS]
    is_small = len(routers) <= cluster.AT_MOST
    is_part = centre is not None and not is_small
    beside = cluster.neighbours(f.args for f in facts if f.predicate == CONNECTED.name)
    gateway = {f.args[1]: f.args[0] for f in facts if f.predicate == EBGP.name}
    head = cluster.heads(routers, beside, cluster.AT_MOST if is_small else cluster.CLUSTERS)
    if centre is not None and is_part:
        near = cluster.around(_routers_of(centre, facts, gateway), beside)
        head = {router.id: router.id for router in routers if router.id in near}
    apart = cluster.PEERINGS if is_small or is_part else 1
    head |= _others(entities, facts, head, gateway, apart)
    shown = set(head.values())
    there = [e for e in entities if e.id in shown]
    lines = _lines(facts, head, shown)
    places = layout(there, _joined(facts, head), {} if is_part else fixed)
    members = Counter(head.values())
    nodes = [_node(e, places, members[e.id], head.get(gateway.get(e.id, ""))) for e in there]
    names = [n["id"] for n in nodes] + [f for line in lines for f in line["facts"]]
    shape = sha256("\n".join(names).encode()).hexdigest()[:16]
    hidden = {name: other for name, other in head.items() if name != other}
    return Drawing(nodes, lines, hidden, shape, len(routers))


def _routers_of(centre: str, facts: Sequence[Fact], gateway: Mapping[str, str]) -> list[str]:
    """A router itself, the gateway of a peering, the gateways by which a destination is reached."""
    by = [f.args[0] for f in facts if f.predicate == BGP_ROUTE.name and f.args[1] == centre]
    found = {gateway[name]: None for name in (centre, *by) if name in gateway}
    return list(found) or [centre]


def _others(
    entities: Sequence[Entity],
    facts: Sequence[Fact],
    head: Mapping[str, str],
    gateway: Mapping[str, str],
    apart: int,
) -> dict[str, str]:
    """Who stands for each peering of the routers that are there, and what these announce."""
    names = {e.id: e.kind for e in entities if e.kind not in ROUTER_KINDS}
    hanging = {
        name: head.get(gateway.get(name, ""), name)
        for name, kind in names.items()
        if kind != NETWORK.name and (name not in gateway or gateway[name] in head)
    }
    routes = [f.args for f in facts if f.predicate == BGP_ROUTE.name]
    far = {network for _, network in routes}
    far -= {network for peering, network in routes if peering in hanging}
    networks = (n for n, kind in names.items() if kind == NETWORK.name and n not in far)
    return cluster.peerings(hanging, apart) | cluster.networks(networks)


def _joined(facts: Sequence[Fact], head: Mapping[str, str]) -> list[Fact]:
    """The facts with each thing's place taken by the one that stands for it."""
    return [f._replace(args=tuple(head.get(arg, arg) for arg in f.args)) for f in facts]


def _node(entity: Entity, places: Places, members: int, gateway: str | None) -> dict[str, Any]:
    x, y = places[entity.id]
    # A peering hangs on its gateway, which need not be said again, and has little room.
    is_peering = entity.kind == EXTERNAL_AS.name
    label = entity.id.partition("@")[0] if is_peering else entity.label or entity.id
    node = {"id": entity.id, "kind": entity.kind, "label": label}
    leftwards = (
        places.get(gateway or "", places[entity.id]).x > x + 1
    )  # its name must not hide the gateway
    return node | {"x": round(x, 1), "y": round(y, 1), "members": members, "leftwards": leftwards}


def _lines(facts: Sequence[Fact], head: Mapping[str, str], shown: set[str]) -> list[dict[str, Any]]:
    """One line for each pair of nodes and predicate, with all the facts that it stands for."""
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    for fact in facts:
        if fact.predicate not in LINES:
            continue
        a, b = (head.get(arg, arg) for arg in fact.args)
        if a == b or a not in shown or b not in shown:
            continue
        ends = (a, b) if fact.predicate != CONNECTED.name else (min(a, b), max(a, b))
        fresh = {"kind": fact.predicate, "a": ends[0], "b": ends[1], "facts": []}
        lines.setdefault((fact.predicate, *ends), fresh)["facts"].append(fact.key.digest)
    return sorted(lines.values(), key=lambda line: LINES.index(line["kind"]))
