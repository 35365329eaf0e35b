"""What the API answers, and what it takes beside snapshots."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from gsid_service.records import FactKey
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF, REACHABLE
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
    sequence: int = Field(examples=[1042], description="Of its newest snapshot.")
    observed_at: datetime
    received_at: datetime
    overtaken: int = Field(
        examples=[0],
        description="Snapshots that came in since, but are older by sequence; they grow in number "
        "where a collector begins to count anew, and its facts become stale.",
    )


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
