"""From what a router sees to its view as the service keeps it, and what changed between two."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gsid_service.collect.classes import NONE, Destination, Grouping
from gsid_service.collect.source import Route, Sight
from gsid_service.collect.tables import Column, Tables
from gsid_service.records import Entity, Fact, FactKey
from gsid_service.schema import (
    AS_PATH_LENGTH,
    BGP_ROUTE,
    FWD,
    LOCAL_PREF,
    MED,
    NETWORK,
    ORIGIN,
    SPEAKER,
)


@dataclass(frozen=True)
class View:
    """Entities by id and facts by key, as one collector states them."""

    role: str
    entities: Mapping[str, Entity] = field(default_factory=dict)
    facts: Mapping[FactKey, Fact] = field(default_factory=dict)


class Changes(NamedTuple):
    """What a snapshot says."""

    entities: list[Entity]
    facts: list[Fact]
    withdrawn: list[FactKey]

    def __bool__(self) -> bool:
        return any(self)


def view_of(router: str, sight: Sight, tables: Tables, grouping: Grouping) -> View:
    """A router's view, with its routes and next hops by destination."""
    entities = {entity.id: entity for entity in sight.entities}
    facts = list(sight.facts)
    for destination, number in _values(tables.columns[router].routes, grouping):
        entities[destination.id] = _network(destination)
        facts += [_stated(route, destination) for route in tables.routes(number)]
    for destination, number in _values(tables.columns[router].hops, grouping):
        entities[destination.id] = _network(destination)
        facts += [
            Fact(FWD.name, (sight.router, destination.id, hop))
            for hop in tables.hops(number)
            if hop in entities
        ]
    return View(sight.role, entities, {fact.key: fact for fact in facts})


def _values(column: Column, grouping: Grouping) -> Iterable[tuple[Destination, int]]:
    """Each destination with the values that its prefixes have in a column."""
    labels = grouping.labels[: len(column)]
    there = (labels != NONE) & (column != 0)
    size = 1 + int(column.max(initial=0))
    for pair in np.unique(labels[there] * size + column[there]).tolist():
        destination, number = divmod(pair, size)
        yield grouping.destinations[destination], number


def _network(destination: Destination) -> Entity:
    return Entity(destination.id, NETWORK.name, label=destination.label)


def _stated(route: Route, destination: Destination) -> Fact:
    """What is not set is left out, and by that known as such."""
    params = {
        LOCAL_PREF.name: route.local_pref,
        AS_PATH_LENGTH.name: route.as_path_length,
        ORIGIN.name: route.origin,
        MED.name: route.med,
        SPEAKER.name: route.speaker,
    }
    known = {name: value for name, value in params.items() if value is not None}
    return Fact(BGP_ROUTE.name, (route.peering, destination.id), known)


def everything(view: View) -> Changes:
    return Changes(list(view.entities.values()), list(view.facts.values()), [])


def changes(before: View, after: View) -> Changes:
    """What differs, with the entities that the facts of it name."""
    facts = [fact for key, fact in after.facts.items() if before.facts.get(key) != fact]
    named = {arg for fact in facts for arg in fact.args}
    entities = [
        entity
        for name, entity in after.entities.items()
        if name in named or before.entities.get(name) != entity
    ]
    return Changes(entities, facts, [key for key in before.facts if key not in after.facts])
