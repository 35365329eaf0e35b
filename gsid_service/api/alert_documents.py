"""What the API says of findings and alerts, and what people say of them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from gsid_service.alert.decide import Finding
from gsid_service.alert.sentence import sentence
from gsid_service.api.approval_documents import IntentDocument
from gsid_service.api.documents import NETWORK, FactRef
from gsid_service.api.text import Text
from gsid_service.notices import Notification
from gsid_service.records import Alert, BrokenIntent
from gsid_service.schema import LOCAL_PREF


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


class Note(BaseModel):
    """Something to say with an acknowledgement."""

    model_config = ConfigDict(extra="forbid", strict=True)

    note: Text = Field(default="", max_length=2000, examples=["looking into it"])


class Verdict(Note):
    """Whether it was a true or a false alarm."""

    alarm: Literal["true", "false"]
