"""The records of telling the NOC: who is told what, why, and what keeps quiet; frozen and typed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Literal, NamedTuple

from gsid_service.records import Severity, Status

Label = Literal[
    "alert", "network", "predicate", "fact", "entity", "parameter", "severity", "collector"
]
Comparison = Literal["=", "!=", "~", "!~"]
REPEAT = "repeat"  # the kind of a message that says again what is known


class Matcher(NamedTuple):
    """A condition on a label of an alert; `~` compares with `*`, `?` and `[…]` as in file names."""

    name: str
    operator: str  # =, !=, ~ or !~
    value: str

    def __str__(self) -> str:
        return f'{self.name}{self.operator}"{self.value}"'


@dataclass(frozen=True, slots=True)
class Silence:
    """No notifications for the alerts that all matchers fit, from one time to another."""

    number: int
    matchers: tuple[Matcher, ...]
    author: str
    comment: str
    created_at: datetime
    starts_at: datetime
    ends_at: datetime

    @property
    def id(self) -> str:
        return f"q{self.number}"


class Mode(Enum):
    MUTE = "mute"  # alerts open, nobody is told
    HOLD = "hold"  # no alert opens either


@dataclass(frozen=True, slots=True)
class Window:
    """A maintenance window: once, or again and again by a rule of RFC 5545 in its time zone."""

    number: int
    network: str | None  # None is any
    entity: str | None
    parameter: str | None
    mode: Mode
    starts_at: datetime  # of the first occurrence
    ends_at: datetime
    rule: str | None
    timezone: str
    author: str
    comment: str
    created_at: datetime
    cancelled_at: datetime | None = None

    @property
    def id(self) -> str:
        return f"w{self.number}"

    @property
    def duration(self) -> timedelta:
        return self.ends_at - self.starts_at


class Told(NamedTuple):
    """What a receiver was last told of an alert."""

    status: Status
    severity: Severity
    observed: int | str
    at: datetime


class Group(NamedTuple):
    """Alerts that are told together, since they have one cause."""

    key: str
    cause: str
    opened_at: datetime
    flushed_at: datetime | None = None  # when the last message was made


class Notification(NamedTuple):
    """Where an alert stands with a receiver, and which stage said so why."""

    alert: str
    receiver: str
    told: Told | None
    group: Group | None
    stage: str
    reason: str
    at: datetime
    unfinished: bool  # there may be more to tell of this turn of the alert
    delivery: str | None = None  # the id of the last message about it


Message = Mapping[str, Any]  # what notify/message.py makes, and receivers send


class Sending(Enum):
    """How far a delivery is."""

    PENDING = "pending"
    DELIVERED = "delivered"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message on its way to a receiver; the key is the same however often it is tried."""

    number: int
    key: str
    receiver: str
    network: str
    group: str
    kind: str
    status: Sending
    attempts: int
    created_at: datetime
    since: datetime  # creation or replay: the time to give up counts from here
    due: datetime
    settled_at: datetime | None
    answer: str | None

    @property
    def id(self) -> str:
        return f"d{self.number}"


class Outgoing(NamedTuple):
    """A message that a stage wants delivered."""

    key: str
    group: Group
    kind: str
    message: Message
