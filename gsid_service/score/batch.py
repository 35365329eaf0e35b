"""From graphs to one `Batch` of tensors: a disjoint union, laid out for fast attention.

Entities of all graphs come first, then their facts, those with the most roles first. Every fact
has exactly one entity in each of its roles, so the facts that have role τ are simply the first
ones, and an edge is no more than a fact and the entity that it names.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gsid_service.assemble.scale import Numbers, Scaled, scale
from gsid_service.records import EVIDENCE, OUTCOMES, Effect, FloatArray, Graph, IntArray
from gsid_service.schema import SCHEMA, Group, Schema

OUTCOMES_AT = [EVIDENCE.index(f"observed {outcome}") for outcome in OUTCOMES]
AT_ONCE = 1 << 15  # facts that are counted together, which bounds the memory
BLOCK = 1024  # rows that are worked on together: what is made of them stays in a core's cache
PART = 1 << 13  # edges of a large network that are worked on before the next ones


class Block(NamedTuple):
    """Edges that follow on one another: of one role, or of several if they are few."""

    at: slice  # which edges
    roles: list[int]
    rows: list[slice]  # the facts in each of these roles
    sizes: list[int]  # how many these are
    seat: Tensor


class Part(NamedTuple):
    """Edges of one role: all that lead to some of its seats, so that these hear from no others."""

    role: slice  # this one alone
    facts: Tensor  # [edges], those that the edges lead from
    edges: "Edges"  # in which these facts count from 0


@dataclass(frozen=True)
class Edges:
    """The edges of all roles, one role after the other.

    Role τ has `facts[τ]` edges, of the first that many facts, and `entities[τ]` *seats*: one for
    each entity that stands in it. Edge i leads from its fact to seat `seat[i]`, where entity
    `sitting[seat[i]]` is.
    """

    facts: tuple[int, ...]
    entities: tuple[int, ...]
    seat: Tensor  # [edges]
    sitting: Tensor  # [seats]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All edges once, cut wherever a block is full."""
        starts = range(0, len(self.seat), BLOCK)
        return tuple(self._block(start, min(start + BLOCK, len(self.seat))) for start in starts)

    @property
    def is_large(self) -> bool:
        """Whether a table of all edges is so much memory that they are better taken by parts."""
        return len(self.seat) > PART

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """All edges once, cut between seats; one with very many edges is a part of its own."""
        return tuple(part for role in range(len(self.facts)) for part in self._parts(role))

    def _parts(self, role: int) -> Iterator[Part]:
        first, before = sum(self.facts[:role]), sum(self.entities[:role])
        seats, facts = self.seat[first : first + self.facts[role]].sort(stable=True)
        ends = np.append(0, np.cumsum(np.bincount(seats.numpy() - before)))  # of each seat's edges
        low = 0
        while low < self.entities[role]:
            high = max(low + 1, int(np.searchsorted(ends, ends[low] + PART, side="right")) - 1)
            at, size = slice(int(ends[low]), int(ends[high])), int(ends[high] - ends[low])
            sitting = self.sitting[before + low : before + high]
            edges = Edges((size,), (high - low,), seats[at] - (before + low), sitting)
            yield Part(slice(role, role + 1), facts[at], edges)
            low = high

    def _block(self, start: int, stop: int) -> Block:
        roles, rows, first = [], [], 0
        for role, count in enumerate(self.facts):
            part = slice(max(start - first, 0), min(stop - first, count))
            if part.start < part.stop:
                roles.append(role)
                rows.append(part)
            first += count
        sizes = [part.stop - part.start for part in rows]
        return Block(slice(start, stop), roles, rows, sizes, self.seat[start:stop])


@dataclass(frozen=True)
class Batch:
    """Several graphs as one."""

    categories: Tensor  # [N, C] rows of the lookup table; 0 where not applicable
    value: Tensor  # [F, P] scaled
    applies: Tensor  # [F, P]
    reference: Tensor  # [F, P] scaled
    has_reference: Tensor  # [F, P]
    equal: Tensor  # [F, P]
    exchanged: Tensor  # [F, P]
    mistyped: Tensor  # [F, P]
    changed: Tensor  # [F, P]
    changes: Tensor  # [F, P]
    alike: Tensor  # [F, P]
    alone: Tensor  # [F, P]
    slips: Tensor  # [F, P]
    others: Tensor  # [F, P]
    shared: Tensor  # [F, P]
    siblings: Tensor  # [F, S] of half precision
    evidence: Tensor  # [F, 2C] of C counts: the logarithm of each, and whether it is above 0
    edges: Edges
    read: Tensor  # the facts that have a parameter
    read_edges: Edges  # theirs alone
    kept: Tensor  # the nodes that the last step hears or reads: all entities and these facts
    order: IntArray  # [F] where each fact was before they were sorted by their number of roles

    @property
    def entities(self) -> int:
        return len(self.categories) - len(self.value)


