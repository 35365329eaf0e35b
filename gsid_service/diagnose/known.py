"""What is known of a network: simulated, its traffic counted, assembled to a graph.

The next state of a network is reached from the last one: where only values differ, forwarding,
traffic, intents and graph are worked out anew for what the values touch. It is the same as from
scratch, and whoever has no last state pays with time alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gsid_service import schema
from gsid_service.assemble.graph import NOT_APPLICABLE, assemble, renewed, with_effects
from gsid_service.records import Effect, Entity, Fact, FactKey, FloatArray, Graph, Intents
from gsid_service.simulate.evidence import Traffic, counts
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, Slot, try_adoptions, try_reverts
from gsid_service.simulate.revise import Value, values_of

MOST_LINKS = 16  # with other weights; from there on all paths are found sooner than some
PER_FACT = 2_000  # bytes, roughly: its records here, and its rows
COLUMNS = [parameter.column for parameter in schema.SCHEMA.monitored]
NAMES = tuple(parameter.name for parameter in schema.SCHEMA.monitored)
NOTHING_WANTED = Intents()


class Reference(NamedTuple):
    """What to compare with: the network as it once was, or a copy that may be wrong."""

    entities: Sequence[Entity]
    facts: Sequence[Fact]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Observation:
    """All that is known of a network; one without a name is not remembered."""

    entities: Sequence[Entity]
    facts: Sequence[Fact]
    wanted: Intents = NOTHING_WANTED
    reference: Reference | None = None
    stale: frozenset[FactKey] = frozenset()
    always_compare_med: bool = False
    contradicted: frozenset[Slot] = frozenset()  # values that are not what somebody announced
    network: str = ""


@dataclass(frozen=True, eq=False)
class Simulated:
    """An observation with the forwarding state that its values lead to, and the approved one."""

    seen: Observation
    facts: tuple[Fact, ...]  # those of routing: what routers report of forwarding is no value
    stated: tuple[Fact, ...]  # intents about what is there
    changed: Mapping[int, Fact] | None  # rows with other values than the last state; None if more
    bench: Bench
    approved: Bench | None  # knows nothing of derived intents


@dataclass(frozen=True, eq=False)
class Known:
    """A network once it is simulated and assembled."""

    simulated: Simulated
    row_of: Mapping[FactKey, int]  # of facts, and of stated intents behind them
    observed: Traffic
    approved: Traffic | None
    graph: Graph
    different: list[Value]  # values that differ from the reference, with the reference's

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        states = {id(t.state): t.state for t in (self.observed, self.approved) if t}
        routes = {id(r): r.nbytes for state in states.values() for r in state.selection.route}
        forwarding = sum(state.size for state in states.values()) + sum(routes.values())
        return forwarding + PER_FACT * len(self.graph.facts)


def simulate(seen: Observation, last: Known | None) -> Simulated:
    """From the last state where only values differ, from scratch otherwise."""
    before = last.simulated if last else None
    facts, stated = _nodes(seen)
    approved = _approved(seen, before, stated)
    changed = _changed(before, seen, facts) if before else None
    if before is None or changed is None:
        bench = _bench(seen, facts, stated, approved)
    else:
        bench = before.bench.after(value for fact in changed.values() for value in values_of(fact))
        if (stated, seen.wanted.derived) != (before.stated, before.seen.wanted.derived):
            bench = bench.about_others(stated, seen.wanted.derived)
    return Simulated(seen, facts, stated, changed, bench, approved)


def scored_facts(seen: Observation) -> tuple[FactKey, ...]:
    """The facts that the rows of a graph are about."""
    facts, stated = _nodes(seen)
    return tuple(fact.key for fact in (*facts, *stated))


def _nodes(seen: Observation) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """The facts of routing, and the stated intents about what is there."""
    facts = tuple(fact for fact in seen.facts if fact.predicate != schema.FWD.name)
    if not seen.wanted.stated:
        return facts, ()
    there = {entity.id for entity in seen.entities}
    return facts, tuple(intent for intent in seen.wanted.stated if there.issuperset(intent.args))


def _approved(
    seen: Observation, before: Simulated | None, stated: tuple[Fact, ...]
) -> Bench | None:
    """The forwarding state of the reference."""
    if seen.reference is None:
        return None
    entities, facts, _ = seen.reference
    known = before.approved if before and seen.reference == before.seen.reference else None
    if before is None or known is None or not _compares_alike(seen, before.seen):
        return Bench(forward(build(entities, facts), seen.always_compare_med), facts, stated)
    return known if stated == before.stated else known.about_others(stated, ())


def _compares_alike(one: Observation, other: Observation) -> bool:
    return one.always_compare_med == other.always_compare_med


def _changed(
    before: Simulated, seen: Observation, facts: Sequence[Fact]
) -> Mapping[int, Fact] | None:
    """The rows that have other values; None where more than that is different."""
    same = _compares_alike(seen, before.seen) and seen.entities == before.seen.entities
    if not same or len(facts) != len(before.facts):
        return None
    pairs = enumerate(zip(before.facts, facts, strict=True))
    changed = {row: now for row, (was, now) in pairs if was is not now and was != now}
    keeps_keys = all(before.facts[row].key == now.key for row, now in changed.items())
    return changed if keeps_keys and _has_few_links(changed.values()) else None


def _has_few_links(facts: Iterable[Fact]) -> bool:
    return sum(fact.predicate == schema.CONNECTED.name for fact in facts) <= MOST_LINKS


def _bench(
    seen: Observation,
    facts: Sequence[Fact],
    stated: Sequence[Fact],
    approved: Bench | None,
) -> Bench:
    """From scratch, or from the approved state where that differs in a few values."""
    if approved and seen.reference and seen.reference.entities == seen.entities:
        then = {fact.key: fact for fact in seen.reference.facts}
        changed = [fact for fact in facts if then.get(fact.key) != fact]
        same = len(then) == len(facts) and all(fact.key in then for fact in changed)
        if same and _has_few_links(changed):
            bench = Bench(approved.state, facts, stated, seen.wanted.derived)
            return bench.after(value for fact in changed for value in values_of(fact))
    state = forward(build(seen.entities, facts), seen.always_compare_med)
    return Bench(state, facts, stated, seen.wanted.derived)


def know(now: Simulated, last: Known | None) -> Known:
    """The network with its traffic counted, and its graph."""
    before = last if last and _has_same_rows(now, last.simulated) else None
    row_of = before.row_of if before else _rows(now)
    state = now.bench.state
    observed = before.observed.after(state) if before else Traffic.of(state, row_of)
    approved = _approved_traffic(now, before, observed, row_of)
    rows = len(now.facts) + len(now.stated)
    said = counts(row_of, rows, now.stated, observed, approved)
    graph = _graph(now, before, said)
    different = _different(graph, graph.reference)
    values = int((graph.features[len(graph.entities) :, COLUMNS] != NOT_APPLICABLE).sum())
    reverts = try_reverts(now.bench, different, values)
    graph = with_effects(graph, reverts, _adoptions(now, graph), row_of)
    return Known(now, row_of, observed, approved, graph, different)


def _has_same_rows(now: Simulated, before: Simulated) -> bool:
    return now.changed is not None and now.stated == before.stated


def _rows(now: Simulated) -> Mapping[FactKey, int]:
    return {fact.key: row for row, fact in enumerate((*now.facts, *now.stated))}


def _approved_traffic(
    now: Simulated, before: Known | None, observed: Traffic, row_of: Mapping[FactKey, int]
) -> Traffic | None:
    if now.approved is None or now.approved.state is observed.state:
        return observed if now.approved else None
    if before and before.approved and before.approved.state is now.approved.state:
        return before.approved
    return Traffic.of(now.approved.state, row_of)


def _graph(now: Simulated, before: Known | None, said: FloatArray) -> Graph:
    seen = now.seen
    if before and now.changed is not None and seen.reference == before.simulated.seen.reference:
        return renewed(before.graph, now.changed, said, seen.stale)
    baseline, exact = (
        (seen.reference.facts, seen.reference.exact) if seen.reference else (None, False)
    )
    return assemble(
        *(seen.entities, now.facts, now.stated, baseline, said), stale=seen.stale, exact=exact
    )


def _adoptions(now: Simulated, graph: Graph) -> Mapping[Slot, Effect]:
    """What each value that differs would do in the reference."""
    if now.approved is None or graph.reference is None:
        return {}
    found = try_adoptions(now.approved, _different(graph, graph.features))
    now.approved.forget()
    return found


def _different(graph: Graph, values: FloatArray | None) -> list[Value]:
    """Every monitored value that differs from the reference's, as a table of features has it."""
    if graph.reference is None or values is None:
        return []
    tables = graph.features, graph.reference, values
    now, then, told = (table[len(graph.entities) :, COLUMNS] for table in tables)
    rows, columns = np.nonzero((then != NOT_APPLICABLE) & (now != then) & (told != NOT_APPLICABLE))
    slots = zip(rows.tolist(), columns.tolist(), told[rows, columns].tolist(), strict=True)
    return [(graph.facts[row], NAMES[column], int(value)) for row, column, value in slots]
