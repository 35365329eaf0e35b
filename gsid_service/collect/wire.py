"""The wire form of a snapshot, and packed as it is kept and sent."""

import gzip
import json
from datetime import datetime
from typing import Any

from gsid_service.collect.view import Changes
from gsid_service.records import Collector, Entity, Fact, FactKey

FORM = "gsid.snapshot/1"


def document(
    network: str,
    collector: Collector,
    sequence: int,
    observed_at: datetime,
    complete: bool,
    said: Changes,
) -> dict[str, Any]:
    """A snapshot, as `POST /ingest` takes it."""
    return {
        "schema": FORM,
        "network": network,
        "collector": collector._asdict(),
        "sequence": sequence,
        "observed_at": observed_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "complete": complete,
        "entities": [_entity(entity) for entity in said.entities],
        "facts": [_fact(fact) for fact in said.facts],
        "withdrawn": [_key(key) for key in said.withdrawn],
    }


def packed(snapshot: dict[str, Any]) -> bytes:
    text = json.dumps(snapshot, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), compresslevel=1, mtime=0)


def _entity(entity: Entity) -> dict[str, Any]:
    return {name: value for name, value in entity._asdict().items() if value is not None}


def _fact(fact: Fact) -> dict[str, Any]:
    return _key(fact.key) | ({"params": dict(fact.params)} if fact.params else {})


def _key(key: FactKey) -> dict[str, Any]:
    return {"predicate": key.predicate, "args": list(key.args)}
