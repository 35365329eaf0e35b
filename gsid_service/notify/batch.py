"""What stages hand to each other: the alerts of one network on their way to one receiver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import uuid4

from gsid_service.notices import Group, Notification, Outgoing, Silence, Told, Window
from gsid_service.records import Alert, FactKey, Severity, Status

AHEAD = timedelta(minutes=1)  # more than the clocks of two machines may differ


@dataclass(frozen=True, slots=True)
class Route:
    """How a receiver wants to be told."""

    receiver: str
    min_severity: Severity = Severity.MAJOR
    group_wait: timedelta = timedelta(seconds=30)
    group_interval: timedelta = timedelta(minutes=5)
    repeat_interval: timedelta = timedelta(hours=4)
    by_cause: bool = True  # else all alerts of a network are one group
    acknowledgements: bool = False  # whether it is told of them


@dataclass(frozen=True, slots=True)
class Situation:
    """All that stages know beside the alerts."""

    now: datetime
    silences: tuple[Silence, ...] = ()
    windows: tuple[Window, ...] = ()
    missing: tuple[FactKey, ...] = ()  # approved, and no longer observed
    stale: frozenset[tuple[str, str]] = frozenset()  # digests of facts, and parameters
    under_way: frozenset[str] = frozenset()  # groups with a message that is not delivered yet


@dataclass(frozen=True, slots=True)
class Note:
    """An alert on its way, and what the last stage that spoke of it said."""

    alert: Alert
    told: Told | None = None
    group: Group | None = None
    stage: str = ""
    reason: str = ""
    held: bool = False
    again: datetime | None = None  # when to look at it once more
    delivery: str | None = None  # the key of the message that tells of it

    @property
    def over(self) -> bool:
        return self.alert.status is Status.RESOLVED

    @property
    def paged(self) -> bool:
        """Whether the receiver knows of it, and not that it is over."""
        return self.told is not None and self.told.status is not Status.RESOLVED

    def at(self, stage: str, reason: str, again: datetime | None = None) -> "Note":
        return replace(self, stage=stage, reason=reason, held=True, again=again)


@dataclass(frozen=True, slots=True)
class Batch:
    route: Route
    situation: Situation
    notes: tuple[Note, ...]
    before: Mapping[str, Notification] = field(default_factory=dict)  # by the alert's id
    new_key: Callable[[], str] = field(default=lambda: uuid4().hex)
    outgoing: tuple[Outgoing, ...] = ()
    records: tuple[tuple[Notification, str | None], ...] = ()  # with the key of a new message

    @property
    def now(self) -> datetime:
        return self.situation.now

    @property
    def passing(self) -> list[Note]:
        return [note for note in self.notes if not note.held]

    def each(self, change: Callable[[Note], Note]) -> "Batch":
        """The batch with every note that no stage holds changed."""
        return replace(self, notes=tuple(n if n.held else change(n) for n in self.notes))

    def holding(self, stage: str, why: Callable[[Note], "Held | None"]) -> "Batch":
        """The batch without the notes that there is a reason to hold. What is over is never held
        from those who were told that it began."""

        def judge(note: Note) -> Note:
            held = None if note.over and note.paged else why(note)
            return note if held is None else note.at(stage, *held)

        return self.each(judge)


def over_at(began: datetime, wait: timedelta, now: datetime) -> datetime:
    """When a wait is over; one that began ahead of now, since the clock was set back, is."""
    return now if began > now + AHEAD else began + wait


Held = tuple[str, datetime | None]  # the reason, and when to look again
Stage = Callable[[Batch], Batch]
