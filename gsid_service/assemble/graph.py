"""From entities, facts and intents, with an approved baseline where there is one, to a `Graph`.

Entity nodes come first, in the order given; then one node per fact, routing facts before intents.
Evidence is worked out elsewhere and handed in, so that this room needs no simulator.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

import numpy as np

from gsid_service.assemble.siblings import Told, siblings, width
from gsid_service.records import (
    EVIDENCE,
    BoolArray,
    Effect,
    Entity,
    Fact,
    FactKey,
    FloatArray,
    Graph,
    IntArray,
)
from gsid_service.schema import SCHEMA, Schema

NOT_APPLICABLE = -1
ENTITY, FACT = 0, 1
Effects = Mapping[tuple[FactKey, str], Effect]
NOT_TRIED: Effects = MappingProxyType({})


def assemble(
    entities: Sequence[Entity],
    facts: Iterable[Fact],
    intents: Iterable[Fact] = (),
    baseline: Iterable[Fact] | None = None,
    evidence: FloatArray | None = None,
    reverts: Effects = NOT_TRIED,
    adoptions: Effects = NOT_TRIED,
    stale: Collection[FactKey] = (),
    exact: bool = False,
    compare: bool = True,
    schema: Schema = SCHEMA,
) -> Graph:
    """The graph of a network.

    `evidence` has a row of counts for each fact and intent; `reverts` what the approved value would
    do in the observed network and `adoptions` the observed one in the approved network, for the
    values with which this was tried. `exact` says that the baseline is the network as it once was,
    and not a copy that may be wrong, `compare` whether to tell how values stand among their
    siblings.
    """
    nodes = tuple(chain(facts, intents))
    keys = tuple(FactKey(fact.predicate, fact.args) for fact in nodes)
    index = {entity.id: i for i, entity in enumerate(entities)}
    row_of = {key: row for row, key in enumerate(keys)}
    features = _features(entities, nodes, schema)
    reference = None
    if baseline is not None:
        reference = _reference(features, len(entities), row_of, baseline, schema)
    edges = _edges(nodes, index)
    told = np.zeros((len(keys), width(schema)), dtype=np.float16)
    if compare:
        told = _siblings(features, reference, edges, len(entities), schema)
    return Graph(
        entities=tuple(index),
        facts=keys,
        features=features,
        reference=reference,
        evidence=np.zeros((len(keys), len(EVIDENCE))) if evidence is None else evidence,
        reverts=_effects(row_of, len(keys), reverts, schema),
        adoptions=_effects(row_of, len(keys), adoptions, schema),
        siblings=told,
        edges=edges,
        stale=_stale(keys, stale),
        exact=exact,
    )


def renewed(
    graph: Graph,
    facts: Mapping[int, Fact],
    evidence: FloatArray,
    stale: Collection[FactKey],
    schema: Schema = SCHEMA,
) -> Graph:
    """The graph of the same facts and intents once those in some rows have other values."""
    features = graph.features.copy()
    _fill_parameters(features[len(graph.entities) :], facts.items(), schema)
    told = _siblings(features, graph.reference, graph.edges, len(graph.entities), schema)
    return replace(
        graph,
        features=features,
        siblings=told,
        evidence=evidence,
        stale=_stale(graph.facts, stale),
    )


def with_effects(
    graph: Graph,
    reverts: Effects,
    adoptions: Effects,
    row_of: Mapping[FactKey, int],
    schema: Schema = SCHEMA,
) -> Graph:
    """The graph with what these reverts and adoptions would do, and no others."""
    rows = len(graph.facts)
    return replace(
        graph,
        reverts=_effects(row_of, rows, reverts, schema),
        adoptions=_effects(row_of, rows, adoptions, schema),
    )


def _edges(facts: Sequence[Fact], index: Mapping[str, int]) -> IntArray:
    """[E, 3]: fact node, entity node, role."""
    ends = [
        (len(index) + i, index[arg], role)
        for i, fact in enumerate(facts)
        for role, arg in enumerate(fact.args)
    ]
    return np.array(ends, dtype=np.int64).reshape(-1, 3)


def _siblings(
    features: FloatArray,
    reference: FloatArray | None,
    edges: IntArray,
    entities: int,
    schema: Schema,
) -> Told:
    before = None if reference is None else reference[entities:]
    return siblings(features[entities:], before, edges - (entities, 0, 0), schema)


def _stale(keys: Sequence[FactKey], stale: Collection[FactKey]) -> BoolArray:
    if not stale:
        return np.zeros(len(keys), dtype=np.bool_)
    return np.array([key in stale for key in keys], dtype=np.bool_)


def _features(entities: Sequence[Entity], facts: Sequence[Fact], schema: Schema) -> FloatArray:
    table = np.full((len(entities) + len(facts), schema.width), NOT_APPLICABLE, dtype=np.float64)
    table[:, schema.INDEX] = np.arange(len(table))
    table[: len(entities), schema.KIND] = ENTITY
    table[len(entities) :, schema.KIND] = FACT
    columns = [schema.entity[entity.kind].column for entity in entities]
    table[np.arange(len(entities)), columns] = 1
    rows = table[len(entities) :]
    rows[:, schema.PREDICATE] = [schema.fact[fact.predicate].code for fact in facts]
    rows[:, schema.HOLDS] = [fact.holds for fact in facts]
    _fill_parameters(rows, enumerate(facts), schema)
    return table


def _fill_parameters(rows: FloatArray, facts: Iterable[tuple[int, Fact]], schema: Schema) -> None:
    """Values as reported, and the protocol's default where a parameter was left out."""
    kinds: dict[str, list[tuple[int, Mapping[str, int]]]] = {}
    for row, fact in facts:
        if schema.fact[fact.predicate].parameters:
            kinds.setdefault(fact.predicate, []).append((row, fact.params))
    for predicate, found in kinds.items():
        at = [row for row, _ in found]
        for parameter in schema.fact[predicate].parameters:
            default = NOT_APPLICABLE if parameter.default is None else parameter.default
            rows[at, parameter.column] = [p.get(parameter.name, default) for _, p in found]


def _reference(
    features: FloatArray,
    entities: int,
    row_of: Mapping[FactKey, int],
    baseline: Iterable[Fact],
    schema: Schema,
) -> FloatArray:
    """The same nodes with the baseline's values; a fact that it does not have has none."""
    reference = features.copy()
    rows = reference[entities:]
    rows[:, [p.column for p in schema.parameters]] = NOT_APPLICABLE
    known = [(row, fact) for fact in baseline if (row := row_of.get(fact.key)) is not None]
    _fill_parameters(rows, known, schema)
    return reference


def _effects(
    row_of: Mapping[FactKey, int], rows: int, effects: Effects, schema: Schema
) -> FloatArray:
    table = np.zeros((rows, len(schema.monitored), 1 + len(Effect._fields)), dtype=np.float64)
    column = {parameter.name: i for i, parameter in enumerate(schema.monitored)}
    for (key, parameter), effect in effects.items():
        table[row_of[key], column[parameter]] = 1, *effect
    return table
