"""Siblings: how each value stands among those of the facts that name the same entity.

Routes to one network, or links of one router, are designed together: values that all of them share,
a route that is like another one but for one value. Nothing but equality and order is told, so that
no scale and no name has a part in it.
"""

from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

import numpy as np
import numpy.typing as npt

from gsid_service.records import FloatArray, IntArray
from gsid_service.schema import SCHEMA, FactKind, Order, Parameter, Schema

NOT_APPLICABLE = -1
PER_ROLE = 4  # same, lower, twins, all but twins
Told = npt.NDArray[np.float16]


def width(schema: Schema = SCHEMA) -> int:
    """The number of columns of `siblings`."""
    return sum(len(kind.roles) * (1 + 2 * PER_ROLE) + 4 for kind, _ in _monitored(schema))


def siblings(
    values: FloatArray, reference: FloatArray | None, edges: IntArray, schema: Schema = SCHEMA
) -> Told:
    """[F, columns], from the features of all facts and of their reference; edges lead from facts.

    For each monitored parameter: in each role how many others there are, as a logarithm; then of
    the observed values and of the reference's, how many others have the same value, which share has
    a lower one, how many are the same in every parameter, and how many in every one but this;
    and the share of the whole network's values that are lower. Then how many of the others that
    name one of its entities have the value to which most of these changed: where this one has it,
    too, and where it has another.
    """
    told = np.zeros((len(values), width(schema)), dtype=np.float16)
    entity_of = _entities(edges, len(values), schema)
    column = 0
    for kind, parameter in _monitored(schema):
        rows = np.flatnonzero(values[:, parameter.column] != NOT_APPLICABLE)
        for role in range(len(kind.roles)):
            entity = entity_of[rows, role]
            told[rows, column] = np.log1p(np.bincount(entity)[entity] - 1) if len(rows) else 0
            column += 1
        for table in (values, reference):
            if table is not None:
                there = rows[table[rows, parameter.column] != NOT_APPLICABLE]
                found = _among(table[there], entity_of[there], kind, parameter)
                told[there, column : column + found.shape[1]] = found
            column += len(kind.roles) * PER_ROLE + 1
        if reference is not None:
            now, before = (table[rows, parameter.column] for table in (values, reference))
            named = entity_of[rows, : len(kind.roles)]
            told[rows, column : column + 2] = _moved_together(now, before, named)
        column += 2
    return told


def _monitored(schema: Schema) -> Iterator[tuple[FactKind, Parameter]]:
    return ((kind, p) for kind in schema.facts for p in kind.parameters if p.monitored)


def _entities(edges: IntArray, facts: int, schema: Schema) -> IntArray:
    """[F, roles]: the entity in each role of each fact."""
    found = np.zeros((facts, max(len(kind.roles) for kind in schema.facts)), dtype=np.int64)
    fact, entity, role = edges.T
    found[fact, role] = entity
    return found


def _among(
    table: FloatArray, entity_of: IntArray, kind: FactKind, parameter: Parameter
) -> FloatArray:
    """[facts, columns]: how the values of one parameter stand."""
    value = _numbered(table[:, [parameter.column]])
    compared = [p.column for p in kind.parameters if p.order is not Order.IDENTITY]
    alike = _numbered(table[:, compared])
    rest = _numbered(table[:, [c for c in compared if c != parameter.column]])
    columns = []
    for role in range(len(kind.roles)):
        entity = entity_of[:, role]
        same, lower = _standing(entity, value)
        twins = _together(entity, alike) - 1
        but_one = _together(entity, rest) - 1 - twins
        columns += [np.log1p(same), lower, np.log1p(twins), np.log1p(but_one)]
    everywhere = np.zeros_like(value)
    return np.stack((*columns, _standing(everywhere, value)[1]), axis=1)


def _numbered(table: FloatArray) -> IntArray:
    """[rows]: numbers in the order of the first column, the same for the same rows only."""
    number = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        _, place = np.unique(column, return_inverse=True)
        pair = number * (1 + place.max(initial=0)) + place
        number = np.unique(pair, return_inverse=True)[1].reshape(-1)
    return number


def _together(entity: IntArray, number: IntArray) -> IntArray:
    """[rows]: how many rows have the same entity and the same number, this one included."""
    pair = entity * (1 + number.max(initial=0)) + number
    _, place, count = np.unique(pair, return_inverse=True, return_counts=True)
    return np.asarray(count[place.reshape(-1)])


def _standing(entity: IntArray, value: IntArray) -> tuple[IntArray, FloatArray]:
    """[rows]: how many others of an entity have the same value, and which share a lower one."""
    pair = entity * (1 + value.max(initial=0)) + value
    order = np.argsort(pair, kind="stable")
    ordered, owner = pair[order], entity[order]
    first = np.searchsorted(ordered, pair)
    same = np.searchsorted(ordered, pair, side="right") - first - 1
    begin = np.searchsorted(owner, entity)
    others = np.searchsorted(owner, entity, side="right") - begin - 1
    return same, (first - begin) / np.maximum(others, 1)


def _moved_together(now: FloatArray, before: FloatArray, entity_of: IntArray) -> FloatArray:
    """[rows, 2]: the share of an entity's other facts that have the value to which most of them
    changed, if this one has it, and if not; of several entities, the largest share of each.

    A router that is drained has all its links at one cost, and one that is not among them stands
    out.
    """
    found = np.zeros((len(now), 2))
    differs = (now != before) & (before != NOT_APPLICABLE)
    rows_of: dict[int, list[int]] = {entity: [] for entity in entity_of[differs].ravel().tolist()}
    for row in np.flatnonzero(np.isin(entity_of, list(rows_of)).any(axis=1)).tolist():
        for entity in entity_of[row].tolist():
            if entity in rows_of:
                rows_of[entity].append(row)
    for rows in rows_of.values():
        has = Counter(now[rows].tolist())
        changed = Counter(now[row] for row in rows if differs[row])
        leading = nlargest(2, ((n, value) for value, n in changed.items()))
        for row in rows:
            value, own = now[row], int(differs[row])
            most, common = max((n - own * (v == value), v) for n, v in leading)
            if most and len(rows) > 1:
                joined = value == common
                share = (has[common] - joined) / (len(rows) - 1)
                column = 0 if joined else 1
                found[row, column] = max(found[row, column], share)
    return found
