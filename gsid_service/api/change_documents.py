"""What the API says of candidates and announced changes."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from gsid_service.alert.changes import summary
from gsid_service.api.alert_documents import BrokenIntentDocument, FindingDocument, MoveDocument
from gsid_service.api.documents import NETWORK, FactRef
from gsid_service.check import Checked
from gsid_service.records import Change
from gsid_service.schema import LOCAL_PREF


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
