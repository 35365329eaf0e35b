"""Waking whoever does the work: what jobs run, and what a queue of them can be asked.

A job is a wake-up and nothing more. What there is to do is in the store: news of networks that no
cycle has dealt with, messages that are due. So a job that is lost costs time and no work.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class Sender(Protocol):
    """Sends what waits for one receiver."""

    def resume(self) -> None:
        """Learn how the receiver was when anybody last sent something."""

    def step(self) -> float:
        """Try one message; seconds to wait before the next."""
        ...


class Away(RuntimeError):
    """What a job needs is away, and may come back; so it waits for its turn again."""


@dataclass(frozen=True, slots=True)
class Work:
    """What jobs run; the same in one process and in many."""

    score: Callable[[str], None]  # a round for one network; may raise `Away`
    sweep: Callable[[], None]  # what time alone asks for
    forget: Callable[[], None]  # what is too old
    sweep_seconds: Callable[[], float]  # how often
    look: Callable[[], float]  # for something to tell; seconds until the next look
    senders: Mapping[str, Sender]  # by receiver
    behind: Callable[[], Collection[str]]  # networks with news
    due: Callable[[], Collection[str]]  # receivers that a message can be sent to


class Jobs(Protocol):
    """Wakes work, now or in another process; what is asked for twice before it begins runs once."""

    @property
    def shared(self) -> bool:
        """Whether other processes work on the same store."""
        ...

    @property
    def alive(self) -> bool: ...
    def start(self, work: Work) -> None: ...
    def stop(self) -> None:
        """Finish what is under way, and begin nothing more."""
        ...

    def score(self, networks: Iterable[str]) -> None: ...
    def deliver(self, receivers: Iterable[str]) -> None: ...
    def look(self, at: datetime | None = None) -> None:
        """There is something to look at, now or then."""
        ...
