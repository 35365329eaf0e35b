"""Every router's routes and next hops, as columns of numbers over one numbering of prefixes.

A full table is a million rows, and four gateways have four. As columns they take a few bytes a row,
whatever the sources handed over.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gsid_service.collect.source import Route

Column = npt.NDArray[np.int32]  # by number of prefix; 0 where there is nothing


class Columns(NamedTuple):
    """One router's."""

    routes: Column
    hops: Column


@dataclass
class Numbers:
    """Values and their numbers, in the order in which they came; 0 is no value."""

    of: dict[Hashable, int] = field(default_factory=dict)
    values: list[Hashable] = field(default_factory=lambda: [None])

    def __getitem__(self, value: Hashable) -> int:
        number = self.of.get(value)
        if number is None:
            number = self.of[value] = len(self.values)
            self.values.append(value)
        return number


class Tables:
    """What all routers of a site say of prefixes."""

    def __init__(self) -> None:
        self.prefixes = Numbers()
        self.columns: dict[str, Columns] = {}
        self._routes, self._hops = Numbers(), Numbers()

    def put(
        self,
        router: str,
        routes: Mapping[str, tuple[Route, ...]],
        hops: Mapping[str, tuple[str, ...]],
    ) -> None:
        """Take what a router says now, in place of what it said before."""
        self.columns[router] = Columns(
            self._column(routes.items(), self._routes), self._column(hops.items(), self._hops)
        )

    def _column(self, rows: Iterable[tuple[str, Hashable]], numbers: Numbers) -> Column:
        pairs = np.fromiter(
            ((self.prefixes[prefix], numbers[value]) for prefix, value in rows),
            dtype=np.dtype((np.int32, 2)),
        )
        column = np.zeros(len(self.prefixes.values), dtype=np.int32)
        column[pairs[:, 0]] = pairs[:, 1]
        return column

    def matrix(self, *, hops: bool = False) -> npt.NDArray[np.int32]:
        """[prefixes, routers]: the routes or the next hops, with a first row for no prefix."""
        matrix = np.zeros((len(self.prefixes.values), len(self.columns)), dtype=np.int32)
        for at, name in enumerate(sorted(self.columns)):
            column = self.columns[name].hops if hops else self.columns[name].routes
            matrix[: len(column), at] = column
        return matrix

    def prefix(self, number: int) -> str:
        return str(self.prefixes.values[number])

    def routes(self, number: int) -> tuple[Route, ...]:
        found = self._routes.values[number]
        return found if isinstance(found, tuple) else ()

    def hops(self, number: int) -> tuple[str, ...]:
        found = self._hops.values[number]
        return found if isinstance(found, tuple) else ()
