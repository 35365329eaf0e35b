"""23 routers, two collectors, a mistake: from the first snapshot to the resolved alert.

On the real server process, by REST, metrics and command line, on both databases.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from gsid_service.__main__ import app
from gsid_service.records import Fact, FactKey
from gsid_service.schema import LOCAL_PREF
from tests.flow import network
from tests.flow.server import Server, gsid, running

NAME = "as65000"
API = "/api/v1"
PATH = f"{API}/networks/{NAME}"


@pytest.fixture
def server(database_url: str, tmp_path: Path) -> Iterator[Server]:
    with running(database_url, tmp_path) as started:
        yield started


def post(server: Server, document: dict[str, Any]) -> str:
    answer = server.client.post("/ingest", json=document)
    assert answer.status_code == 202, answer.text
    assert answer.json()["duplicate"] is False
    snapshot: str = answer.json()["snapshot_id"]
    return snapshot


def observe(server: Server, sequence: int, facts: tuple[Fact, ...]) -> str:
    """Both collectors report; the id of the newer snapshot."""
    entities = network.large().entities
    inside, outside = network.views(facts)
    post(server, network.document(NAME, "igp1", sequence, entities, inside))
    return post(server, network.document(NAME, "rr1", sequence, entities, outside))


def scores(server: Server, snapshot: str) -> list[dict[str, Any]]:
    answer = server.client.get(
        f"{PATH}/scores", params={"snapshot": snapshot, "wait": 30, "limit": 1000}
    )
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def items(client: httpx.Client, path: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(path, params=query).raise_for_status().json()["items"]
    return found


def metric(server: Server, name: str, **labels: str) -> float:
    """The value of one series."""
    for line in server.client.get("/metrics").raise_for_status().text.splitlines():
        if line.startswith(f"{name}{{") and all(f'{k}="{v}"' in line for k, v in labels.items()):
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"there is no {name} with {labels}")


def test_a_mistake_from_first_snapshot_to_resolved(server: Server) -> None:
    case = network.large()
    key, right, wrong = network.mistake(case)
    first = scores(server, observe(server, 1, case.facts))
    assert len(first) == sum(
        p in f.params
        for f in case.facts
        for p in ("local_pref", "as_path_length", "med", "ospf_weight")
    )
    assert items(server.client, f"{API}/alerts") == [], "the first view must be quiet"
    baseline = server.client.get(f"{PATH}/baseline").json()
    assert baseline["provisional"] is True
    assert len(baseline["facts"]) == len(case.facts)

    mistaken = network.changed(case.facts, key, LOCAL_PREF.name, wrong)
    leading = scores(server, observe(server, 2, mistaken))[0]
    assert_leads(leading, key, right, wrong)
    (alert,) = items(server.client, f"{API}/alerts", status="firing")
    assert_tells(alert, key, right, wrong)
    severity = alert["severity"]
    assert metric(server, "gsid_alerts", network=NAME, severity=severity, status="firing") == 1
    assert metric(server, "gsid_anomaly_score_max", network=NAME, parameter="local_pref") > 0.8
    assert metric(server, "gsid_broken_intents", network=NAME, kind="reachable") > 0
    assert metric(server, "gsid_snapshots_total", network=NAME, outcome="accepted") == 4

    put_back = scores(server, observe(server, 3, case.facts))
    assert put_back[0]["score"] < 0.8
    assert items(server.client, f"{API}/alerts", status="firing") == []
    (resolved,) = items(server.client, f"{API}/alerts", status="resolved")
    history = server.client.get(f"{API}/alerts/{resolved['id']}").json()["events"]
    assert [event["what"] for event in history] == ["opened", "resolved"]
    assert metric(server, "gsid_alerts", network=NAME, severity=severity, status="firing") == 0
    assert metric(server, "gsid_broken_intents", network=NAME, kind="reachable") == 0
    assert "Traceback" not in server.logged


def assert_leads(leading: dict[str, Any], key: FactKey, right: int, wrong: int) -> None:
    assert leading["fact"] == {"predicate": key.predicate, "args": list(key.args)}
    assert leading["parameter"] == LOCAL_PREF.name
    assert (leading["observed"], leading["baseline"]) == (wrong, right)
    assert leading["score"] >= 0.8
    assert leading["stale"] is False


def assert_tells(alert: dict[str, Any], key: FactKey, right: int, wrong: int) -> None:
    assert alert["fact"] == {"predicate": key.predicate, "args": list(key.args)}
    assert alert["parameter"] == LOCAL_PREF.name
    assert (alert["observed"], alert["expected"]) == (wrong, right)
    assert alert["severity"] == "critical", "reachable intents are broken"
    assert alert["broken_intents"]
    assert {intent["source"] for intent in alert["broken_intents"]} == {"derived"}
    assert alert["reverting_repairs"] == len(alert["broken_intents"])
    assert alert["moved"]
    assert all(move["before"] != move["after"] for move in alert["moved"])
    assert alert["collector"] == "rr1"


def test_commands_speak_to_the_service(server: Server, tmp_path: Path) -> None:
    case = network.large()
    key, right, wrong = network.mistake(case)
    mistaken = network.changed(case.facts, key, LOCAL_PREF.name, wrong)
    files = []
    for sequence, facts in ((1, case.facts), (2, mistaken)):
        for collector, view in zip(("igp1", "rr1"), network.views(facts), strict=True):
            document = network.document(NAME, collector, sequence, case.entities, view)
            files.append(tmp_path / f"{collector}-{sequence}.json")
            files[-1].write_text(json.dumps(document))
    pushed = told(server, "push", *map(str, files[:2]))
    scores(server, pushed[-1]["snapshot_id"])
    pushed = told(server, "push", *map(str, files[2:]))
    assert [row["duplicate"] for row in pushed] == [False, False]
    scores(server, pushed[-1]["snapshot_id"])

    (status,) = told(server, "status")
    assert (status["name"], status["facts"], status["problem"]) == (NAME, len(case.facts), None)
    (alert,) = told(server, "alerts", "--network", NAME)
    assert_tells(alert, key, right, wrong)
    assert "acknowledged" in said(server, "ack", alert["id"], "--note", "looking")
    (alert,) = told(server, "alerts")
    assert alert["status"] == "acknowledged"

    derived = told(server, "intents", "list", NAME)
    assert {intent["source"] for intent in derived} == {"derived"}
    stated = {"intents": [{k: i[k] for k in ("predicate", "args", "holds")} for i in derived[:3]]}
    wanted = tmp_path / "intents.json"
    wanted.write_text(json.dumps(stated))
    assert "3 stated" in said(server, "intents", "put", NAME, str(wanted))
    assert "3 stated" in said(server, "intents", "derive", NAME)

    assert "1 alert is over with it" in said(server, "baseline", "approve", NAME, "--yes")
    newest, provisional, *_ = told(server, "baseline", "history", NAME)
    assert (newest["provisional"], provisional["provisional"]) == (False, True)
    until_up_to_date(server)
    assert told(server, "alerts") == [], "an approval clears what it legitimises"
    (alert,) = told(server, "alerts", "--all")
    assert alert["status"] == "resolved"


def told(server: Server, *arguments: str) -> Any:
    return json.loads(command(server, *arguments, "--json").stdout)


def said(server: Server, *arguments: str) -> str:
    return command(server, *arguments).stderr


def command(server: Server, *arguments: str) -> Result:
    """A command, within this process: starting Python a dozen times takes longer than the test."""
    done = CliRunner().invoke(app, arguments, env={"GSID_URL": server.url})
    assert done.exit_code == 0, done.output
    return done


def until_up_to_date(server: Server) -> None:
    for _ in range(600):
        if server.client.get(PATH).json()["up_to_date"]:
            return
    raise AssertionError("the cycle never caught up")


@pytest.mark.parametrize("command", [["ack", "a1"], ["baseline", "approve", NAME]])
def test_commands_that_change_something_answer_in_json_too(command: list[str]) -> None:
    """Without a service they fail to reach it, not on an unknown option."""
    done = gsid(*command, "--json", GSID_URL="http://127.0.0.1:9")
    assert "No such option" not in done.stderr


def test_a_restart_goes_on_where_it_was(server: Server) -> None:
    case = network.large()
    key, right, wrong = network.mistake(case)
    scores(server, observe(server, 1, case.facts))
    mistaken = network.changed(case.facts, key, LOCAL_PREF.name, wrong)
    observe(server, 2, mistaken)
    server.kill()
    server.start()
    until_up_to_date(server)
    (alert,) = items(server.client, f"{API}/alerts", status="firing")
    assert_tells(alert, key, right, wrong)
    server.stop()
    server.start()
    assert metric(server, "gsid_alerts", network=NAME, severity="critical", status="firing") == 1, (
        "the series of a network must be there from the start, not only after its next cycle"
    )
