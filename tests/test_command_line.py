"""The commands as a person types them."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from gsid_service.__main__ import differences
from gsid_service.ingest.wire import dump_snapshot, parse_snapshot
from gsid_service.records import Collector, Entity, Fact, Snapshot
from tests.simulate.test_intents import disputed


def gsid(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "gsid_service", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cases")
    result = gsid("simulate", "--split", "operations", "--count", "2", "--seed", "5", "--out", out)
    assert result.returncode == 0, result.stderr
    return out / "0001"


def test_help_lists_what_there_is() -> None:
    text = gsid("--help").stdout.decode()
    for command in ("demo", "serve", "push", "alerts", "simulate", "forwarding", "schema", "bench"):
        assert command in text


def test_the_version_is_said() -> None:
    assert gsid("--version").stdout.decode().strip() == version("gsid-service")


def test_simulate_writes_documents_that_the_service_reads(case: Path) -> None:
    names = {file.name for file in case.iterdir()}
    assert names == {"snapshot.json", "intents.json", "labels.json", "baseline.json"}
    snapshot = parse_snapshot((case / "snapshot.json").read_bytes())
    assert parse_snapshot((case / "baseline.json").read_bytes()).network == snapshot.network
    assert read(case / "intents.json")["intents"][0].keys() == {"predicate", "args", "holds"}
    observed = {fact.key: fact.params for fact in snapshot.facts}
    for label in read(case / "labels.json")["labels"]:
        key = (label["fact"]["predicate"], tuple(label["fact"]["args"]))
        assert observed[key][label["parameter"]] == label["observed"] != label["expected"]  # type: ignore[index]
        assert label["harmful"] in {True, False}


def test_the_same_seed_writes_the_same(case: Path, tmp_path: Path) -> None:
    for count in ("2", "3"):
        out = tmp_path / count
        gsid("simulate", "--split", "operations", "--count", count, "--seed", "5", "--out", out)
        for file in case.iterdir():
            assert (out / "0001" / file.name).read_bytes() == file.read_bytes()


def test_simulate_leaves_what_is_there_alone(case: Path) -> None:
    before = sorted(case.parent.rglob("*"))
    result = gsid("simulate", "--split", "standard", "--out", case.parent)
    assert result.returncode == 2
    assert b"is not an empty folder" in result.stderr
    assert sorted(case.parent.rglob("*")) == before


def test_simulate_takes_a_rate_and_a_topology(tmp_path: Path) -> None:
    arguments = ("--split", "real", "--topology", "topozoo/Abilene", "--out", tmp_path)
    assert gsid("simulate", *arguments, "--rate", "0").returncode == 0
    snapshot = parse_snapshot((tmp_path / "0000" / "snapshot.json").read_bytes())
    assert len([e for e in snapshot.entities if e.kind in {"router", "route_reflector"}]) == 11
    assert snapshot.entities[0].label == "New York"
    assert read(tmp_path / "0000" / "labels.json")["labels"] == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--split", "nope"), "--split: unknown split 'nope'; known: operations, standard"),
        (("--split", "real", "--topology", "nope"), "--topology: no topology named 'nope'"),
        (("--split", "real", "--rate", "2"), "--rate"),
        (("--split", "operations", "--rate", "0.1"), "--rate: operations cases"),
        (("--split", "real", "--count", "0"), "--count"),
    ],
)
def test_simulate_names_what_it_cannot_use(
    arguments: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    result = gsid("simulate", *arguments, "--out", tmp_path / "out")
    assert result.returncode == 2
    assert reason in " ".join(result.stderr.decode().split())
    assert not (tmp_path / "out").exists()


def test_forwarding_prints_next_hops(case: Path) -> None:
    result = gsid("forwarding", case / "snapshot.json", "--json", "--always-compare-med")
    table = json.loads(result.stdout)
    entities = read(case / "snapshot.json")["entities"]
    routers = {e["id"] for e in entities if e["kind"] in {"router", "route_reflector"}}
    assert table.keys() == {e["id"] for e in entities if e["kind"] == "network"}
    assert all(hops.keys() == routers for hops in table.values())
    everything = {e["id"] for e in entities}
    assert all(hop in everything for hops in table.values() for hop in hops.values())


def test_forwarding_reads_standard_input(case: Path) -> None:
    document = (case / "snapshot.json").read_bytes()
    piped = gsid("forwarding", "-", "--json", stdin=document)
    assert piped.stdout == gsid("forwarding", case / "snapshot.json", "--json").stdout


def test_forwarding_lists_equal_next_hops(case: Path) -> None:
    arguments = ("forwarding", case / "snapshot.json", "--json", "--always-compare-med")
    one, every = (json.loads(gsid(*arguments, *more).stdout) for more in ((), ("--equal",)))
    for network, hops in one.items():
        for router, hop in hops.items():
            assert hop in every[network][router]


def test_forwarding_against_another_shows_what_moved(case: Path) -> None:
    snapshot, baseline = case / "snapshot.json", case / "baseline.json"
    assert json.loads(gsid("forwarding", snapshot, "--against", snapshot, "--json").stdout) == []
    rows = json.loads(gsid("forwarding", snapshot, "--against", baseline, "--json").stdout)
    assert rows
    assert all(row["before"] != row["after"] for row in rows)


def test_differences_tell_apart_what_is_gone_open_and_unreachable() -> None:
    before: dict[str, Any] = {
        "same": {"R1": ["R2"]},
        "lost one of two": {"R1": ["R2", "R3"]},
        "cut off": {"R1": ["R2"]},
        "now open": {"R1": ["R2"]},
        "gone": {"R1": ["R2"]},
    }
    after: dict[str, Any] = {
        "same": {"R1": ["R2"]},
        "lost one of two": {"R1": ["R2"]},
        "cut off": {"R1": []},
        "now open": None,
        "new": {"R1": ["R2"]},
    }
    assert [tuple(row.values()) for row in differences(before, after)] == [
        ("lost one of two", "R1", ["R2", "R3"], ["R2"]),
        ("cut off", "R1", ["R2"], []),
        ("now open", "R1", ["R2"], "undetermined"),
        ("gone", "R1", ["R2"], "absent"),
        ("new", "R1", "absent", ["R2"]),
    ]


def snapshot(entities: tuple[Entity, ...], facts: tuple[Fact, ...], complete: bool) -> bytes:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    view = Snapshot("as65000", Collector("c", "test"), 1, at, complete, entities, facts)
    return json.dumps(dump_snapshot(view)).encode()


def test_forwarding_reports_a_network_without_one_outcome() -> None:
    case = disputed()
    document = snapshot(case.entities, case.facts, complete=True)
    result = gsid("forwarding", "-", "--json", stdin=document)
    assert json.loads(result.stdout) == {"N": None}
    assert "N has two or more stable outcomes" in result.stderr.decode()
    table = gsid("forwarding", "-", stdin=document).stdout.decode()
    assert table.splitlines() == ["network\trouter\tnext hop", "N\t\tundetermined"]


def test_ids_are_printed_as_they_are() -> None:
    odd = ["2001:db8:a:b::/64", "[/N]", "[b]N", "long " * 30 + "name"]
    networks = [Entity(name, "network") for name in odd]
    document = snapshot((Entity("R1", "router"), *networks), (), complete=False)
    result = gsid("forwarding", "-", stdin=document)
    lines = result.stdout.decode().splitlines()
    assert lines[1:] == [f"{name}\tR1\tunreachable" for name in odd]
    assert b"not complete" in result.stderr


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"{", "not a snapshot"),
        (b'{"schema": "gsid.snapshot/1"}', "network: is required"),
        (None, "No such file or directory"),
    ],
)
def test_forwarding_names_what_is_wrong(
    document: bytes | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.json"
    if document is not None:
        file.write_bytes(document)
    result = gsid("forwarding", file, "--json")
    assert result.returncode == 2
    assert reason in result.stderr.decode()
    assert result.stdout == b""


def test_topologies_are_listed() -> None:
    rows = json.loads(gsid("topologies", "--json").stdout)
    assert {"name": "topozoo/Abilene", "routers": 11, "links": 14} in rows
