"""Destinations: each prefix by itself, or, where there are many, those alike as one class.

Prefixes are alike where every gateway hears them with the same attributes from the same peerings.
From one grouping to the next a class keeps its id with most of its prefixes, so that a class that
splits or joins others remains the class that it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gsid_service.collect.tables import Tables

Labels = npt.NDArray[np.int64]  # the class of each prefix, by number; NONE where nobody hears it
NONE = -1
EXAMPLES = 3


class Destination(NamedTuple):
    """What stands for one or more prefixes in facts."""

    id: str
    size: int
    first: int  # the number of one of its prefixes
    label: str | None = None


@dataclass(frozen=True, eq=False)
class Grouping:
    """Destinations, and which of them each prefix belongs to."""

    destinations: tuple[Destination, ...]
    labels: Labels  # [prefixes]

    def members(self, destination: int) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self.labels == destination)


def singly(tables: Tables) -> Grouping:
    """Every prefix that somebody hears or forwards is a destination by its own name."""
    used = tables.matrix().any(axis=1) | tables.matrix(hops=True).any(axis=1)
    heard = np.flatnonzero(used)
    labels = np.full(len(tables.prefixes.values), NONE)
    labels[heard] = np.arange(len(heard))
    return Grouping(tuple(Destination(tables.prefix(n), 1, n) for n in heard.tolist()), labels)


def alike(tables: Tables, before: Grouping | None) -> Grouping:
    """Prefixes with the same routes at every router are one destination."""
    labels = _labels(tables.matrix())
    heard = labels != NONE
    order = np.argsort(labels[heard], kind="stable")
    members, sizes = np.flatnonzero(heard)[order], np.bincount(labels[heard])
    starts = np.cumsum(sizes) - sizes
    groups = [members[s : s + n] for s, n in zip(starts, sizes, strict=True)]
    kept = {} if before is None else _kept(before, labels)
    taken = set(kept.values())
    found = []
    for group, numbers in enumerate(groups):
        name = kept.get(group) or next(n for n in _names(tables, numbers) if n not in taken)
        taken.add(name)
        found.append(Destination(name, len(numbers), int(numbers[0]), _label(tables, numbers)))
    return Grouping(tuple(found), labels)


def _labels(matrix: npt.NDArray[np.int32]) -> Labels:
    """Equal rows have equal labels, in the order in which they first come; rows of zeros none."""
    rows, size = matrix.tobytes(), matrix.shape[1] * matrix.itemsize
    numbers = {bytes(size): NONE}
    return np.fromiter(
        (
            numbers.setdefault(rows[at : at + size], len(numbers) - 1)
            for at in range(0, len(rows), size)
        ),
        dtype=np.int64,
        count=len(matrix),
    )


def _kept(before: Grouping, labels: Labels) -> dict[int, str]:
    """The groups that go on under an id of before: the most prefixes in common decide, and between
    equal parts of a class the one with its first prefix."""
    old, new = before.labels, labels[: len(before.labels)]
    both = (old != NONE) & (new != NONE)
    groups = 1 + int(labels.max(initial=0))
    pairs, shared = np.unique(old[both] * groups + new[both], return_counts=True)
    was, group = np.divmod(pairs, groups)
    firsts = np.array([d.first for d in before.destinations], dtype=np.int64)
    kept: dict[int, str] = {}
    used: set[int] = set()
    for place in np.lexsort((labels[firsts[was]] != group, -shared)):
        if was[place] not in used and group[place] not in kept:
            kept[int(group[place])] = before.destinations[was[place]].id
            used.add(was[place])
    return kept


def _names(tables: Tables, numbers: npt.NDArray[np.int64]) -> Iterator[str]:
    """Names for a new class: one of its prefixes, and a plus for all that are like it."""
    for number in numbers:
        yield f"{tables.prefix(number)}+"
    # All of them name other classes already, which they have left.
    for attempt in range(2, 2 + len(tables.prefixes.values)):
        yield f"{tables.prefix(numbers[0])}+{attempt}"


def _label(tables: Tables, numbers: npt.NDArray[np.int64]) -> str:
    shown = ", ".join(tables.prefix(number) for number in numbers[:EXAMPLES])
    return f"{len(numbers):,} prefixes such as {shown}" if len(numbers) > 1 else shown
