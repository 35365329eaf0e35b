"""From the snapshots of a network's collectors to one merged state.

A collector's *view* is its snapshots laid upon each other in the order of their sequence: it does
not matter in which order they arrived. The views become one network: where two state different
values, the newer observation counts, and the disagreement is kept to be shown.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from gsid_service.records import Entity, Fact, FactKey, Snapshot
from gsid_service.schema import SCHEMA, Schema

MISFIT = "an entity of it is of another kind to a newer observation"
NONE: frozenset[FactKey] = frozenset()


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

    def same_facts(self, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """The records that are kept of facts with these values, or else these."""
        return tuple(map(self._same, facts))

    def _same(self, fact: Fact) -> Fact:
        stated = self.source.get(fact.key)
        return stated.fact if stated and stated.fact == fact else fact

    def same_entities(self, entities: tuple[Entity, ...]) -> tuple[Entity, ...]:
        """Likewise of entities."""
        if entities == self.entities:
            return self.entities
        kept = {entity: entity for entity in self.entities}
        return tuple(kept.get(entity, entity) for entity in entities)


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
    known = view.facts if view else {}
    for fact in snapshot.facts:
        key = fact.key
        before = known.get(key)
        same = before.fact if before and before.fact == fact else fact  # is kept once
        facts[key] = Stated(same, at, collector, snapshot_id)
    complete = snapshot.complete or (view is not None and view.complete)
    return View(collector, snapshot.sequence, at, complete, entities, facts)


def _replaced(facts: Mapping[FactKey, Stated], snapshot: Snapshot, schema: Schema) -> list[FactKey]:
    """What a fact takes the place of: an entity may have only one of some facts."""
    taken = {
        (fact.predicate, fact.args[place])
        for fact in snapshot.facts
        if (place := schema.fact[fact.predicate].exclusive) is not None
    }
    if not taken:
        return []
    return [
        key
        for key in facts
        if (place := schema.fact[key.predicate].exclusive) is not None
        and (key.predicate, key.args[place]) in taken
    ]


def merge(views: Iterable[View], silent: Collection[str] = (), schema: Schema = SCHEMA) -> Merged:
    """All views as one network; the facts that only `silent` collectors state are stale."""
    views = sorted(views, key=lambda view: view.collector)
    entities = _entities(views, schema)
    told: dict[FactKey, list[Stated]] = {}
    for view in views:
        for key, stated in view.facts.items():
            told.setdefault(key, []).append(stated)
    right = {fact.key for fact in fitting((v[0].fact for v in told.values()), entities, schema)}
    source: dict[FactKey, Stated] = {}
    conflicts: list[Conflict] = []
    for key, versions in told.items():
        if key in right:
            versions.sort(key=_age, reverse=True)
            source[key] = versions[0]
            conflicts += _disagreements(key, versions, schema)
        else:
            conflicts.append(Conflict(key, None, (), MISFIT))
    for key, better in _displaced(source, schema).items():
        del source[key]
        reason = f"{better} is the newer observation, and only one of the two can be"
        conflicts.append(Conflict(key, None, (), reason))
    return Merged(
        entities=tuple(entities.values()),
        facts=tuple(stated.fact for stated in source.values()),
        source=source,
        conflicts=_in_order(conflicts),
        stale=frozenset(key for key in source if _is_stale(told[key], silent)) if silent else NONE,
        complete=bool(views) and all(view.complete for view in views),
    )


def touched(before: View, after: View) -> tuple[set[FactKey], set[str]]:
    """The facts and the entities of which a collector says something else, or says it again."""
    facts, entities = before.facts, before.entities
    return (
        {key for key, stated in after.facts.items() if facts.get(key) is not stated}
        | (facts.keys() - after.facts.keys()),
        {name for name, told in after.entities.items() if entities.get(name) is not told}
        | (entities.keys() - after.entities.keys()),
    )


def merge_again(
    before: Merged,
    views: Iterable[View],
    facts: Collection[FactKey],
    entities: Collection[str],
    silent: Collection[str] = (),
    schema: Schema = SCHEMA,
) -> Merged | None:
    """The views as one network, as `merge` has it, from what they were before some facts and
    entities were touched; facts may come in another order. None where too much may be different:
    an entity is new, gone or of another kind, or a fact may displace another.
    """
    views = list(views)
    named = _again(before.entities, views, entities, schema)
    if named is None or any(schema.fact[key.predicate].exclusive is not None for key in facts):
        return None
    source, stale = dict(before.source), set(before.stale)
    conflicts = [conflict for conflict in before.conflicts if conflict.fact not in facts]
    for key in facts:
        versions = [view.facts[key] for view in views if key in view.facts]
        versions.sort(key=_age, reverse=True)
        stale.discard(key)
        if not versions:
            source.pop(key, None)
        elif not _fits(key, named, schema):
            conflicts.append(Conflict(key, None, (), MISFIT))
        else:
            source[key] = versions[0]
            conflicts += _disagreements(key, versions, schema)
            if _is_stale(versions, silent):
                stale.add(key)
    return Merged(
        entities=named,
        facts=tuple(stated.fact for stated in source.values()),
        source=source,
        conflicts=_in_order(conflicts),
        stale=frozenset(stale),
        complete=all(view.complete for view in views),
    )


def _again(
    before: Sequence[Entity], views: Sequence[View], names: Collection[str], schema: Schema
) -> tuple[Entity, ...] | None:
    """The entities, some of them told anew; None where any is new, gone or of another kind."""
    after = list(before)
    for name in names:
        place = _place(before, name)
        told = [
            (*view.entities[name][::-1], view.collector) for view in views if name in view.entities
        ]
        if place is None or not told:
            return None
        newest_first = sorted(told, key=lambda one: (one[0], one[2]), reverse=True)
        after[place] = one_entity([entity for _, entity, _ in newest_first], schema)
        if after[place].kind != before[place].kind:
            return None
    return tuple(after)


def _place(entities: Sequence[Entity], name: str) -> int | None:
    """Where an entity stands among entities in the order of their names."""
    place = bisect_left(entities, name, key=lambda entity: entity.id)
    return place if place < len(entities) and entities[place].id == name else None


def _fits(key: FactKey, entities: Sequence[Entity], schema: Schema) -> bool:
    places = [_place(entities, arg) for arg in key.args]
    there = {entities[place].id: entities[place] for place in places if place is not None}
    return any(fitting([Fact(*key)], there, schema))


def _age(stated: Stated) -> tuple[datetime, str]:
    return stated.observed_at, stated.collector


def _is_stale(versions: Iterable[Stated], silent: Collection[str]) -> bool:
    return all(stated.collector in silent for stated in versions)


def _in_order(conflicts: Iterable[Conflict]) -> tuple[Conflict, ...]:
    return tuple(sorted(conflicts, key=lambda c: (c.fact, c.parameter or "", c.reason)))


def _entities(views: Iterable[View], schema: Schema) -> dict[str, Entity]:
    """Every entity as all observations have it, in an order that no arrival changes."""
    told: dict[str, list[tuple[datetime, str, Entity]]] = {}
    for view in views:
        for name, (entity, at) in view.entities.items():
            told.setdefault(name, []).append((at, view.collector, entity))
    found = {}
    for name in sorted(told):
        newest_first = sorted(told[name], key=lambda told: told[:2], reverse=True)
        found[name] = one_entity([entity for _, _, entity in newest_first], schema)
    return found


def one_entity(versions: Sequence[Entity], schema: Schema = SCHEMA) -> Entity:
    """What several say of one entity, those who count more first.

    A kind gives way to one that is more of it: a neighbour knows a reflector only as a router.
    """
    first = versions[0]
    if all(version == first for version in versions):
        return first
    kind = next((v.kind for v in versions if _is_a(v.kind, first.kind, schema)), first.kind)
    of_kind = [version for version in versions if version.kind in {kind, first.kind}]
    stated = {
        name: next((v for version in of_kind if (v := getattr(version, name)) is not None), None)
        for name in ("asn", "label", "position")
    }
    return Entity(first.id, kind, **stated)


def _is_a(kind: str, other: str, schema: Schema) -> bool:
    known = schema.entity.get(kind)
    return known is not None and known.is_a is not None and known.is_a.name == other


def joined(*several: Iterable[Entity], schema: Schema = SCHEMA) -> tuple[Entity, ...]:
    """Entities of several states as those of one, the first of them counting most.

    In the order that `merge` has them in: where nobody reports router ids, it decides last.
    """
    told: dict[str, list[Entity]] = {}
    for entities in several:
        for entity in entities:
            told.setdefault(entity.id, []).append(entity)
    return tuple(one_entity(told[name], schema) for name in sorted(told))


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
    exclusive = [key for key in source if schema.fact[key.predicate].exclusive is not None]
    for key in sorted(exclusive, key=lambda k: (*_age(source[k]), k)):
        place = schema.fact[key.predicate].exclusive
        if place is not None:
            before = newest.get((key.predicate, key.args[place]))
            if before is not None:
                displaced[before] = key
            newest[key.predicate, key.args[place]] = key
    return displaced
