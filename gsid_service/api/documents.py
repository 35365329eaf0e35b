"""What the API answers, and what it takes beside snapshots."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gsid_service.alert.changes import summary
from gsid_service.alert.decide import Finding
from gsid_service.alert.sentence import sentence
from gsid_service.api.text import Text
from gsid_service.check import Checked
from gsid_service.ingest.shapes import FIRST, WireFact
from gsid_service.notices import Notification
from gsid_service.records import Alert, BrokenIntent, Change, Fact, FactKey
from gsid_service.schema import BGP_ROUTE, FWD, LOCAL_PREF, REACHABLE
from gsid_service.store.approvals import Approval
from gsid_service.store.networks import Network

Item = TypeVar("Item")
NETWORK = "as65000"
ROUTE = ["AS65101@R3", "203.0.113.0/24"]
CLEARED_SHOWN = 1000  # alerts that an approval makes an end of


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


class Difference(BaseModel):
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

    intents: Annotated[list[WireFact], FIRST] = Field(
        max_length=100_000,
        examples=[
            [{"predicate": FWD.name, "args": ["R1", "203.0.113.0/24", "R3"], "holds": True}],
        ],
    )


class IntentCount(BaseModel):
    stated: int = Field(examples=[3])
    derived: int = Field(examples=[40])


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
    ticket: str | None = Field(description="Of the announced change that it comes from.")

    @classmethod
    def of(cls, approval: Approval) -> "ApprovalDocument":
        return cls(
            number=approval.number,
            approved_at=approval.approved_at,
            approved_by=approval.approved_by,
            provisional=approval.provisional,
            snapshot_id=f"s{approval.snapshot}",
            ticket=approval.ticket,
        )


class ClearedDocument(BaseModel):
    """An open alert on what an approval makes the expected state."""

    id: str = Field(examples=["a17"])
    severity: Literal["critical", "major", "minor"]
    summary: str = Field(
        examples=["local_pref on AS65101@R3 → 203.0.113.0/24 is 80, expected 200: …"]
    )

    @classmethod
    def of(cls, alert: Alert) -> "ClearedDocument":
        return cls(id=alert.id, severity=alert.severity.value, summary=sentence(alert))


class ApprovableDocument(BaseModel):
    """A network as it can be approved, and the open alerts that this would make an end of."""

    snapshot_id: str = Field(examples=["s1042"])
    cleared: int = Field(description="How many alerts would be over.", examples=[1])
    clears: list[ClearedDocument] = Field(description="The gravest of them, at most 1000.")

    @classmethod
    def of(cls, number: int, clears: Sequence[Alert]) -> "ApprovableDocument":
        shown = [ClearedDocument.of(alert) for alert in clears[:CLEARED_SHOWN]]
        return cls(snapshot_id=f"s{number}", cleared=len(clears), clears=shown)


class ApprovedDocument(ApprovalDocument):
    """An approval, and the open alerts that it makes an end of."""

    cleared: int = Field(description="How many alerts are over with it.", examples=[1])
    clears: list[ClearedDocument] = Field(description="The gravest of them, at most 1000.")


class BaselineDocument(ApprovalDocument):
    entities: list[dict[str, Any]]
    facts: list[dict[str, Any]]


class BrokenIntentDocument(IntentDocument):
    """An intent that does not hold, with the path that was wanted and the path that is."""

    wanted: list[str] = Field(examples=[["R1", "R3", "AS65101@R3"]])
    actual: list[str] = Field(examples=[["R1", "R4", "AS65102@R4"]])

    @classmethod
    def about(cls, broken: BrokenIntent) -> "BrokenIntentDocument":
        stated = IntentDocument.of(broken.intent, "derived" if broken.derived else "stated")
        return cls(**dict(stated), wanted=list(broken.wanted), actual=list(broken.actual))


class RestoredDocument(BaseModel):
    """A value that is put back."""

    fact: FactRef
    parameter: str = Field(examples=[LOCAL_PREF.name])
    value: int = Field(examples=[200])


class MoveDocument(BaseModel):
    router: str = Field(examples=["R1"])
    network: str = Field(examples=["203.0.113.0/24"])
    before: str | None = Field(examples=["R3"])
    after: str | None = Field(examples=["R4"])


class UnsettledDocument(BaseModel):
    network: str = Field(examples=["203.0.113.0/24"])
    now: bool = Field(description="As it is; otherwise with the expected value.")


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


class FindingDocument(BaseModel):
    """A value that is probably wrong, and what it breaks."""

    fact: FactRef
    parameter: str = Field(examples=[LOCAL_PREF.name])
    severity: Literal["critical", "major", "minor"]
    score: float = Field(examples=[0.97])
    summary: str = Field(
        examples=["local_pref on AS65101@R3 → 203.0.113.0/24 is 80, expected 200: …"]
    )
    observed: int | str = Field(examples=[80])
    expected: int | str | None = Field(examples=[200])
    suggested: bool = Field(description="Whether `expected` is a suggestion, and not approved.")
    verified: bool = Field(description="Whether there was time to simulate what the value does.")
    broken_intents: list[BrokenIntentDocument]
    moved: list[MoveDocument]
    reverting_repairs: int
    reverting_breaks: int = Field(
        description="How many stated intents hold that would not with `expected`."
    )
    unsettled: list[UnsettledDocument] = Field(
        description="Networks without one stable outcome, of which nothing is proved."
    )
    together: list[RestoredDocument] = Field(
        description="What else must be put back for the repair."
    )

    @classmethod
    def of(cls, found: Alert | Finding, **more: Any) -> Self:
        plain = ("parameter", "score", "observed", "expected", "suggested", "verified")
        return cls(
            fact=FactRef.of(found.fact),
            severity=found.severity.value,
            summary=sentence(found),
            broken_intents=[BrokenIntentDocument.about(b) for b in found.broken_intents],
            moved=[MoveDocument(**move._asdict()) for move in found.moved],
            reverting_repairs=found.reverting_repairs,
            reverting_breaks=found.reverting_breaks,
            unsettled=[UnsettledDocument(**one._asdict()) for one in found.unsettled],
            together=[
                RestoredDocument(fact=FactRef.of(t.fact), parameter=t.parameter, value=t.value)
                for t in found.together
            ],
            **{name: getattr(found, name) for name in plain},
            **more,
        )


class AlertDocument(FindingDocument):
    """A finding that was opened, and what became of it."""

    id: str = Field(examples=["a17"])
    network: str = Field(examples=[NETWORK])
    status: Literal["firing", "acknowledged", "silenced", "resolved"]
    snapshot_id: str = Field(examples=["s1042"])
    collector: str = Field(examples=["rr1"])
    change: str | None = Field(
        description="The announced change in whose window it opened, or whose value it is.",
        examples=[None],
    )
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
    def told(cls, alert: Alert, notifications: Iterable[Notification] = ()) -> Self:
        plain = ("id", "network", "snapshot_id", "collector", "flapping", "verdict", "since")
        return cls.of(
            alert,
            notifications=[NotificationDocument.of(found) for found in notifications],
            status=alert.status.value,
            change=alert.under_way.change if alert.under_way else None,
            events=[EventDocument(**event._asdict()) for event in alert.events],
            **{name: getattr(alert, name) for name in (*plain, "first_seen", "last_seen")},
        )


class CheckDocument(BaseModel):
    """What a candidate would do to a network; nothing of it is kept."""

    network: str = Field(examples=[NETWORK])
    verdict: Literal["clean", "findings"] = Field(
        description="clean: nothing new is found, no stated intent would break, and no traffic is "
        "left without a way."
    )
    new: list[FindingDocument] = Field(description="Not there in the network as it is.")
    existing: list[FindingDocument] = Field(description="There already, and would stay.")
    would_break: list[BrokenIntentDocument]
    would_repair: list[BrokenIntentDocument]
    moved: list[MoveDocument] = Field(description="Every next hop that would move.")
    undetermined: list[str] = Field(
        description="Networks that would not have exactly one stable outcome.", examples=[[]]
    )

    @classmethod
    def of(cls, network: str, checked: Checked) -> "CheckDocument":
        return cls(
            network=network,
            verdict="clean" if checked.is_clean else "findings",
            new=[FindingDocument.of(found) for found in checked.new],
            existing=[FindingDocument.of(found) for found in checked.existing],
            would_break=[BrokenIntentDocument.about(b) for b in checked.breaks],
            would_repair=[BrokenIntentDocument.about(b) for b in checked.repairs],
            moved=[MoveDocument(**move._asdict()) for move in checked.moved],
            undetermined=checked.undetermined,
        )


class StepDocument(BaseModel):
    """One announced value; without a parameter, whether the fact is there: 0 or 1."""

    fact: FactRef
    parameter: str | None = Field(examples=[LOCAL_PREF.name])
    before: int | None = Field(description="When it was announced.", examples=[200])
    announced: int = Field(examples=[80])
    observed: int | None = Field(description="As last seen in the window.", examples=[200])
    applied: bool


class ChangeDocument(BaseModel):
    """A meant change, and how far it is."""

    id: str = Field(examples=["c3"])
    network: str = Field(examples=[NETWORK])
    status: Literal["pending", "applying", "applied", "partly applied", "not applied", "cancelled"]
    summary: str = Field(examples=["1 of 2 applied: med on AS65101@R3 → … is 0, announced 10"])
    ticket: str = Field(examples=["CHG-1042"])
    author: str = Field(examples=["ann"])
    comment: str = Field(examples=["maintenance of R3"])
    begins_at: datetime
    ends_at: datetime
    announced_at: datetime
    announced_by: str = Field(examples=["noc"])
    closed_at: datetime | None = Field(description="When it was over, or cancelled.")
    cancelled_by: str | None = Field(examples=[None])
    values: list[StepDocument]

    @classmethod
    def of(cls, change: Change, **more: Any) -> Self:
        plain = ("id", "network", "ticket", "author", "comment", "begins_at", "ends_at")
        more |= {name: getattr(change, name) for name in plain}
        more |= {name: getattr(change, name) for name in ("announced_at", "announced_by")}
        seen = change.observed or (None,) * len(change.steps)
        return cls(
            status=change.status.value,
            summary=summary(change),
            closed_at=change.closed_at,
            cancelled_by=change.cancelled_by,
            values=[
                StepDocument(
                    fact=FactRef.of(step.fact),
                    parameter=step.parameter,
                    before=step.before,
                    announced=step.after,
                    observed=observed,
                    applied=observed == step.after,
                )
                for step, observed in zip(change.steps, seen, strict=True)
            ],
            **more,
        )


class AnnouncedDocument(ChangeDocument):
    """An announced change, with what the check found."""

    check: CheckDocument


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
