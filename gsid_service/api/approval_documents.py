"""What the API says and takes of intents, and of what is approved."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gsid_service.alert.sentence import sentence
from gsid_service.ingest.shapes import FIRST, WireFact
from gsid_service.records import Alert, Fact
from gsid_service.schema import FWD, REACHABLE
from gsid_service.store.approvals import Approval

CLEARED_SHOWN = 1000  # alerts that an approval makes an end of


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
