"""Work that tests watch: what ran, in which order, and what was under way at the same time."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from gsid_service.jobs import Work
from gsid_service.store.database import Database


@dataclass
class Sent:
    """A sender with so many messages left, each of which takes a moment."""

    left: int = 0
    resumed: int = 0
    sent: int = 0
    seconds: float = 0.0

    def resume(self) -> None:
        self.resumed += 1

    def step(self) -> float:
        if not self.left:
            return 5.0
        time.sleep(self.seconds)
        self.left -= 1
        self.sent += 1
        return 0.0


@dataclass
class Recorded:
    """Notes every job; `during` runs in each round."""

    during: Callable[[str], None] = lambda _: None
    rounds: list[str] = field(default_factory=list)
    swept: int = 0
    forgotten: int = 0
    looked: int = 0
    behind: list[str] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    senders: dict[str, Sent] = field(default_factory=dict)
    at_once: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0  # of one network
    lock: threading.Lock = field(default_factory=threading.Lock)

    def score(self, network: str) -> None:
        with self.lock:
            self.at_once[network] += 1
            self.most_at_once = max(self.most_at_once, self.at_once[network])
        try:
            self.during(network)
        finally:
            with self.lock:
                self.at_once[network] -= 1
                self.rounds.append(network)

    def sweep(self) -> None:
        self.swept += 1

    def forget(self) -> None:
        self.forgotten += 1

    def look(self) -> float:
        self.looked += 1
        return 30.0

    def work(self, sweep_seconds: float = 3600) -> Work:
        return Work(
            score=self.score,
            sweep=self.sweep,
            forget=self.forget,
            sweep_seconds=lambda: sweep_seconds,
            look=self.look,
            senders=self.senders,
            behind=lambda: list(self.behind),
            due=lambda: list(self.due),
        )


def cut(database: Database) -> None:
    """End all connections, as a restart of the server does."""
    name = database.engine.url.database or ""
    with psycopg.connect(database.place.replace(f"/{name}", "/postgres"), autocommit=True) as own:
        asked = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        own.execute(asked, (name,))
