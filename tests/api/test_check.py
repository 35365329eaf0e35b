"""The check before a change, through the real application on both databases."""

import threading
from typing import Any

import httpx
import pytest

from gsid_service.diagnose.apart import Lost
from gsid_service.diagnose.diagnosis import Diagnosis, Here, Limits
from gsid_service.diagnose.known import Observation
from tests.api.inside import NET, NETWORK, ROUTE, Differs, Inside
from tests.flow.network import small

BACKUP = {"predicate": "bgp_route", "args": ["AS65101@R2", "203.0.113.0/24"]}


def value(number: Any, fact: Any = ROUTE, parameter: str = "local_pref") -> dict[str, Any]:
    return {"fact": fact, "parameter": parameter, "value": number}


def ask(opened: Inside, *values: dict[str, Any]) -> httpx.Response:
    return opened.client.post(f"{NETWORK}/check", json={"changes": list(values)})


def test_a_value_that_moves_the_exit_is_found_with_its_proof(watched: Inside) -> None:
    answer = ask(watched, value(50))
    assert answer.status_code == 200, answer.text
    checked = answer.json()
    assert checked["verdict"] == "findings"
    (found,) = checked["new"]
    assert (found["fact"], found["parameter"]) == (ROUTE, "local_pref")
    assert (found["observed"], found["expected"], found["severity"]) == (50, 200, "critical")
    assert "local_pref on AS65101@R3 → 203.0.113.0/24 is 50, expected 200" in found["summary"]
    assert "restoring 200 repairs all" in found["summary"]
    moved = {(m["router"], m["before"], m["after"]) for m in checked["moved"]}
    assert ("R3", "AS65101@R3", "RR1") in moved
    assert ("R2", "RR1", "AS65101@R2") in moved
    broken = {(*b["args"], b["source"]) for b in checked["would_break"]}
    assert ("R1", "203.0.113.0/24", "R3", "derived") in broken
    path = next(b for b in checked["would_break"] if b["args"][0] == "R1")
    assert (path["wanted"][-1], path["actual"][-1]) == ("AS65101@R3", "AS65101@R2")
    assert (checked["existing"], checked["would_repair"], checked["undetermined"]) == ([], [], [])


def test_nothing_is_kept(watched: Inside) -> None:
    before = [watched.get(path) for path in ("", "/snapshots", "/graph", "/baseline/history")]
    ask(watched, value(50)).raise_for_status()
    watched.client.post(f"{NETWORK}/check", json=small(NET, "rr9", 77, local_pref=1))
    assert before == [
        watched.get(path) for path in ("", "/snapshots", "/graph", "/baseline/history")
    ]
    assert watched.alerts() == []


def test_a_snapshot_is_merged_as_the_service_would(net: Inside) -> None:
    """Of the same collector, older by its own time: it still stands for what would be seen."""
    as_values = ask(net, value(50)).json()
    body = small(NET, "rr1", 0, local_pref=50)
    assert net.client.post(f"{NETWORK}/check", json=body).json() == as_values
    same = small(NET, "rr1", 0)
    answer = net.client.post(f"{NETWORK}/check", json=same).json()
    assert (answer["verdict"], answer["moved"]) == ("clean", [])


def test_what_another_collector_says_stays(net: Inside) -> None:
    link = {"predicate": "connected", "args": ["R1", "R2"], "params": {"ospf_weight": 10}}
    body = small(NET, "other", 1) | {"facts": [link], "complete": False}
    assert net.client.post(f"{NETWORK}/check", json=body).json()["moved"] == []


def test_a_route_that_is_withdrawn_moves_traffic(net: Inside) -> None:
    body = small(NET, "rr1", 9) | {"facts": [], "complete": False, "withdrawn": [ROUTE]}
    checked = net.client.post(f"{NETWORK}/check", json=body).json()
    assert {m["router"] for m in checked["moved"]} == {"R1", "R2", "R3", "RR1"}
    assert {b["source"] for b in checked["would_break"]} == {"derived"}
    assert checked["verdict"] == "clean"  # which the derived intents alone do not decide


def test_a_stated_intent_that_would_break_is_a_finding(net: Inside) -> None:
    intent = {"predicate": "reachable", "args": ["R1", "203.0.113.0/24", "R3"]}
    put = net.client.put(f"{NETWORK}/intents", json={"intents": [intent]})
    assert put.status_code == 200
    body = small(NET, "rr1", 9) | {"facts": [], "complete": False, "withdrawn": [ROUTE]}
    checked = net.client.post(f"{NETWORK}/check", json=body).json()
    assert (checked["verdict"], checked["new"]) == ("findings", [])
    assert checked["would_break"][0]["source"] == "stated"


