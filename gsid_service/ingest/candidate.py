"""What a network might become: JSON in, a snapshot or some new values out, or every problem.

A candidate is one collector's snapshot as it would be, or `{"changes": […]}`: values that are to
be laid upon the network as it is. An announcement is one of the two with its window.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from pydantic import Field, ValidationError, WithJsonSchema, model_validator

from gsid_service.ingest.problems import InvalidSnapshot, Problem, invalid, unknown
from gsid_service.ingest.shapes import Id, Time, Wire, WireFactKey, WireSnapshot
from gsid_service.ingest.strict import read, refuse_repeated_keys
from gsid_service.ingest.vocabulary import not_a_value, number_of
from gsid_service.ingest.wire import parse_snapshot, read_snapshot
from gsid_service.records import Fact, FactKey, Snapshot
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF, SCHEMA, Schema

VALUES_AT_MOST = 10_000
COMMENT_LENGTH = 2000
NO_NUL = r"^[^\x00]*$"  # PostgreSQL cannot keep one
EXAMPLE = {
    "fact": {"predicate": BGP_ROUTE.name, "args": ["AS65101@R3", "203.0.113.0/24"]},
    "parameter": LOCAL_PREF.name,
    "value": 80,
}


class WireValue(Wire):
    """A new value of one parameter of a fact that is there."""

    fact: WireFactKey
    parameter: str
    value: Annotated[Any, WithJsonSchema({"type": ["integer", "string"]})]


Values = Annotated[
    list[WireValue],
    Field(min_length=1, max_length=VALUES_AT_MOST, fail_fast=True, examples=[[EXAMPLE]]),
]


class WireChanges(Wire):
    """Values to be laid upon a network as it is."""

    changes: Values


class WireAnnouncement(Wire):
    """A meant change: new values or a candidate snapshot, when, by whom and why."""

    changes: Values | None = None
    candidate: WireSnapshot | None = None
    begins_at: Time | None = Field(None, description="Now, where it is left out.")
    ends_at: Time
    author: Id | None = Field(None, description="Who stands for it; the caller by default.")
    ticket: Annotated[Id, Field(examples=["CHG-1042"])]
    comment: Annotated[str, Field(max_length=COMMENT_LENGTH, pattern=NO_NUL)] = ""

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.changes is None) == (self.candidate is None):
            raise ValueError("either changes or a candidate")
        return self


Candidate = Snapshot | list[WireValue]
Model = TypeVar("Model", bound=Wire)


class Announcement(NamedTuple):
    """A meant change, read."""

    candidate: Candidate
    begins_at: datetime | None
    ends_at: datetime
    author: str | None
    ticket: str
    comment: str


def parse_candidate(document: bytes) -> Candidate:
    """A snapshot or new values; raises `InvalidSnapshot` with all that is wrong."""
    content = read(document)
    if isinstance(content, dict) and "changes" in content:
        return _parsed(WireChanges, document).changes
    return parse_snapshot(document)


def parse_announcement(document: bytes) -> Announcement:
    refuse_repeated_keys(document)
    wire = _parsed(WireAnnouncement, document)
    candidate: Candidate = wire.changes or []
    if wire.candidate is not None:
        candidate = _placed(wire.candidate)
    return Announcement(
        candidate, wire.begins_at, wire.ends_at, wire.author, wire.ticket, wire.comment
    )


def _placed(wire: WireSnapshot) -> Snapshot:
    try:
        return read_snapshot(wire)
    except InvalidSnapshot as error:
        placed = [Problem(f"candidate.{p.field}", p.reason) for p in error.problems]
        raise InvalidSnapshot(placed) from None


def _parsed(model: type[Model], document: bytes) -> Model:
    try:
        return model.model_validate_json(document)
    except ValidationError as error:
        raise invalid(error) from None


def read_values(
    wire: list[WireValue], facts: Mapping[FactKey, Fact], schema: Schema = SCHEMA
) -> dict[tuple[FactKey, str], int]:
    """Check new values against the facts that they are for."""
    problems: list[Problem] = []
    read: dict[tuple[FactKey, str], int] = {}
    for i, given in enumerate(wire):
        key = FactKey(given.fact.predicate, tuple(given.fact.args))
        found = _value(f"changes[{i}]", key, given, facts, schema)
        if isinstance(found, Problem):
            problems.append(found)
        elif (key, given.parameter) in read:
            reason = f"{given.parameter} of {key} is given twice"
            problems.append(Problem(f"changes[{i}]", reason))
        else:
            read[key, given.parameter] = found
    if problems:
        raise InvalidSnapshot(problems)
    return read


def _value(
    at: str, key: FactKey, given: WireValue, facts: Mapping[FactKey, Fact], schema: Schema
) -> int | Problem:
    if key not in facts:
        return Problem(f"{at}.fact", f"{key} is not in the network")
    kind = schema.fact[key.predicate]
    parameter = kind.parameter(given.parameter)
    if parameter is None:
        known = [p.name for p in kind.parameters]
        reason = unknown(given.parameter, f"parameter of {kind.name}", known)
        return Problem(f"{at}.parameter", reason)
    number = number_of(parameter, given.value)
    if number is None:
        return Problem(f"{at}.value", not_a_value(parameter, given.value))
    return number
