"""The wire form of a snapshot: JSON in, a `Snapshot` or all that is wrong with it out; and back."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, get_origin

from pydantic import ValidationError
from pydantic_core import from_json

from gsid_service.ingest.problems import InvalidSnapshot, NotJSON, Problem, invalid
from gsid_service.ingest.shapes import WireFact, WireSnapshot
from gsid_service.ingest.strict import refuse_repeated_keys
from gsid_service.ingest.vocabulary import Reading
from gsid_service.records import Collector, Entity, Fact, Snapshot
from gsid_service.schema import SCHEMA, Group, Parameter, Schema

SCHEMA_VERSION = "gsid.snapshot/1"
LARGE = 1 << 20  # bytes of a document
WIDE = 64  # values in one entity, one fact or its parameters


def parse_snapshot(document: bytes | str, schema: Schema = SCHEMA) -> Snapshot:
    """Read and check a snapshot; raises `InvalidSnapshot` with all that is wrong."""
    if len(document) > LARGE:
        _check_outline(document)
    try:
        wire = WireSnapshot.model_validate_json(document)
    except ValidationError as error:
        raise invalid(error) from None
    if not _has_each_key_once(document, wire):
        refuse_repeated_keys(document)
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


def read_snapshot(wire: WireSnapshot, schema: Schema = SCHEMA) -> Snapshot:
    """Check a snapshot of the right shape against the vocabulary."""
    reading = Reading(schema, {})
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
    reading = Reading(schema, {e.id: e.kind for e in entities}, group, "intents")
    read = reading.facts(facts)
    if reading.problems:
        raise InvalidSnapshot(reading.problems)
    return read


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
