"""Small records for tests of the store and of the rooms above it."""

import json
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from gsid_service.ingest.wire import dump_snapshot
from gsid_service.records import Collector, Entity, Fact, FactKey, Snapshot
from gsid_service.store.snapshots import Incoming

NOW = datetime(2026, 11, 15, 22, 0, 0, 123456, tzinfo=UTC)
ROUTERS = tuple(Entity(name, "router") for name in ("R1", "R2", "R3"))


def link(a: str, b: str, weight: int) -> Fact:
    return Fact("connected", (a, b), {"ospf_weight": weight})


def snapshot(
    sequence: int,
    facts: Iterable[Fact] = (),
    *,
    network: str = "net",
    collector: str = "c1",
    complete: bool = True,
    entities: tuple[Entity, ...] = ROUTERS,
    withdrawn: Iterable[FactKey] = (),
    at: datetime | None = None,
) -> Snapshot:
    """One collector's view; observed a second later with every sequence."""
    observed_at = NOW + timedelta(seconds=sequence) if at is None else at
    who = Collector(collector, "router")
    return Snapshot(
        *(network, who, sequence, observed_at, complete, entities, tuple(facts), tuple(withdrawn))
    )


def incoming(one: Snapshot) -> Incoming:
    """A snapshot as the inbox takes it."""
    body = json.dumps(dump_snapshot(one)).encode()
    return Incoming(one, sha256(body).digest(), zlib.compress(body))
