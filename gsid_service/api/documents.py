"""What the API answers, and what it takes beside snapshots."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gsid_service.api.text import Text
from gsid_service.ingest.wire import WireFact
from gsid_service.notices import Notification
from gsid_service.records import Alert, Fact, FactKey
from gsid_service.schema import BGP_ROUTE, FWD, LOCAL_PREF, REACHABLE
from gsid_service.store.approvals import Approval
from gsid_service.store.networks import Network

Item = TypeVar("Item")
NETWORK = "as65000"
ROUTE = ["AS65101@R3", "203.0.113.0/24"]


class Page(BaseModel, Generic[Item]):
    """Some of the items, and the cursor of the next page, null on the last."""

    items: list[Item]
    next: str | None = None


class FactRef(BaseModel):
    predicate: str = Field(examples=[BGP_ROUTE.name])
    args: list[str] = Field(examples=[ROUTE])

    @classmethod
    def of(cls, key: FactKey) -> "FactRef":
        return cls(predicate=key.predicate, args=list(key.args))


class Accepted(BaseModel):
    """The snapshot is durable."""

    snapshot_id: str = Field(examples=["s1042"])
    network: str = Field(examples=[NETWORK])
    duplicate: bool = Field(examples=[False])


class ConflictDocument(BaseModel):
    """A value on which collectors differ."""

    fact: FactRef
    parameter: str | None = Field(examples=[LOCAL_PREF.name])
    values: list[dict[str, Any]] = Field(examples=[[{"collector": "rr1", "value": 200}]])
    reason: str = Field(examples=["collectors differ; the newer counts"])


class NetworkDocument(BaseModel):
    """A network, and how it is."""

    name: str = Field(examples=[NETWORK])
    created_at: datetime
    settings: "NetworkSettings"
    scored_snapshot: str | None = Field(examples=["s1042"])
    scored_at: datetime | None
    up_to_date: bool = Field(description="Whether all that came in has been scored.")
    problem: str | None = Field(description="Why the last cycle failed.", examples=[None])
    entities: int
    facts: int
    stale_facts: int
    broken_intents: dict[str, int] = Field(examples=[{REACHABLE.name: 2}])
    conflicts: list[ConflictDocument]

    @classmethod
    def of(cls, network: Network) -> "NetworkDocument":
        summary: Mapping[str, Any] = network.summary
        return cls(
            name=network.name,
            created_at=network.created_at,
            settings=NetworkSettings(**network.settings),
            scored_snapshot=f"s{network.scored}" if network.scored else None,
            scored_at=network.scored_at,
            up_to_date=network.news == network.done,
            problem=network.problem,
            entities=summary.get("entities", 0),
            facts=summary.get("facts", 0),
            stale_facts=summary.get("stale_facts", 0),
            broken_intents=summary.get("broken_intents", {}),
            conflicts=summary.get("conflicts", []),
        )


class NetworkSettings(BaseModel):
    """What can be set for a network."""

    model_config = ConfigDict(extra="forbid", strict=True)

    always_compare_med: bool = Field(
        default=False, description="Compare MED also between routes of different ASes."
    )


class CollectorDocument(BaseModel):
    id: str = Field(examples=["rr1"])
    role: str = Field(examples=["route_reflector"])
    sequence: int = Field(examples=[1042])
    observed_at: datetime
    received_at: datetime


class SnapshotDocument(BaseModel):
    snapshot_id: str = Field(examples=["s1042"])
    collector: str = Field(examples=["rr1"])
    sequence: int = Field(examples=[1042])
    observed_at: datetime
    received_at: datetime
    complete: bool
    facts: int


class ScoreDocument(BaseModel):
    """How likely a value is wrong."""

    fact: FactRef
    parameter: str = Field(examples=[LOCAL_PREF.name])
    observed: int = Field(examples=[80])
    baseline: int | None = Field(examples=[200])
    score: float = Field(examples=[0.97])
    stale: bool = Field(description="Observed by silent collectors only.", examples=[False])
    snapshot_id: str = Field(examples=["s1042"])
    since: datetime


class ScoreLine(BaseModel):
    at: datetime
    observed: int
    score: float
    snapshot_id: str


class GraphFact(FactRef):
    """A fact of the merged state, with who stated it."""

    params: dict[str, int | str] = Field(examples=[{LOCAL_PREF.name: 80}])
    collector: str = Field(examples=["rr1"])
    snapshot_id: str = Field(examples=["s1042"])
    observed_at: datetime
    stale: bool


class GraphDocument(BaseModel):
    """The merged state: entities, and the facts that connect them."""

    network: str = Field(examples=[NETWORK])
    entities: list[dict[str, Any]] = Field(examples=[[{"id": "R1", "kind": "router"}]])
    facts: list[GraphFact]


class Change(BaseModel):
    """How one fact differs between two states."""

    fact: FactRef
    what: Literal["added", "removed", "changed"]
    before: dict[str, int | str] | None = Field(examples=[{LOCAL_PREF.name: 200}])
    after: dict[str, int | str] | None = Field(examples=[{LOCAL_PREF.name: 80}])


class IntentDocument(BaseModel):
    predicate: str = Field(examples=[REACHABLE.name])
    args: list[str] = Field(examples=[["R1", "203.0.113.0/24", "R3"]])
    holds: bool = True
    source: Literal["stated", "derived"] = "stated"

    @classmethod
    def of(cls, intent: Fact, source: Literal["stated", "derived"]) -> "IntentDocument":
        return cls(
            predicate=intent.predicate, args=list(intent.args), holds=intent.holds, source=source
        )


class IntentsWanted(BaseModel):
    """All stated intents of a network, in place of those before."""

    model_config = ConfigDict(extra="forbid")

    intents: list[WireFact] = Field(
        max_length=100_000,
        examples=[
            [{"predicate": FWD.name, "args": ["R1", "203.0.113.0/24", "R3"], "holds": True}],
        ],
    )


class IntentCount(BaseModel):
    stated: int
    derived: int


class ApprovalWanted(BaseModel):
    """Which state to approve: a network as it is now, or as it was with a snapshot."""

    model_config = ConfigDict(extra="forbid", strict=True)

    now: bool = False
    snapshot_id: str | None = Field(default=None, max_length=20, examples=["s1042"])


class ApprovalDocument(BaseModel):
    number: int
    approved_at: datetime
    approved_by: str = Field(examples=["noc"])
    provisional: bool
    snapshot_id: str = Field(examples=["s1042"])

    @classmethod
    def of(cls, approval: Approval) -> "ApprovalDocument":
        return cls(
            number=approval.number,
            approved_at=approval.approved_at,
            approved_by=approval.approved_by,
            provisional=approval.provisional,
            snapshot_id=f"s{approval.snapshot}",
        )


class BaselineDocument(ApprovalDocument):
    entities: list[dict[str, Any]]
    facts: list[dict[str, Any]]


class MoveDocument(BaseModel):
    router: str = Field(examples=["R1"])
    network: str = Field(examples=["203.0.113.0/24"])
    before: str | None = Field(examples=["R3"])
    after: str | None = Field(examples=["R4"])


class EventDocument(BaseModel):
    at: datetime
    what: str = Field(examples=["opened"])
    why: str = Field(examples=["the score 0.97 is not below 0.8"])
    who: str | None = Field(examples=[None])


class NotificationDocument(BaseModel):
    """Why a receiver was, or was not, told of an alert: what the last stage said."""

    receiver: str = Field(examples=["noc"])
    told: Literal["firing", "acknowledged", "resolved"] | None = Field(
        description="What it was last told; null where nothing."
    )
    told_at: datetime | None
    stage: str = Field(examples=["grouping"])
    reason: str = Field(examples=["waits with its group until 22:00:30 UTC"])
    at: datetime
    delivery: str | None = Field(description="The last message about it.", examples=["d12"])

    @classmethod
    def of(cls, found: Notification) -> "NotificationDocument":
        return cls(
            told=found.told.status.value if found.told else None,  # type: ignore[arg-type]
            told_at=found.told.at if found.told else None,
            **{n: getattr(found, n) for n in ("receiver", "stage", "reason", "at", "delivery")},
        )


class AlertDocument(BaseModel):
    """A value that is probably wrong, and what it breaks."""

    id: str = Field(examples=["a17"])
    network: str = Field(examples=[NETWORK])
    fact: FactRef
    parameter: str = Field(examples=[LOCAL_PREF.name])
    status: Literal["firing", "acknowledged", "silenced", "resolved"]
    severity: Literal["critical", "major", "minor"]
    score: float = Field(examples=[0.97])
    observed: int = Field(examples=[80])
    expected: int | None = Field(examples=[200])
    broken_intents: list[IntentDocument]
    moved: list[MoveDocument]
    reverting_repairs: int
    snapshot_id: str = Field(examples=["s1042"])
    collector: str = Field(examples=["rr1"])
    flapping: bool
    verdict: Literal["true", "false"] | None
    first_seen: datetime
    last_seen: datetime
    since: datetime | None = Field(description="When it last opened.")
    events: list[EventDocument] = Field(description="Only where one alert is asked for.")
    notifications: list[NotificationDocument] = Field(
        description="Who was told or not, and why; only where one alert is asked for."
    )

    @classmethod
    def of(cls, alert: Alert, told: Iterable[Notification] = ()) -> "AlertDocument":
        plain = ("id", "network", "parameter", "score", "observed", "expected", "snapshot_id")
        more = ("collector", "flapping", "verdict", "first_seen", "last_seen", "reverting_repairs")
        return cls(
            since=alert.since,
            notifications=[NotificationDocument.of(found) for found in told],
            fact=FactRef.of(alert.fact),
            status=alert.status.value,
            severity=alert.severity.value,
            broken_intents=[
                IntentDocument.of(intent, "derived" if derived else "stated")
                for intent, derived in alert.broken_intents
            ],
            moved=[MoveDocument(**move._asdict()) for move in alert.moved],
            events=[EventDocument(**event._asdict()) for event in alert.events],
            **{name: getattr(alert, name) for name in plain + more},
        )


class Note(BaseModel):
    """Something to say with an acknowledgement."""

    model_config = ConfigDict(extra="forbid", strict=True)

    note: Text = Field(default="", max_length=2000, examples=["looking into it"])


class Verdict(Note):
    """Whether it was a true or a false alarm."""

    alarm: Literal["true", "false"]


class ModelDocument(BaseModel):
    name: str = Field(examples=["gsid-1"])
    in_use: bool


class Health(BaseModel):
    status: Literal["ok"] = "ok"


class Reloaded(BaseModel):
    """What was taken over from the settings file, and what needs a restart."""

    changed: list[str] = Field(examples=[["alerts"]])
    restart: list[str] = Field(examples=[["server"]])


NetworkDocument.model_rebuild()
