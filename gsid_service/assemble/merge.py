"""From the snapshots of a network's collectors to one merged state.

A collector's *view* is its snapshots laid upon each other in the order of their sequence: it does
not matter in which order they arrived. The views become one network: where two state different
values, the newer observation counts, and the disagreement is kept to be shown.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from gsid_service.records import Entity, Fact, FactKey, Snapshot
from gsid_service.schema import SCHEMA, Schema


class Stated(NamedTuple):
    """A fact, and who stated it when."""

    fact: Fact
    observed_at: datetime
    collector: str
    snapshot_id: str


@dataclass(frozen=True, slots=True)
class View:
    """What one collector says of a network."""

    collector: str
    sequence: int
    observed_at: datetime
    complete: bool  # whether it rests on a complete snapshot
    entities: Mapping[str, tuple[Entity, datetime]]
    facts: Mapping[FactKey, Stated]


class Conflict(NamedTuple):
    """A value on which collectors differ, or a fact that does not fit what others say."""

    fact: FactKey
    parameter: str | None
    values: tuple[tuple[str, int], ...]  # collector and value, the one that counts first
    reason: str


@dataclass(frozen=True, slots=True)
class Merged:
    """A network as all its collectors see it."""

    entities: tuple[Entity, ...] = ()
    facts: tuple[Fact, ...] = ()
    source: Mapping[FactKey, Stated] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] = ()
    stale: frozenset[FactKey] = frozenset()
    complete: bool = False  # whether every collector has sent a complete view


def extend(
    view: View | None, snapshot: Snapshot, snapshot_id: str, schema: Schema = SCHEMA
) -> View:
    """The view with the next snapshot laid upon it."""
    at, collector = snapshot.observed_at, snapshot.collector.id
    anew = snapshot.complete or view is None
    entities = {} if anew or view is None else dict(view.entities)
    facts = {} if anew or view is None else dict(view.facts)
    entities |= {entity.id: (entity, at) for entity in snapshot.entities}
    for key in (*snapshot.withdrawn, *_replaced(facts, snapshot, schema)):
        facts.pop(key, None)
    facts |= {fact.key: Stated(fact, at, collector, snapshot_id) for fact in snapshot.facts}
    complete = snapshot.complete or (view is not None and view.complete)
    return View(collector, snapshot.sequence, at, complete, entities, facts)


def _replaced(facts: Mapping[FactKey, Stated], snapshot: Snapshot, schema: Schema) -> list[FactKey]:
    """What a fact takes the place of: an entity may have only one of some facts."""
    if not facts:
        return []
    taken = {
        (fact.predicate, fact.args[place])
        for fact in snapshot.facts
        if (place := schema.fact[fact.predicate].exclusive) is not None
    }
    return [
        key
        for key in facts
        if (place := schema.fact[key.predicate].exclusive) is not None
        and (key.predicate, key.args[place]) in taken
    ]


def merge(views: Iterable[View], silent: Collection[str] = (), schema: Schema = SCHEMA) -> Merged:
    """All views as one network; the facts that only `silent` collectors state are stale."""
    views = sorted(views, key=lambda view: view.collector)
    entities = _entities(views)
    told: dict[FactKey, list[Stated]] = {}
    for view in views:
        for key, stated in view.facts.items():
            told.setdefault(key, []).append(stated)
    right = {fact.key for fact in fitting((v[0].fact for v in told.values()), entities, schema)}
    source: dict[FactKey, Stated] = {}
    conflicts: list[Conflict] = []
    for key, versions in told.items():
        versions.sort(key=lambda stated: (stated.observed_at, stated.collector), reverse=True)
        if key in right:
            source[key] = versions[0]
            conflicts += _disagreements(key, versions, schema)
        else:
            reason = "an entity of it is of another kind to a newer observation"
            conflicts.append(Conflict(key, None, (), reason))
    for key, better in _displaced(source, schema).items():
        del source[key]
        reason = f"{better} is the newer observation, and only one of the two can be"
        conflicts.append(Conflict(key, None, (), reason))
    return Merged(
        entities=tuple(entities.values()),
        facts=tuple(stated.fact for stated in source.values()),
        source=source,
        conflicts=tuple(conflicts),
        stale=frozenset(
            key for key in source if all(stated.collector in silent for stated in told[key])
        ),
        complete=bool(views) and all(view.complete for view in views),
    )


def _entities(views: Iterable[View]) -> dict[str, Entity]:
    """Every entity as the newest observation has it, in an order that no arrival changes."""
    newest: dict[str, tuple[datetime, str, Entity]] = {}
    for view in views:
        for name, (entity, at) in view.entities.items():
            if name not in newest or (at, view.collector) > newest[name][:2]:
                newest[name] = (at, view.collector, entity)
    return {name: newest[name][2] for name in sorted(newest)}


def fitting(
    facts: Iterable[Fact], entities: Mapping[str, Entity], schema: Schema = SCHEMA
) -> Iterator[Fact]:
    """The facts whose entities are there, and of the kinds that their roles ask for."""
    allowed = {f.name: [{k.name for k in role.kinds} for role in f.roles] for f in schema.facts}
    kinds = {name: entity.kind for name, entity in entities.items()}
    for fact in facts:
        pairs = zip(fact.args, allowed[fact.predicate], strict=True)
        if all(kinds.get(arg) in suitable for arg, suitable in pairs):
            yield fact


def _disagreements(key: FactKey, versions: list[Stated], schema: Schema) -> Iterable[Conflict]:
    if all(stated.fact.params == versions[0].fact.params for stated in versions):
        return
    for parameter in schema.fact[key.predicate].parameters:
        said = [
            (s.collector, s.fact.params.get(parameter.name, parameter.default)) for s in versions
        ]
        values = tuple((collector, value) for collector, value in said if value is not None)
        if len({value for _, value in values}) > 1:
            yield Conflict(key, parameter.name, values, "collectors differ; the newer counts")


def _displaced(source: Mapping[FactKey, Stated], schema: Schema) -> dict[FactKey, FactKey]:
    """Facts of which an entity may have only one, and the newer ones that stand instead."""
    newest: dict[tuple[str, str], FactKey] = {}
    displaced: dict[FactKey, FactKey] = {}
    for key in sorted(source, key=lambda k: (source[k].observed_at, source[k].collector, k)):
        place = schema.fact[key.predicate].exclusive
        if place is not None:
            before = newest.get((key.predicate, key.args[place]))
            if before is not None:
                displaced[before] = key
            newest[key.predicate, key.args[place]] = key
    return displaced
