"""The records that the stages hand to each other, frozen and typed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# What intents and traffic say of a fact, each a count. Of a link or route: whose traffic uses it
# under the observed and under the approved values; the intents whose traffic uses it, by whether
# they hold under both values (kept), only the approved (lost), only the observed (gained) or
# neither (unmet); the intents that name this very hop, that it be taken (wanted) or not (unwanted);
# of a route, those that want another one to the same network (rivalled). Of an intent: its outcome.
OUTCOMES = ("kept", "lost", "gained", "unmet")
DEMANDS = ("wanted", "unwanted", "rivalled")
EVIDENCE = (
    *(f"{state} {what}" for state in ("observed", "approved") for what in ("flows", *OUTCOMES)),
    *(f"{demand} {met}" for demand in DEMANDS for met in ("met", "unmet")),
)

NO_PARAMS: Mapping[str, int] = {}


class FactKey(NamedTuple):
    """What makes a fact that fact: who stands in which role of which predicate."""

    predicate: str
    args: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.predicate}({', '.join(self.args)})"

    @property
    def digest(self) -> str:
        """The same for the same fact only, whatever its ids hold, and of a fixed length."""
        return sha256(json.dumps(self).encode()).hexdigest()[:32]


class Entity(NamedTuple):
    """A router, a reflector, an external peering or a destination network."""

    id: str
    kind: str
    asn: int | None = None
    label: str | None = None
    position: tuple[float, float] | None = None


class Fact(NamedTuple):
    """A grounded predicate with its parameters; `holds` is false for a negated intent."""

    predicate: str
    args: tuple[str, ...]
    params: Mapping[str, int] = NO_PARAMS
    holds: bool = True

    @property
    def key(self) -> FactKey:
        return FactKey(self.predicate, self.args)


class Effect(NamedTuple):
    """What another value of one parameter would do, with all else as it is."""

    repairs: int  # intents that would hold again
    breaks: int  # intents that would no longer hold
    moves: int  # pairs of router and network whose traffic would go another way
    asked: int  # intents about that traffic, which would have told
    rivals: int  # other values of which one alone would repair one of the same intents
    ahead: int  # and those of them that on balance repair as much or more


class Collector(NamedTuple):
    id: str
    role: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One collector's view of one network at one time."""

    network: str
    collector: Collector
    sequence: int
    observed_at: datetime
    complete: bool
    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    withdrawn: tuple[FactKey, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A network as the model sees it; entity nodes come first, then one node per fact."""

    entities: tuple[str, ...]
    facts: tuple[FactKey, ...]
    features: FloatArray  # [N, D], -1 where not applicable
    reference: FloatArray | None  # [N, D], the approved values; None where there are none
    evidence: FloatArray  # [F, EVIDENCE], counts
    # [F, P, 1 + Effect]: 1 where it was tried, and what would come of
    reverts: FloatArray  # the approved value in the observed network
    adoptions: FloatArray  # the observed value in the approved network
    siblings: npt.NDArray[np.float16]  # [F, S]: how values stand among siblings, or zeros
    exact: bool  # whether the reference is the network as it once was, or a copy that may be wrong
    edges: IntArray  # [E, 3]: fact node, entity node, role
    stale: BoolArray  # [F]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How likely each monitored parameter of each fact is wrong, by one method."""

    method: str
    facts: tuple[FactKey, ...]
    parameters: tuple[str, ...]
    probability: FloatArray  # [F, P], not a number where a fact does not carry the parameter
    harmful: BoolArray | None = None  # [F, P], what a verifier proved to move traffic

    def ranked(self) -> list[tuple[float, FactKey, str]]:
        """Every score with what it is about, the most suspicious first."""
        rows, columns = np.nonzero(~np.isnan(self.probability))
        order = np.argsort(-self.probability[rows, columns], kind="stable")
        return [
            (float(self.probability[r, c]), self.facts[r], self.parameters[c])
            for r, c in zip(rows[order].tolist(), columns[order].tolist(), strict=True)
        ]


class Severity(Enum):
    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class Status(Enum):
    FIRING = "firing"
    ACKNOWLEDGED = "acknowledged"
    SILENCED = "silenced"
    RESOLVED = "resolved"


class BrokenIntent(NamedTuple):
    """An intent that does not hold; a derived one is weaker evidence than a stated one."""

    intent: Fact
    derived: bool
    wanted: tuple[str, ...] = ()  # the path that its traffic takes with the expected value
    actual: tuple[str, ...] = ()  # and the path as it is


class Restored(NamedTuple):
    """A value that is put back."""

    fact: FactKey
    parameter: str
    value: int


class Intents(NamedTuple):
    """What is wanted of a network: stated by the operator, or derived from the baseline."""

    stated: tuple[Fact, ...] = ()
    derived: tuple[Fact, ...] = ()


class UnderWay(NamedTuple):
    """An announced change in whose window a value was found, and whether it announced the value."""

    change: str  # its id
    ticket: str
    announced: bool


class Move(NamedTuple):
    """Traffic from a router to a network that goes another way than before."""

    router: str
    network: str
    before: str | None
    after: str | None


class Ending(Enum):
    """Why an alert is over."""

    RESTORED = "restored"  # the value is the expected one again
    APPROVED = "approved"  # the value stayed, and became the expected one
    GONE = "gone"  # what it was about is no longer there
    BELIEVED = "believed"  # the value is another than expected, and no longer suspicious


class Unsettled(NamedTuple):
    """A network to which traffic has no one stable outcome: now, or with the expected value."""

    network: str
    now: bool


class AlertEvent(NamedTuple):
    at: datetime
    what: str
    why: str
    who: str | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """A suspicious value and the proof of what it breaks; one per (network, fact, parameter)."""

    id: str
    network: str
    fact: FactKey
    parameter: str
    status: Status
    severity: Severity
    score: float
    observed: int | str
    expected: int | str | None
    snapshot_id: str
    collector: str
    first_seen: datetime
    last_seen: datetime
    broken_intents: tuple[BrokenIntent, ...] = ()
    moved: tuple[Move, ...] = ()
    reverting_repairs: int = 0
    reverting_breaks: int = 0  # stated intents that hold only because of the value
    unsettled: tuple[Unsettled, ...] = ()
    together: tuple[Restored, ...] = ()  # what else must be put back for that
    verified: bool = True  # whether there was time to simulate what the value does
    suggested: bool = False  # whether the expected value is a suggestion, and no approved one
    under_way: UnderWay | None = None
    flapping: bool = False
    verdict: str | None = None  # "true" or "false" alarm, where somebody said so
    since: datetime | None = None  # when it last opened
    ending: Ending | None = None  # of a resolved one
    events: tuple[AlertEvent, ...] = ()

    def with_event(self, event: AlertEvent) -> "Alert":
        return replace(self, events=(*self.events, event))


class ChangeStatus(Enum):
    PENDING = "pending"
    APPLYING = "applying"
    APPLIED = "applied"
    PARTLY_APPLIED = "partly applied"
    NOT_APPLIED = "not applied"
    CANCELLED = "cancelled"


class Step(NamedTuple):
    """One value of an announced change; without a parameter, whether the fact is there: 0 or 1."""

    fact: FactKey
    parameter: str | None
    before: int | None  # when it was announced; None where the fact was not there
    after: int


@dataclass(frozen=True, slots=True)
class Change:
    """A meant change, announced for a window; closed once it is over or cancelled."""

    id: str
    network: str
    author: str
    announced_by: str
    announced_at: datetime
    ticket: str
    comment: str
    begins_at: datetime
    ends_at: datetime
    steps: tuple[Step, ...]
    status: ChangeStatus = ChangeStatus.PENDING
    observed: tuple[int | None, ...] = ()  # of each step, as last seen in the window
    closed_at: datetime | None = None
    cancelled_by: str | None = None
