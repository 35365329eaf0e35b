"""What was worked out last, by network: as much as there is room for, the oldest goes first."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A cache with a bound on the sum of sizes; what is lost only costs time."""

    def __init__(self, room: int) -> None:
        self.room, self.taken = room, 0
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, name: Hashable) -> T | None:
        with self._turn:
            if name not in self._kept:
                return None
            self._kept.move_to_end(name)
            return self._kept[name][0]

    def take(self, name: Hashable) -> T | None:
        """The same, which is not kept any longer: whoever takes it can let it go."""
        with self._turn:
            what = self._kept[name][0] if name in self._kept else None
            self._drop(name)
            return what

    def put(self, name: Hashable, what: T, size: int) -> None:
        """Keep something instead of what was known; nothing that is larger than all the room."""
        with self._turn:
            self._drop(name)
            if size > self.room:
                return
            self._kept[name] = what, size
            self.taken += size
            while self.taken > self.room:
                self._drop(next(iter(self._kept)))

    def drop(self, name: Hashable) -> None:
        with self._turn:
            self._drop(name)

    def _drop(self, name: Hashable) -> None:
        _, size = self._kept.pop(name, (None, 0))
        self.taken -= size
