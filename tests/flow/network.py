"""Networks to watch: a simulated one of 23 routers as two collectors see it, and a small one."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from gsid_service.evaluate.splits import SPLITS
from gsid_service.ingest.wire import dump_snapshot
from gsid_service.records import Collector, Entity, Fact, FactKey, Snapshot
from gsid_service.schema import BGP_ROUTE, CONNECTED, LOCAL_PREF, ROUTE_REFLECTOR, ROUTERS
from gsid_service.simulate.cases import Case
from gsid_service.simulate.forwarding import forward, moved
from gsid_service.simulate.plane import build

BEGIN = datetime(2026, 11, 15, 22, tzinfo=UTC)


@cache
def large() -> Case:
    """The first clean design of 23 routers."""
    kinds = {kind.name for kind in ROUTERS}
    cases = (SPLITS["standard"].case("flow", index) for index in range(100))
    return next(c for c in cases if sum(e.kind in kinds for e in c.entities) == 23)


def document(
    network: str,
    collector: str,
    sequence: int,
    entities: Iterable[Entity],
    facts: Iterable[Fact],
    complete: bool = True,
) -> dict[str, Any]:
    """A snapshot in its wire form, observed a second after the one before."""
    facts = tuple(facts)
    there = {arg for fact in facts for arg in fact.args}
    return dump_snapshot(
        Snapshot(
            network=network,
            collector=Collector(collector, ROUTE_REFLECTOR.name),
            sequence=sequence,
            observed_at=BEGIN + timedelta(seconds=sequence),
            complete=complete,
            entities=tuple(entity for entity in entities if entity.id in there),
            facts=facts,
        )
    )


def views(facts: Sequence[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Two partial views: OSPF with half of the sessions, and BGP with all sessions."""
    inside = [f for i, f in enumerate(facts) if f.predicate == CONNECTED.name or i % 2]
    outside = [f for f in facts if f.predicate != CONNECTED.name]
    return [f for f in inside if f.predicate != BGP_ROUTE.name], outside


def changed(facts: Iterable[Fact], key: FactKey, parameter: str, value: int) -> tuple[Fact, ...]:
    return tuple(
        f._replace(params={**f.params, parameter: value}) if f.key == key else f for f in facts
    )


def mistake(case: Case) -> tuple[FactKey, int, int]:
    """A route whose wrong local_pref moves the most traffic; its right and its wrong value."""
    before = forward(build(case.entities, case.facts))
    found = []
    for fact in case.facts:
        for wrong in (0, 9) if fact.predicate == BGP_ROUTE.name else ():
            right = fact.params[LOCAL_PREF.name]
            after = changed(case.facts, fact.key, LOCAL_PREF.name, wrong)
            moves = len(moved(before, forward(build(case.entities, after))))
            found.append((moves, fact.key, right, wrong))
    _, key, right, wrong = max(found)
    return key, right, wrong


def small(network: str, collector: str = "rr1", sequence: int = 1, **route: int) -> dict[str, Any]:
    """Three routers, a reflector and two ways out."""
    route = {LOCAL_PREF.name: 200, "as_path_length": 2, "med": 0} | route
    entities: list[dict[str, Any]] = [{"id": name, "kind": "router"} for name in ("R1", "R2", "R3")]
    entities.append({"id": "RR1", "kind": "route_reflector"})
    entities += [{"id": f"AS65101@R{n}", "kind": "external_as", "asn": 65101} for n in (2, 3)]
    entities.append({"id": "203.0.113.0/24", "kind": "network"})
    links = (("R1", "R2", 10), ("R1", "R3", 20), ("R2", "RR1", 10), ("R3", "RR1", 10))
    backup = {LOCAL_PREF.name: 100, "as_path_length": 3, "med": 0}
    facts: list[dict[str, Any]] = [
        {"predicate": "connected", "args": [a, b], "params": {"ospf_weight": w}}
        for a, b, w in links
    ]
    facts += [{"predicate": "ibgp", "args": [f"R{n}", "RR1"]} for n in (1, 2, 3)]
    facts += [{"predicate": "ebgp", "args": [f"R{n}", f"AS65101@R{n}"]} for n in (2, 3)]
    facts += [
        {"predicate": "bgp_route", "args": [f"AS65101@R{n}", "203.0.113.0/24"], "params": params}
        for n, params in ((2, backup), (3, route))
    ]
    return {
        "schema": "gsid.snapshot/1",
        "network": network,
        "collector": {"id": collector, "role": "route_reflector"},
        "sequence": sequence,
        "observed_at": (BEGIN + timedelta(seconds=sequence % 10**6)).isoformat(),
        "complete": True,
        "entities": entities,
        "facts": facts,
    }
