"""The spool: snapshots wait here, on disk, until the service has acknowledged them.

It also hands out the sequence numbers, in the transaction that keeps a snapshot, so that neither a
crash nor a restart repeats one. It is bounded: where it is full, the oldest complete view that a
newer one of the same router replaces is dropped, with the changes that rest on it.
"""

import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

TABLES = """
CREATE TABLE IF NOT EXISTS sequence (router TEXT PRIMARY KEY, last INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    router TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS by_router ON waiting (router, sequence);
"""
# The oldest snapshots that a complete one of the same router replaces, up to the next complete one.
REPLACED = """
SELECT router, min(c.sequence) FROM waiting AS c
WHERE complete AND EXISTS (
    SELECT 1 FROM waiting AS older WHERE older.router = c.router AND older.sequence < c.sequence
)
GROUP BY router
ORDER BY (SELECT min(number) FROM waiting AS first WHERE first.router = c.router)
LIMIT 1
"""


class Waiting(NamedTuple):
    """A snapshot that is to be sent."""

    number: int
    router: str
    sequence: int
    body: bytes


class Spool:
    """One file; safe for several threads."""

    def __init__(self, file: Path, at_most: int, first: Callable[[], int]) -> None:
        """`first` gives the sequence of a router that was never heard of, here at least."""
        self.at_most, self.first = at_most, first
        self._lock = threading.Lock()
        self._database = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(TABLES)

    def put(self, router: str, complete: bool, body: Callable[[int], bytes]) -> int:
        """Keep the snapshot that `body` makes of its sequence; how many others were dropped."""
        with self._lock, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            sequence = self._next(router)
            self._database.execute(
                "INSERT INTO waiting (router, sequence, complete, body) VALUES (?, ?, ?, ?)",
                (router, sequence, complete, body(sequence)),
            )
            return self._make_room()

    def _next(self, router: str) -> int:
        row = self._one("SELECT last FROM sequence WHERE router = ?", router)
        sequence = self.first() if row is None else int(row[0]) + 1
        self._database.execute(
            "INSERT INTO sequence VALUES (?, ?) ON CONFLICT DO UPDATE SET last = excluded.last",
            (router, sequence),
        )
        return sequence

    def _make_room(self) -> int:
        dropped = 0
        while self._bytes() > self.at_most:
            row = self._one(REPLACED)
            if row is None:
                break
            dropped += self._database.execute(
                "DELETE FROM waiting WHERE router = ? AND sequence < ?", row
            ).rowcount
        return dropped

    def oldest(self) -> Waiting | None:
        with self._lock:
            row = self._one(
                "SELECT number, router, sequence, body FROM waiting ORDER BY number LIMIT 1"
            )
        return None if row is None else Waiting(*row)

    def remove(self, number: int) -> None:
        with self._lock:
            self._database.execute("DELETE FROM waiting WHERE number = ?", (number,))

    def has(self, router: str) -> bool:
        with self._lock:
            return self._one("SELECT 1 FROM waiting WHERE router = ? LIMIT 1", router) is not None

    @property
    def full(self) -> bool:
        with self._lock:
            return self._bytes() > self.at_most

    def size(self) -> tuple[int, int]:
        """How many wait, and their bytes."""
        with self._lock:
            row = self._one("SELECT count(*) FROM waiting")
            return int(row[0]) if row else 0, self._bytes()

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def _bytes(self) -> int:
        row = self._one("SELECT coalesce(sum(length(body)), 0) FROM waiting")
        return int(row[0]) if row else 0

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._database.execute(query, values).fetchone()
        return row