class Vocabulary:
    """Which lookup columns there are, and the rows that their values have in one common table."""

    def __init__(self, schema: Schema = SCHEMA) -> None:
        codes = 1 + max(fact.code for fact in schema.facts)
        sizes = {schema.KIND: 2, schema.PREDICATE: codes, schema.HOLDS: 2}
        # Node index and speaker identify; nothing may be learned from them.
        sizes |= {
            p.column: p.high + 1 for p in schema.parameters if not p.monitored and p.high < 256
        }
        sizes |= {entity.column: 2 for entity in schema.entities}
        self.columns = sorted(sizes)
        widths = [sizes[column] for column in self.columns]
        self.offsets = 1 + np.cumsum([0, *widths[:-1]])
        self.size = 1 + sum(widths)

    def rows(self, graph: Graph) -> IntArray:
        """[N, C]: for each node and column the row of the table, 0 where it does not apply."""
        rows = graph.features[:, self.columns].astype(np.int64)
        there = rows >= 0
        rows += self.offsets
        rows *= there
        return rows


def collate(graphs: Sequence[Graph], vocabulary: Vocabulary, schema: Schema = SCHEMA) -> Batch:
    """The union of the graphs."""
    entities = np.array([len(graph.entities) for graph in graphs])
    first_entity = np.cumsum(entities) - entities
    roles = max(len(kind.roles) for kind in schema.facts)
    named = [_arguments(g, o, roles) for g, o in zip(graphs, first_entity, strict=True)]
    args = np.concatenate(named)
    order = np.argsort(-(args >= 0).sum(axis=1), kind="stable")
    scaled = {
        name: torch.from_numpy(np.concatenate(tables)[order].astype(np.float32))
        for name, tables in zip(
            Scaled._fields, zip(*(scale(g, schema) for g in graphs), strict=True), strict=True
        )
    }
    read = np.flatnonzero(scaled["applies"].numpy().any(axis=1))
    heads = entities.sum()
    return Batch(
        categories=torch.from_numpy(_categories(graphs, vocabulary, order)),
        **scaled,
        siblings=torch.from_numpy(np.concatenate([g.siblings for g in graphs])[order]),
        evidence=torch.from_numpy(_counts(graphs, order, schema)),
        edges=_edges(args[order]),
        read=torch.from_numpy(read),
        read_edges=_edges(args[order[read]]),
        kept=torch.from_numpy(np.append(np.arange(heads), heads + read)),
        order=order,
    )


def _categories(graphs: Sequence[Graph], vocabulary: Vocabulary, order: IntArray) -> IntArray:
    """[N, C]: the rows of all entities, then those of all facts in their order."""
    found = [vocabulary.rows(graph) for graph in graphs]
    parts = [np.split(rows, [len(g.entities)]) for rows, g in zip(found, graphs, strict=True)]
    heads, facts = zip(*parts, strict=True)
    return np.concatenate((*heads, np.concatenate(facts)[order]))


def _counts(graphs: Sequence[Graph], order: IntArray, schema: Schema) -> Numbers:
    """[F, 2C]: what is known of a fact beside its values, of all intents, and of the reference:
    the logarithm of each count, and whether it is above 0."""
    found = np.empty((len(order), 2 * counts(schema)), dtype=np.float32)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    for graph in graphs:
        here, place = np.split(place, [len(graph.facts)])
        common = _common(graph, schema)
        for low in range(0, len(here), AT_ONCE):
            rows = slice(low, low + AT_ONCE)
            counted = _counted(graph, rows, common)
            found[here[rows]] = np.hstack((np.log1p(counted), counted > 0))
    return found


def _common(graph: Graph, schema: Schema) -> FloatArray:
    """The counts that all facts of a graph share."""
    is_intent = [schema.fact[key.predicate].group is Group.INTENT for key in graph.facts]
    return np.append(graph.evidence[is_intent][:, OUTCOMES_AT].sum(axis=0), graph.exact)


def _counted(graph: Graph, rows: slice, common: FloatArray) -> FloatArray:
    """[rows, C]: the counts of some facts."""
    said = graph.evidence[rows]
    columns = math.prod(graph.reverts.shape[1:])
    tried = (table[rows].reshape(-1, columns) for table in (graph.reverts, graph.adoptions))
    return np.hstack((said, *tried, np.broadcast_to(common, (len(said), len(common)))))


def counts(schema: Schema) -> int:
    """C, how many counts a fact has."""
    tried = len(schema.monitored) * (1 + len(Effect._fields))
    return len(EVIDENCE) + 2 * tried + len(OUTCOMES_AT) + 1


def _arguments(graph: Graph, offset: int, roles: int) -> IntArray:
    """[F, roles]: the entity in each role of each fact, -1 for none."""
    args = np.full((len(graph.facts), roles), -1, dtype=np.int64)
    fact, entity, role = graph.edges.T
    args[fact - len(graph.entities), role] = entity + offset
    return args


def _edges(args: IntArray) -> Edges:
    """From the entity in each role of each fact, -1 for none, facts with more roles first."""
    facts: list[int] = []
    entities: list[int] = []
    seats, sitting = [], []
    for role in args.T:
        unique, seat = np.unique(role[role >= 0], return_inverse=True)
        seats.append(seat.reshape(-1) + sum(entities))
        sitting.append(unique)
        facts.append(len(seat))
        entities.append(len(unique))
    return Edges(
        tuple(facts),
        tuple(entities),
        torch.from_numpy(np.concatenate(seats)),
        torch.from_numpy(np.concatenate(sitting)),
    )
