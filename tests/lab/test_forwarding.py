"""`gsid forwarding` on what the collector reads, against the routers' own tables."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gsid_service.__main__ import app
from gsid_service.assemble.merge import extend, merge
from gsid_service.ingest.wire import dump_snapshot, parse_snapshot
from gsid_service.records import Collector, Snapshot
from gsid_service.schema import FWD
from tests.lab import plan
from tests.lab.design import PREFIXES, ROUTERS, drawn
from tests.lab.lab import Lab, Table, running

DESIGNS = 20
SETTLE_SECONDS = 30.0  # OSPFv3 waits 5 s between two link states of one router


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running("0") as started:
        started.settle()
        yield started


@pytest.fixture(scope="module")
def settings(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("collect") / "collect.toml"
    file.write_text(lab.settings("http://127.0.0.1:9", file.parent))
    return file


def printed(*command: str) -> str:
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return done.stdout


def collected(settings: Path) -> Snapshot:
    """What all routers see, merged into one network."""
    documents = json.loads(printed("collect", "--config", str(settings), "--once"))
    each = [parse_snapshot(json.dumps(document)) for document in documents]
    merged = merge(extend(None, one, one.collector.id) for one in each)
    assert merged.conflicts == ()
    who, first = Collector("all", "router"), each[0]
    return Snapshot(first.network, who, 1, first.observed_at, True, merged.entities, merged.facts)


def forwarded(snapshot: Snapshot, file: Path) -> Table:
    """What `gsid forwarding` makes of it, for the prefixes that have one stable outcome."""
    file.write_text(json.dumps(dump_snapshot(snapshot)))
    return {
        (router, network): frozenset(hops)
        for network, routers in json.loads(
            printed("forwarding", str(file), "--json", "--equal")
        ).items()
        for router, hops in (routers or {}).items()
    }


def differing(real: Table, simulated: Table) -> Table:
    """Where a router does otherwise than simulated. It may use fewer of equal ways in two cases:
    of equal external peers it takes the one that it heard first, and FRR 8.4's ospf6d forgets some
    of several equal-cost paths, where its ospfd has them all."""
    return {
        pair: real[pair]
        for pair, hops in simulated.items()
        if real[pair] != hops and not (_may_use_fewer(pair[1], hops) and set() < real[pair] < hops)
    }


def _may_use_fewer(prefix: str, hops: frozenset[str]) -> bool:
    return plan.is_v6(prefix) or hops.isdisjoint(ROUTERS)


@pytest.mark.parametrize("seed", range(DESIGNS))
def test_what_is_simulated_is_what_the_routers_do(
    lab: Lab, settings: Path, tmp_path: Path, seed: int
) -> None:
    lab.apply(drawn(seed))
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        real = lab.settle()
        snapshot = collected(settings)
        simulated = forwarded(snapshot, tmp_path / "snapshot.json")
        # Until OSPF has told everybody, a router may still be on its way to what it was told.
        if not differing(real, simulated) or time.monotonic() > deadline:
            break
    assert differing(real, simulated) == {}
    assert len(simulated) >= len(ROUTERS) * (len(PREFIXES) - 1), "hardly anything was compared"
    reported = {fact.args for fact in snapshot.facts if fact.predicate == FWD.name}
    assert reported == {(*pair, hop) for pair, hops in real.items() for hop in hops}
