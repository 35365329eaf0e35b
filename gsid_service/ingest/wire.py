"""The wire form of a snapshot: JSON in, a `Snapshot` out, or every problem with the field it is in.

Pydantic checks the shape; what depends on the vocabulary (predicates, roles, ranges) is read from
the schema, so that another protocol needs no change here.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, product
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, get_origin

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    with_config,
)
from pydantic_core import ErrorDetails, from_json
from typing_extensions import TypedDict  # whose checks pydantic needs before Python 3.12

from gsid_service.records import Collector, Entity, Fact, FactKey, Snapshot
from gsid_service.schema import EXTERNAL_AS, SCHEMA, UINT32, FactKind, Group, Parameter, Schema

SCHEMA_VERSION = "gsid.snapshot/1"
ID_LENGTH = 200
PROBLEMS_SHOWN = 20
LARGE = 1 << 20  # bytes of a document
WIDE = 64  # values in one entity, one fact or its parameters
PROBLEMS_AT_MOST = 1000  # are looked for: a document of nothing else must not cost memory and time
SEQUENCE_HIGHEST = 2**63 - 2
# Control, format (bidirectional overrides among them), surrogate, line and paragraph separators.
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class Problem(NamedTuple):
    """What is wrong, and in which field, as in `facts[3].params.local_pref`."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class InvalidSnapshot(ValueError):
    """The document cannot be taken; `problems` holds the first ones, `total` counts those found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        everything = list(problems)
        self.total = len(everything)
        self.problems = tuple(everything[:PROBLEMS_SHOWN])
        more = self.total - len(self.problems)
        lines = [str(p) for p in self.problems] + ([f"and {more} more"] if more else [])
        super().__init__("\n".join(lines))


class NotJSON(InvalidSnapshot):
    """The document is not JSON at all."""


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
Longitude = Annotated[float, Field(ge=-180, le=180)]
Latitude = Annotated[float, Field(ge=-90, le=90)]
Time = Annotated[
    AwareDatetime, Field(strict=False), BeforeValidator(_dated), AfterValidator(_in_utc)
]

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
    network: Annotated[Id, AfterValidator(_one_segment)]
    collector: WireCollector
    sequence: Annotated[int, Field(ge=0, le=SEQUENCE_HIGHEST)]
    observed_at: Time
    complete: bool
    entities: Annotated[list[WireEntity], FIRST]
    facts: Annotated[list[WireFact], FIRST]
    withdrawn: Annotated[list[WireFactKey], FIRST] = []


def parse_snapshot(document: bytes | str, schema: Schema = SCHEMA) -> Snapshot:
    """Read and check a snapshot; raises `InvalidSnapshot` with all that is wrong."""
    if len(document) > LARGE:
        _check_outline(document)
    try:
        wire = WireSnapshot.model_validate_json(document)
    except ValidationError as error:
        raise invalid(error) from None
    if not _has_each_key_once(document, wire):
        _refuse_repeated_keys(document)
    return read_snapshot(wire, schema)


def _check_outline(document: bytes | str) -> None:
    """Refuse a large document that is like no snapshot. Pydantic would copy it, once for each field
    that is missing, and each value that is wrong: 64 MiB may become 18 GB."""
    try:
        content = from_json(document)
    except ValueError as error:
        raise NotJSON([Problem("", str(error))]) from None
    if not isinstance(content, dict):
        raise InvalidSnapshot([Problem("body", "must be an object")])
    known = {about.alias or name: about for name, about in WireSnapshot.model_fields.items()}
    needed = [name for name, about in known.items() if about.is_required()]
    missing = [name for name in needed if name not in content]
    if missing:
        raise InvalidSnapshot(Problem(name, "is required") for name in missing)
    if len(content) > len(known):
        raise InvalidSnapshot([Problem("body", f"has {len(content):,} fields")])
    for name, value in content.items():
        is_list = name in known and get_origin(known[name].annotation) is list
        items = value if is_list and isinstance(value, list) else [value]
        odd = next((i for i, item in enumerate(items) if not _is_small(item)), None)
        if odd is not None:
            place = f"{name}[{odd}]" if items is value else name
            raise InvalidSnapshot([Problem(place, "holds too many values")])


def _is_small(item: Any) -> bool:
    """Whether it is no larger than entities and facts are."""
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    inner = [part for part in parts if isinstance(part, dict | list)]
    return len(parts) <= WIDE and all(
        len(part) <= WIDE
        and not any(
            isinstance(each, dict | list)
            for each in (part.values() if isinstance(part, dict) else part)
        )
        for part in inner
    )


def _has_each_key_once(document: bytes | str, wire: WireSnapshot) -> bool:
    """Whether nothing was lost: as many quotes in the text as the keys and strings that were read
    have. Cheap, and right for all but odd documents; those are read again."""
    text = document.encode() if isinstance(document, str) else document
    if b"\\" in text:
        return False
    objects = chain((wire, wire.collector), wire.entities, wire.withdrawn)
    pairs = 5 + sum(len(each.model_fields_set) for each in objects)  # keys, and the head's strings
    pairs += sum(2 if entity.label is None else 3 for entity in wire.entities)
    pairs += sum(1 + len(key.args) for key in wire.withdrawn)
    for fact in wire.facts:
        params = fact.get("params", {})
        strings = [value for value in params.values() if isinstance(value, str)]
        pairs += len(fact) + 1 + len(fact["args"]) + len(params) + len(strings)
    return text.count(b'"') == 2 * pairs


def _refuse_repeated_keys(document: bytes | str) -> None:
    """JSON parsers keep the last of two equal keys, and what the first one held would be lost."""
    try:
        json.loads(document, object_pairs_hook=_unrepeated)
    except InvalidSnapshot:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJSON([Problem("", str(error))]) from None


def _unrepeated(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidSnapshot([Problem(twice, "is given twice in one object")])


def read_snapshot(wire: WireSnapshot, schema: Schema = SCHEMA) -> Snapshot:
    """Check a snapshot of the right shape against the vocabulary."""
    reading = _Reading(schema, {})
    snapshot = Snapshot(
        network=wire.network,
        collector=Collector(wire.collector.id, wire.collector.role),
        sequence=wire.sequence,
        observed_at=wire.observed_at,
        complete=wire.complete,
        entities=reading.entities(wire.entities),
        facts=reading.facts(wire.facts),
        withdrawn=reading.withdrawn(wire.withdrawn, wire.facts),
    )
    if reading.problems:
        raise InvalidSnapshot(reading.problems)
    return snapshot


def read_facts(
    facts: list[WireFact], entities: Iterable[Entity], group: Group, schema: Schema = SCHEMA
) -> tuple[Fact, ...]:
    """Check facts of one group (such as intents) against entities that are known already."""
    reading = _Reading(schema, {e.id: e.kind for e in entities}, group, "intents")
    read = reading.facts(facts)
    if reading.problems:
        raise InvalidSnapshot(reading.problems)
    return read


def invalid(error: ValidationError) -> InvalidSnapshot:
    """What pydantic found, as problems."""
    if error.error_count() > PROBLEMS_AT_MOST:
        return InvalidSnapshot([Problem("body", f"has {error.error_count():,} problems")])
    details = error.errors(include_url=False, include_input=False)
    if details[0]["type"] == "json_invalid":
        return NotJSON([Problem("", details[0]["msg"].removeprefix("Invalid JSON: "))])
    return InvalidSnapshot(_problem(detail) for detail in details)


def _problem(detail: ErrorDetails) -> Problem:
    field = "" if detail["loc"] else "body"
    for part in detail["loc"]:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    return Problem(field, _REASONS.get(detail["type"], detail["msg"].removeprefix("Value error, ")))


_REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this object",
    "string_too_short": "must not be empty",
    "string_too_long": f"must be at most {ID_LENGTH} characters long",
    "timezone_aware": "must have a time zone, as in 2026-11-15T22:00:00Z",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
}


_Key = tuple[str, tuple[str, ...]]  # a FactKey is one, but takes longer to make


class _Form(NamedTuple):
    """What a fact of one predicate must be like."""

    kinds: set[tuple[str, ...]]  # that its arguments may be of
    parameters: dict[str, Parameter]
    required: set[str]
    distinct: bool
    exclusive: int | None
    negatable: bool


class _Reading:
    """Checks entities and facts against the vocabulary and collects what is wrong with them."""

    def __init__(
        self,
        schema: Schema,
        kinds: Mapping[str, str],
        group: Group | None = None,
        place: str = "facts",
    ) -> None:
        self.schema, self.group, self.place = schema, group, place
        self.kinds = dict(kinds)
        self.problems: list[Problem] = []
        self.allowed = {
            fact.name: [{kind.name for kind in role.kinds} for role in fact.roles]
            for fact in schema.facts
        }
        self.forms = {
            kind.name: _Form(
                set(product(*self.allowed[kind.name])),
                {parameter.name: parameter for parameter in kind.parameters},
                {parameter.name for parameter in kind.parameters if parameter.required},
                kind.distinct,
                kind.exclusive,
                group is Group.INTENT,
            )
            for kind in schema.facts
            if self._takes(kind)
        }

    def _has_enough(self) -> bool:
        return len(self.problems) >= PROBLEMS_AT_MOST

    def entities(self, wire: list[WireEntity]) -> tuple[Entity, ...]:
        known = self.schema.entity
        read = []
        for i, entity in enumerate(wire):
            if self._has_enough():
                break
            name, kind, asn = entity.id, entity.kind, entity.asn
            misplaced = asn is not None and kind != EXTERNAL_AS.name
            if misplaced or kind not in known or name in self.kinds:
                self.problems += self._check_entity(f"entities[{i}]", entity)
            self.kinds.setdefault(name, kind)
            read.append(Entity(name, kind, asn, entity.label, entity.position))
        return tuple(read)

    def _check_entity(self, at: str, entity: WireEntity) -> Iterator[Problem]:
        if entity.kind not in self.schema.entity:
            yield Problem(f"{at}.kind", unknown(entity.kind, "kind", self.schema.entity))
        if entity.id in self.kinds:
            yield Problem(f"{at}.id", f"{_quote(entity.id)} is declared twice")
        if entity.asn is not None and entity.kind != EXTERNAL_AS.name:
            yield Problem(f"{at}.asn", f"belongs to an {EXTERNAL_AS.name}, not a {entity.kind}")

    def facts(self, wire: list[WireFact]) -> tuple[Fact, ...]:
        seen: set[_Key] = set()
        taken: set[tuple[str, str]] = set()
        read = []
        for i, fact in enumerate(wire):
            if self._has_enough():
                break
            key = fact["predicate"], tuple(fact["args"])
            right = None if key in seen else self._right(fact, key, taken)
            if right is None:
                at = f"{self.place}[{i}]"
                if key in seen:
                    self.problems.append(Problem(at, f"{FactKey(*key)} is given twice"))
                else:
                    self.problems += self._check_exclusive(at, key, taken)
                right = Fact(*key, self._check_fact(at, fact), fact.get("holds", True))
            seen.add(key)
            read.append(right)
        return tuple(read)

    def _right(self, fact: WireFact, key: _Key, taken: set[tuple[str, str]]) -> Fact | None:
        """The fact, where nothing is wrong with it at a first look; most facts end here."""
        (predicate, args), holds = key, fact.get("holds", True)
        form = self.forms.get(predicate)
        if form is None or not (holds or form.negatable):
            return None
        if tuple(map(self.kinds.get, args)) not in form.kinds:
            return None
        params: dict[str, int] = {}
        for name, value in fact.get("params", {}).items():
            parameter = form.parameters.get(name)
            number = None if parameter is None else number_of(parameter, value)
            if number is None:
                return None
            params[name] = number
        if not form.required <= params.keys() or (form.distinct and len(set(args)) < len(args)):
            return None
        if form.exclusive is not None:
            place = predicate, args[form.exclusive]
            if place in taken:
                return None
            taken.add(place)
        return Fact(predicate, args, params, holds)

    def _check_exclusive(
        self, at: str, key: _Key, taken: set[tuple[str, str]]
    ) -> Iterator[Problem]:
        predicate, args = key
        kind = self.schema.fact.get(predicate)
        if kind is None or kind.exclusive is None or len(args) != len(kind.roles):
            return
        place = (predicate, args[kind.exclusive])
        if place in taken:
            reason = f"{_quote(place[1])} has another {predicate} already"
            yield Problem(f"{at}.args[{kind.exclusive}]", reason)
        taken.add(place)

    def _check_fact(self, at: str, fact: WireFact) -> dict[str, int]:
        kind = self.schema.fact.get(fact["predicate"])
        if kind is None or not self._takes(kind):
            self.problems.append(Problem(f"{at}.predicate", self._refusal(fact["predicate"], kind)))
            return {}
        self.problems += self._check_args(f"{at}.args", kind, fact["args"], declared=True)
        if not fact.get("holds", True) and self.group is not Group.INTENT:
            self.problems.append(Problem(f"{at}.holds", "only an intent can be negated"))
        return self._check_params(f"{at}.params", kind, fact.get("params", {}))

    def _takes(self, kind: FactKind) -> bool:
        return kind.observable if self.group is None else kind.group is self.group

    def _refusal(self, name: str, kind: FactKind | None) -> str:
        if kind is not None and self.group is None:
            return f"{name} is an intent, and no collector can observe it"
        known = [fact.name for fact in self.schema.facts if self._takes(fact)]
        return unknown(name, "predicate", known)

    def _check_args(
        self, at: str, kind: FactKind, args: list[str], declared: bool
    ) -> Iterator[Problem]:
        allowed = self.allowed[kind.name]
        if len(args) != len(kind.roles):
            roles = ", ".join(role.name for role in kind.roles)
            yield Problem(at, f"{kind.name} takes {len(kind.roles)} ({roles}), not {len(args)}")
            return
        if kind.distinct and len(set(args)) < len(args):
            yield Problem(at, f"{kind.name} cannot name the same entity twice")
        for i, arg in enumerate(args):
            found = self.kinds.get(arg)
            if found in allowed[i]:
                continue
            if found is None and declared:
                yield Problem(f"{at}[{i}]", f"{_quote(arg)} is not declared in entities")
            elif found in self.schema.entity:
                role = kind.roles[i]
                wanted = " or ".join(k.name for k in role.kinds)
                reason = f"is a {found}; the {role.name} of {kind.name} is a {wanted}"
                yield Problem(f"{at}[{i}]", f"{_quote(arg)} {reason}")

    def _check_params(self, at: str, kind: FactKind, given: dict[str, Any]) -> dict[str, int]:
        read = {}
        for name, value in given.items():
            parameter = kind.parameter(name)
            if parameter is None:
                known = [p.name for p in kind.parameters]
                reason = unknown(name, f"parameter of {kind.name}", known)
                self.problems.append(Problem(f"{at}.{name}", reason))
            elif (number := number_of(parameter, value)) is None:
                self.problems.append(Problem(f"{at}.{name}", not_a_value(parameter, value)))
            else:
                read[name] = number
        for parameter in kind.parameters:
            if parameter.required and parameter.name not in given:
                self.problems.append(Problem(f"{at}.{parameter.name}", "is required"))
        return read

    def withdrawn(self, wire: list[WireFactKey], facts: list[WireFact]) -> tuple[FactKey, ...]:
        """Withdrawn facts need no declared entities: these may be gone with them."""
        given = {(fact["predicate"], *fact["args"]) for fact in facts} if wire else set()
        for i, key in enumerate(wire):
            if self._has_enough():
                break
            kind = self.schema.fact.get(key.predicate)
            at = f"withdrawn[{i}]"
            if kind is None or not kind.observable:
                self.problems.append(Problem(f"{at}.predicate", self._refusal(key.predicate, kind)))
                continue
            self.problems += self._check_args(f"{at}.args", kind, key.args, declared=False)
            identity = (key.predicate, *key.args)
            if identity in given:
                self.problems.append(Problem(at, "is given in facts, or withdrawn already"))
            given.add(identity)
        return tuple(FactKey(key.predicate, tuple(key.args)) for key in wire)


def number_of(parameter: Parameter, value: Any) -> int | None:
    """The value as an integer of the protocol's range, or None."""
    if isinstance(value, str) and value in parameter.symbols:
        return parameter.symbols.index(value)
    if type(value) is int and parameter.low <= value <= parameter.high:
        return value
    return None


