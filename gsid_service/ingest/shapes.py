"""The shapes of the wire form, which pydantic checks; what is in them is vocabulary.py's."""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    with_config,
)
from typing_extensions import TypedDict  # whose checks pydantic needs before Python 3.12

from gsid_service.ingest.problems import ID_LENGTH
from gsid_service.schema import UINT32

SEQUENCE_HIGHEST = 2**63 - 2
# Control, format (bidirectional overrides among them), surrogate, line and paragraph separators.
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _printable(text: str) -> str:
    if not text.isprintable():  # rare, and not all of it is hidden
        hidden = next((c for c in text if unicodedata.category(c) in HIDDEN), None)
        if hidden is not None:
            raise ValueError(f"must not contain the control character U+{ord(hidden):04X}")
    if text != text.strip():
        raise ValueError("must not begin or end with white space")
    return text


def _dated(text: Any) -> Any:
    """Refuse what pydantic would take for seconds since 1970, as numbers or as text."""
    if not isinstance(text, str) or not re.match(r"\d{4}-\d\d-\d\d[Tt ]", text):
        raise ValueError("must be a date and time, as in 2026-11-15T22:00:00Z")
    return text


def _one_segment(name: str) -> str:
    if "/" in name or name in {".", ".."}:
        raise ValueError("must not contain a slash, or be . or ..: it is part of addresses")
    return name


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years that UTC has") from None


Id = Annotated[str, Field(min_length=1, max_length=ID_LENGTH), AfterValidator(_printable)]
Name = Annotated[Id, AfterValidator(_one_segment)]
Longitude = Annotated[float, Field(ge=-180, le=180)]
Latitude = Annotated[float, Field(ge=-90, le=90)]
Time = Annotated[
    AwareDatetime, Field(strict=False), BeforeValidator(_dated), AfterValidator(_in_utc)
]

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def is_name(text: str) -> bool:
    """Whether a network can have this name."""
    try:
        _NAME.validate_python(text)
    except ValidationError:
        return False
    return True


# Of a list, the first item that has a wrong shape is named: each other one would cost 600 bytes.
FIRST: Any = Field(fail_fast=True)


class Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class WireCollector(Wire):
    id: Id
    role: Id


class WireEntity(Wire):
    id: Id
    kind: str
    asn: Annotated[int, Field(ge=0, le=UINT32)] | None = None
    label: Id | None = None
    position: tuple[Longitude, Latitude] | None = Field(None, description="longitude, latitude")


class WireFactKey(Wire):
    predicate: str
    args: Annotated[list[Id], FIRST]


@with_config(Wire.model_config)
class WireFact(TypedDict):  # there are many, and a dictionary is made faster than a model
    predicate: str
    args: Annotated[list[str], FIRST]  # each is the id of a declared entity, and checked there
    params: NotRequired[dict[str, Any]]
    holds: NotRequired[Annotated[bool, Field(json_schema_extra={"default": True})]]


class WireSnapshot(Wire):
    """One collector's view of one network at one time."""

    schema_: Literal["gsid.snapshot/1"] = Field(alias="schema")
    network: Name
    collector: WireCollector
    sequence: Annotated[int, Field(ge=0, le=SEQUENCE_HIGHEST)]
    observed_at: Time
    complete: bool
    entities: Annotated[list[WireEntity], FIRST]
    facts: Annotated[list[WireFact], FIRST]
    withdrawn: Annotated[list[WireFactKey], FIRST] = []