def test_what_is_wrong_already_is_told_apart_and_a_repair_is_seen(net: Inside) -> None:
    net.see(local_pref=50)
    assert len(net.alerts()) == 1
    checked = ask(net, value(11, BACKUP, "med")).json()
    assert [f["parameter"] for f in checked["new"]] == ["med"]
    assert [f["parameter"] for f in checked["existing"]] == ["local_pref"]
    repaired = ask(net, value(200)).json()
    assert (repaired["verdict"], repaired["existing"]) == ("clean", [])
    assert {b["args"][0] for b in repaired["would_repair"]} == {"R1", "R2", "RR1"}
    assert {m["router"] for m in repaired["moved"]} == {"R1", "R2", "R3", "RR1"}
    worse = ask(net, value(40)).json()
    assert [f["observed"] for f in worse["new"]] == [40]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (
            {"changes": [value(1, {"predicate": "bgp_route", "args": ["R1", "x"]})]},
            "changes[0].fact",
        ),
        ({"changes": [value(1), value(1, parameter="colour")]}, "changes[1].parameter"),
        ({"changes": [value(-1)]}, "changes[0].value"),
        ({"changes": [value(1.5)]}, "changes[0].value"),
        ({"changes": [value(True)]}, "changes[0].value"),
        ({"changes": [value(1), value(2)]}, "changes[1]"),
        ({"changes": []}, "changes"),
        ({"changes": [value(1)], "more": 1}, "more"),
        ({"changes": [{"parameter": "med", "value": 1}]}, "changes[0].fact"),
        ({}, "schema"),
        ([], "body"),
        (small("other"), "network"),
        (small(NET, local_pref=-1), "facts[10].params.local_pref"),
    ],
)
def test_bad_input_names_the_field(net: Inside, body: Any, field: str) -> None:
    answer = net.client.post(f"{NETWORK}/check", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in {error["field"] for error in answer.json()["errors"]}


def test_other_refusals(net: Inside) -> None:
    post = net.client.post
    assert post("/api/v1/networks/nope/check", json=small("nope")).status_code == 404
    header = {"Content-Type": "application/json"}
    assert post(f"{NETWORK}/check", content=b"{", headers=header).status_code == 400
    assert post(f"{NETWORK}/check", content=b"{}").status_code == 415


def test_without_a_process_that_scores_a_check_is_told_to_come_again(net: Inside) -> None:
    class Gone(Here):
        def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:  # noqa: ARG002
            raise Lost("the scoring process ended (exit code -9)")

    net.service.diagnose = Gone(Differs(), "gone")
    answer = ask(net, value(50))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["detail"] == "not scored: the scoring process ended (exit code -9)"


def test_too_many_checks_at_once_are_told_to_come_again(net: Inside) -> None:
    taken = 0
    while net.service.checking.acquire(blocking=False):
        taken += 1
    answer = ask(net, value(50))
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
    net.service.checking.release(taken)
    assert ask(net, value(50)).status_code == 200


def test_ingest_goes_on_during_a_check(net: Inside) -> None:
    """A check that waits holds neither the event loop nor the database."""
    entered, leave = threading.Event(), threading.Event()
    diagnose = net.service.diagnose

    class Waiting:
        name = "waiting"
        pid = 0

        def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
            entered.set()
            leave.wait(20)
            return diagnose(seen, limits)

        def stop(self) -> None: ...

    net.service.diagnose = Waiting()
    answers: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: answers.append(ask(net, value(50))))
    asking.start()
    assert entered.wait(10)
    accepted = net.client.post("/ingest", json=small(NET, "rr1", 500))
    leave.set()
    asking.join()
    assert accepted.status_code == 202
    assert answers[0].status_code == 200


def test_a_candidate_that_is_cut_short_does_not_pass(net: Inside) -> None:
    """Nobody stated an intent, and no value is wrong: there is none left."""
    empty = small(NET, "rr1", 0) | {"entities": [], "facts": []}
    checked = net.client.post(f"{NETWORK}/check", json=empty).json()
    assert (checked["verdict"], checked["new"]) == ("findings", [])
    assert {move["after"] for move in checked["moved"]} == {None}


def test_a_router_that_loses_its_only_way_does_not_pass(net: Inside) -> None:
    whole = small(NET, "rr1", 0)
    cut = [f for f in whole["facts"] if not (f["predicate"] == "connected" and "R1" in f["args"])]
    assert len(cut) < len(whole["facts"])
    checked = net.client.post(f"{NETWORK}/check", json=whole | {"facts": cut}).json()
    assert checked["verdict"] == "findings"
    assert [m["router"] for m in checked["moved"] if m["after"] is None] == ["R1"]