def not_a_value(parameter: Parameter, value: Any) -> str:
    bounds = f"{parameter.low} to {parameter.high}"
    if parameter.symbols:
        return f"{_quote(value)} is none of {', '.join(parameter.symbols)}"
    if type(value) is not int:
        return f"{_quote(value)} is not an integer ({bounds})"
    return f"{_quote(value)} is outside {bounds}"


def unknown(name: str, what: str, known: Iterable[str]) -> str:
    return f"unknown {what} {_quote(name)}; known: {', '.join(known) or 'none'}"


def _quote(value: Any) -> str:
    """A value as an error shows it: on one line, and not longer than it is worth."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"


def dump_snapshot(snapshot: Snapshot, schema: Schema = SCHEMA) -> dict[str, Any]:
    """The wire form of a snapshot, as `parse_snapshot` reads it."""
    collector = {"id": snapshot.collector.id, "role": snapshot.collector.role}
    return {
        "schema": SCHEMA_VERSION,
        "network": snapshot.network,
        "collector": collector,
        "sequence": snapshot.sequence,
        "observed_at": snapshot.observed_at.isoformat().replace("+00:00", "Z"),
        "complete": snapshot.complete,
        "entities": [dump_entity(entity) for entity in snapshot.entities],
        "facts": [dump_fact(fact, schema) for fact in snapshot.facts],
        "withdrawn": [{"predicate": k.predicate, "args": list(k.args)} for k in snapshot.withdrawn],
    }


def dump_entity(entity: Entity) -> dict[str, Any]:
    return {name: value for name, value in entity._asdict().items() if value is not None}


def dump_fact(fact: Fact, schema: Schema = SCHEMA) -> dict[str, Any]:
    """The wire form of a fact; `holds` appears on intents alone."""
    kind = schema.fact[fact.predicate]
    document: dict[str, Any] = {"predicate": fact.predicate, "args": list(fact.args)}
    if fact.params:
        document["params"] = dump_params(fact, schema)
    if kind.group is Group.INTENT:
        document["holds"] = fact.holds
    return document


def dump_params(fact: Fact, schema: Schema = SCHEMA) -> dict[str, int | str]:
    kind = schema.fact[fact.predicate]
    return {name: _symbol(kind.parameter(name), value) for name, value in fact.params.items()}


def _symbol(parameter: Parameter | None, value: int) -> int | str:
    return parameter.symbols[value] if parameter and parameter.symbols else value
