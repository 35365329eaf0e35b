"""`gsid check` and `gsid change` as a person or a pipeline types them, against the application."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gsid_service.__main__ import app
from tests.api.inside import NET, ROUTE, Inside, inside
from tests.command.test_report import parsed
from tests.flow.network import small
from tests.flow.server import gsid
from tests.postgres import free_port


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Inside]:
    with inside(f"sqlite:///{tmp_path / 'gsid.db'}") as opened:
        opened.see()
        yield opened


def run(net: Inside, *arguments: str | Path, stdin: str | None = None) -> Result:
    given = [*map(str, arguments), "--url", net.address]
    return CliRunner().invoke(app, given, input=stdin)


def wanted(folder: Path, value: Any, parameter: str = "local_pref") -> Path:
    file = folder / "candidate.json"
    change = {"fact": ROUTE, "parameter": parameter, "value": value}
    file.write_text(json.dumps({"changes": [change]}))
    return file


def test_clean_is_0(net: Inside, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(small(NET)))
    done = run(net, "check", file)
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert "as65000: 0 new findings" in done.stderr


def test_findings_are_1_and_the_tables_say_what_breaks_and_moves(
    net: Inside, tmp_path: Path
) -> None:
    done = run(net, "check", wanted(tmp_path, 50), "--network", NET)
    assert done.exit_code == 1, done.output
    assert "is 50, expected 200" in done.stdout
    assert "reachable(R1, 203.0.113.0/24, R3)\tderived\tbroken" in done.stdout
    assert "R3\t203.0.113.0/24\tAS65101@R3\tRR1" in done.stdout


def test_standard_input(net: Inside) -> None:
    body = json.dumps(small(NET, local_pref=50))
    assert run(net, "check", "-", "--format", "json", stdin=body).exit_code == 1


def test_json_is_asked_for_as_of_every_command(net: Inside, tmp_path: Path) -> None:
    asked = ("check", wanted(tmp_path, 50), "--network", NET, "--json")
    done = run(net, *asked)
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, "findings")
    done = run(net, *asked, "--format", "sarif")
    assert (done.exit_code, done.stderr) == (2, "--json: not with --format sarif\n")


def test_forms_for_machines(net: Inside, tmp_path: Path) -> None:
    file = wanted(tmp_path, 50)
    asked = ("check", file, "--network", NET, "--format")
    answer = json.loads(run(net, *asked, "json").stdout)
    assert answer["verdict"] == "findings"
    sarif = json.loads(run(net, *asked, "sarif").stdout)
    assert sarif["runs"][0]["results"][0]["message"]["text"] == answer["new"][0]["summary"]
    out = tmp_path / "junit.xml"
    done = run(net, *asked, "junit", "--output", out)
    assert (done.exit_code, done.stdout) == (1, "")
    assert parsed(out.read_text())[0].get("failures") == "1"


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("{", ("--network", NET), "not JSON"),
        ('{"changes": []}', (), "--network"),
        ('{"changes": []}', ("--network", NET), "changes"),
        ('{"changes": [], "changes": []}', ("--network", NET), "changes: is given twice"),
        ("5", ("--network", NET), "neither a snapshot nor"),
        (json.dumps(small(NET)), ("--network", "other"), "network: 'other' is not known"),
        (json.dumps(small(NET, local_pref=-1)), (), "facts[10].params.local_pref"),
        (json.dumps(small(NET)), ("--output", "x"), "--output"),
        (json.dumps(small(NET)), ("--format", "pdf"), "--format"),
    ],
)
def test_bad_input_is_2_and_names_it(
    net: Inside, tmp_path: Path, content: str, options: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "candidate.json"
    file.write_text(content)
    done = run(net, "check", file, *options)
    assert done.exit_code == 2, done.output
    assert said in done.stderr


def test_no_file_and_no_service_are_2(tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    done = gsid("check", str(tmp_path / "none.json"), "--url", nowhere)
    assert (done.returncode, "none.json" in done.stderr) == (2, True)
    file = wanted(tmp_path, 50)
    done = gsid("check", str(file), "--network", NET, "--url", nowhere)
    assert done.returncode == 2
    assert f"{nowhere} does not answer" in done.stderr


def test_the_life_of_a_change_from_the_command_line(net: Inside, tmp_path: Path) -> None:
    net.now = datetime.now(UTC)  # `--for` counts from the time of whoever types it
    file = wanted(tmp_path, 50)
    asked = ("change", "announce", file, "--network", NET, "--ticket", "CHG-7")
    done = run(net, *asked, "--for", "2h", "--author", "ann", "--comment", "R3 is drained")
    assert done.exit_code == 0, done.output
    assert "c1 is announced from" in done.stderr
    assert "is 50, expected 200" in done.stdout
    window = "2036-11-15T22:00:00Z/2036-11-16T00:00:00Z"
    done = run(net, *asked, "--window", window, "--json")
    assert json.loads(done.stdout)["begins_at"] == "2036-11-15T22:00:00Z"
    assert "CHG-7\tann\tpending" in run(net, "change", "list").stdout
    done = run(net, "change", "cancel", "c1")
    assert (done.exit_code, "c1 is cancelled" in done.stderr) == (0, True)
    assert [c["id"] for c in json.loads(run(net, "change", "list", "--json").stdout)] == ["c2"]
    every = json.loads(run(net, "change", "list", "--all", "--network", NET, "--json").stdout)
    assert [(c["id"], c["status"]) for c in every] == [("c2", "pending"), ("c1", "cancelled")]


def test_a_snapshot_is_announced_as_a_candidate(net: Inside) -> None:
    body = json.dumps(small(NET, local_pref=50))
    window = "2036-11-15T22:00:00Z/2036-11-16T00:00:00Z"
    given = ("change", "announce", "-", "--ticket", "T", "--window", window, "--json")
    answer = json.loads(run(net, *given, stdin=body).stdout)
    assert [v["announced"] for v in answer["values"]] == [50]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--window"),
        (("--for", "2h", "--window", "a/b"), "--window"),
        (("--window", "2036-11-15T22:00:00Z"), "START/END"),
        (("--window", "now/later"), "begins_at"),
        (("--for", "2 hours"), "--for"),
        (("--for", "0h"), "--for"),
    ],
)
def test_a_bad_window_is_2_and_names_it(
    net: Inside, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    file = wanted(tmp_path, 50)
    asked = ("change", "announce", file, "--network", NET, "--ticket", "T")
    done = run(net, *asked, *options)
    assert done.exit_code == 2, done.output
    assert said in done.stderr


def test_a_change_that_is_not_there_is_2(net: Inside) -> None:
    done = run(net, "change", "cancel", "c9")
    assert (done.exit_code, "c9" in done.stderr) == (2, True)


def test_a_push_that_cannot_read_a_file_tells_what_was_taken(net: Inside, tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text(json.dumps(small(NET, sequence=9)))
    done = run(net, "push", good, tmp_path / "none.json")
    assert done.exit_code != 0
    assert "none.json was not taken; 1 before it were" in done.stderr.replace("\n", " ")


def test_a_push_names_the_file_that_was_not_taken(net: Inside, tmp_path: Path) -> None:
    file = tmp_path / "list.json"
    file.write_text("[]")
    done = run(net, "push", file)
    assert done.exit_code == 2
    assert "body: Input should be an object" in done.stderr
    assert f"{file} was not taken" in done.stderr.replace("\n", " ")
