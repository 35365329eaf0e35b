"""From a network's state and scores to what the map shows: nodes with places, and lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from gsid_service.console import cluster
from gsid_service.console.layout import HEIGHT, WIDTH, Places, layout
from gsid_service.records import Entity, Fact
from gsid_service.schema import BGP_ROUTE, CONNECTED, EBGP, EXTERNAL_AS, IBGP, NETWORK, ROUTERS

LINES = (CONNECTED.name, IBGP.name, EBGP.name, BGP_ROUTE.name)  # as they lie upon each other
ROUTER_KINDS = {kind.name for kind in ROUTERS}


@dataclass(frozen=True, slots=True)
class Drawing:
    """What to draw; `shape` is the same as long as nodes and lines are."""

    nodes: list[dict[str, Any]]
    lines: list[dict[str, Any]]
    shape: str
    routers: int  # in the network; more than there are nodes for where they are clustered

    def document(self) -> dict[str, Any]:
        size = {"width": WIDTH, "height": HEIGHT}
        return size | {"shape": self.shape, "nodes": self.nodes, "lines": self.lines}


def draw(
    entities: Sequence[Entity],
    facts: Sequence[Fact],
    fixed: Places,
    centre: str | None = None,
) -> Drawing:
    """All of a network, or what is near one router of it; routers in `fixed` keep their place."""
    routers = [e for e in entities if e.kind in ROUTER_KINDS]
    beside = cluster.neighbours(f.args for f in facts if f.predicate == CONNECTED.name)
    head = cluster.heads(routers, beside, cluster.AT_MOST)
    if centre is not None and len(routers) > cluster.AT_MOST:
        near = cluster.around(centre, beside)
        head = {router.id: router.id for router in routers if router.id in near}
    gateway = {f.args[1]: f.args[0] for f in facts if f.predicate == EBGP.name}
    shown = _shown(entities, facts, head, gateway)
    members: dict[str, int] = {}
    for router in head:
        members[head[router]] = members.get(head[router], 0) + 1
    there = [e for e in entities if e.id in shown]
    lines = _lines(facts, head, shown)
    whole = len(routers) <= cluster.AT_MOST
    places = layout(there, _joined(facts, head), fixed if whole else {})
    nodes = [_node(e, places, members.get(e.id, 1), gateway.get(e.id)) for e in there]
    names = [n["id"] for n in nodes] + [f for line in lines for f in line["facts"]]
    shape = sha256("\n".join(names).encode()).hexdigest()[:16]
    return Drawing(nodes, lines, shape, len(routers))


def _shown(
    entities: Sequence[Entity],
    facts: Sequence[Fact],
    head: Mapping[str, str],
    gateway: Mapping[str, str],
) -> set[str]:
    """Routers that stand for themselves or others, their peerings, and what these announce."""
    routers = set(head.values())
    other = {e.id for e in entities if e.kind not in ROUTER_KINDS and e.kind != NETWORK.name}
    peerings = {name for name in other if name not in gateway or gateway[name] in head}
    routes = [f.args for f in facts if f.predicate == BGP_ROUTE.name]
    announced = {network for _, network in routes}
    return (
        routers
        | peerings
        | {network for peering, network in routes if peering in peerings}
        | {e.id for e in entities if e.kind == NETWORK.name and e.id not in announced}
    )


def _joined(facts: Sequence[Fact], head: Mapping[str, str]) -> list[Fact]:
    """The facts with each router's place taken by the one that stands for it."""
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
