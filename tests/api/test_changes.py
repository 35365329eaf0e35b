"""The life of an announced change, through the real application on both databases."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from gsid_service.diagnose.diagnosis import Here
from gsid_service.jobs.embedded import Embedded
from gsid_service.records import Graph, Scores
from gsid_service.score.rivals import diff
from gsid_service.store import tables
from tests.api.inside import NET, NETWORK, ROUTE, Inside
from tests.flow.network import small

STALE = 900  # seconds, the default


def announcement(net: Inside, begin: float = 1, end: float = 2, **values: int) -> dict[str, Any]:
    """New values of the route, from and to so many hours from now."""
    changes = [{"fact": ROUTE, "parameter": p, "value": v} for p, v in values.items()]
    return {
        "changes": changes,
        "begins_at": (net.now + timedelta(hours=begin)).isoformat(),
        "ends_at": (net.now + timedelta(hours=end)).isoformat(),
        "author": "ann",
        "ticket": "CHG-7",
        "comment": "R3 is drained",
    }


def post(net: Inside, body: Any) -> httpx.Response:
    return net.client.post(f"{NETWORK}/changes", json=body)


def announced(net: Inside, begin: float = 0, end: float = 2, **values: int) -> Any:
    answer = post(net, announcement(net, begin, end, **values))
    assert answer.status_code == 201, answer.text
    return answer.json()


def status(net: Inside) -> tuple[str, str]:
    change = net.get("/changes")["items"][0]
    return change["status"], change["summary"]


def test_the_life_of_a_change_that_is_applied(watched: Inside) -> None:
    done = announced(watched, begin=1, end=2, local_pref=50, med=5)
    assert (done["id"], done["status"], done["author"]) == ("c1", "pending", "ann")
    assert done["check"]["verdict"] == "findings"
    assert {m["router"] for m in done["check"]["moved"]} == {"R1", "R2", "R3", "RR1"}
    assert [(v["before"], v["announced"]) for v in done["values"]] == [(200, 50), (0, 5)]

    watched.later(hours=1)
    watched.see()
    assert status(watched)[0] == "applying"
    watched.restart()
    watched.see(local_pref=50)
    place = "AS65101@R3 → 203.0.113.0/24"
    assert status(watched) == ("applying", f"1 of 2 applied: med on {place} is 0, announced 5")
    watched.see(local_pref=50, med=5)
    assert status(watched) == ("applied", "2 of 2 applied")
    assert watched.alerts() == []
    assert len(watched.get("/baseline/history")["items"]) == 1

    watched.later(hours=1)
    watched.see(local_pref=50, med=5)
    assert watched.get("/changes/c1")["closed_at"] is not None
    approval = watched.get("/baseline/history")["items"][0]
    assert (approval["approved_by"], approval["ticket"]) == ("ann", "CHG-7")
    exits = {i["args"][2] for i in watched.get("/intents")["items"]}
    assert exits == {"R2"}
    assert sum(watched.get("")["broken_intents"].values()) == 0
    assert watched.alerts() == []

    watched.see()
    (alert,) = [a for a in watched.alerts() if a["parameter"] == "local_pref"]
    assert (alert["observed"], alert["expected"], alert["change"]) == (200, 50, None)


def test_before_its_window_an_announced_value_is_none(net: Inside) -> None:
    announced(net, begin=1, local_pref=50)
    net.see(local_pref=50)
    (alert,) = net.alerts()
    assert (alert["expected"], alert["change"]) == (200, None)
    assert status(net)[0] == "pending"


def test_neither_old_nor_new_alerts_with_the_announced_value(net: Inside) -> None:
    announced(net, local_pref=50)
    net.see(local_pref=60)
    (alert,) = net.alerts()
    assert (alert["observed"], alert["expected"], alert["change"]) == (60, 50, "c1")
    assert "is 60, expected 50 as CHG-7 (c1) announces" in alert["summary"]
    net.see(local_pref=50)
    assert net.alerts() == []


def test_what_contradicts_the_announcement_needs_no_detector(net: Inside) -> None:
    class Blind:
        name = "blind"

        def __call__(self, graph: Graph) -> Scores:
            found = diff(graph)
            return replace(found, probability=found.probability * 0)

    net.service.diagnose = Here(Blind(), "test")
    announced(net, local_pref=50)
    net.see(local_pref=150)
    (alert,) = net.alerts()
    assert (alert["severity"], alert["expected"], alert["score"]) == ("critical", 50, 1)


def test_what_was_not_announced_is_told_apart(net: Inside) -> None:
    announced(net, local_pref=50)
    net.see(local_pref=50, med=9)
    (alert,) = net.alerts()
    assert (alert["parameter"], alert["expected"], alert["change"]) == ("med", 0, "c1")
    assert "expected 0, which CHG-7 (c1) does not announce" in alert["summary"]
    assert status(net)[0] == "applied"
    net.later(hours=3)
    net.see(local_pref=50, med=9)
    (still,) = net.alerts()
    assert (still["id"], still["change"]) == (alert["id"], "c1")


def test_a_half_applied_change_is_no_mistake_and_says_so(net: Inside) -> None:
    announced(net, local_pref=50, med=5)
    net.see(local_pref=50)
    net.later(hours=2)
    net.see(local_pref=50)
    assert status(net)[0] == "partly applied"
    assert net.alerts() == []
    values = net.get("/changes/c1")["values"]
    assert [(v["parameter"], v["applied"]) for v in values] == [
        ("local_pref", True),
        ("med", False),
    ]
    net.see(local_pref=50, med=5)  # too late
    (alert,) = net.alerts()
    assert (alert["parameter"], alert["observed"], alert["expected"]) == ("med", 5, 0)


def test_a_change_that_never_came(net: Inside) -> None:
    announced(net, local_pref=50)
    net.later(hours=2)
    net.see()
    assert status(net)[0] == "not applied"
    assert len(net.get("/baseline/history")["items"]) == 1


def test_a_collector_is_waited_for_and_not_for_ever(net: Inside) -> None:
    announced(net, local_pref=50)
    net.later(hours=2)
    net.cycle()
    assert status(net)[0] == "applying"
    net.later(seconds=STALE)
    net.cycle()
    assert status(net)[0] == "not applied"


def test_the_sweep_looks_at_windows(net: Inside) -> None:
    announced(net, begin=1, local_pref=50)
    net.cycle()
    for hours, seconds, woken in ((0, 0, False), (1, 0, True), (1, STALE, True)):
        net.later(hours=hours, seconds=seconds)
        with net.service.database.write() as connection:  # silence is not what it is about
            silent = sorted(net.service.views(NET)[1])
            connection.execute(update(tables.networks).values(silent=silent))
        assert (NET in swept(net)) is woken
        net.cycle()
    assert status(net)[0] == "not applied"
    assert NET not in swept(net)


def swept(net: Inside) -> list[str]:
    """The networks that a sweep wakes."""
    jobs = net.service.jobs
    assert isinstance(jobs, Embedded)
    jobs.waiting.clear()
    net.service.sweep()
    return list(jobs.waiting)


def test_cancelled_it_is_history_and_expects_nothing(watched: Inside) -> None:
    announced(watched, local_pref=50)
    watched.see(local_pref=50)
    assert watched.alerts() == []
    gone = watched.client.delete(f"{NETWORK}/changes/c1")
    assert (gone.status_code, gone.json()["status"]) == (200, "cancelled")
    assert (gone.json()["cancelled_by"], gone.json()["closed_at"]) != (None, None)
    watched.see(local_pref=50)
    assert [a["expected"] for a in watched.alerts()] == [200]
    assert watched.client.delete(f"{NETWORK}/changes/c1").status_code == 409
    assert watched.get("/changes/c1")["status"] == "cancelled"
    watched.later(hours=3)
    watched.cycle()
    assert status(watched)[0] == "cancelled"


def test_a_candidate_that_takes_a_route_away_and_adds_a_link(net: Inside) -> None:
    body = small(NET, "rr1", 9)
    gone = [f for f in body["facts"] if f["args"] != ROUTE["args"]]
    link = {"predicate": "connected", "args": ["R2", "R3"], "params": {"ospf_weight": 10}}
    body["facts"] = [*gone, link]
    wanted = announcement(net, 0, 2) | {"candidate": body}
    wanted.pop("changes")
    done = post(net, wanted)
    assert done.status_code == 201, done.text
    told = {(v["fact"]["predicate"], v["parameter"]): v["announced"] for v in done.json()["values"]}
    assert told == {
        ("bgp_route", None): 0,
        ("connected", None): 1,
        ("connected", "ospf_weight"): 10,
    }
    for at in (1, 2):
        seen = body | {"sequence": 10 + at, "observed_at": net.later(hours=1.5).isoformat()}
        net.client.post("/ingest", json=seen).raise_for_status()
        net.cycle()
    assert status(net) == ("applied", "3 of 3 applied")
    assert net.alerts() == []
    keys = {(f["predicate"], *f["args"]) for f in net.get("/baseline")["facts"]}
    assert ("connected", "R2", "R3") in keys
    assert (ROUTE["predicate"], *ROUTE["args"]) not in keys


def test_in_its_window_the_check_of_what_was_announced_is_clean(net: Inside) -> None:
    announced(net, local_pref=50)
    body = {"changes": announcement(net, local_pref=50)["changes"]}
    checked = net.client.post(f"{NETWORK}/check", json=body).json()
    assert (checked["verdict"], len(checked["moved"])) == ("clean", 4)


def test_pages(net: Inside) -> None:
    for number in (1, 2, 3):
        announced(net, local_pref=number)
    first = net.get("/changes", limit=2)
    assert [c["id"] for c in first["items"]] == ["c3", "c2"]
    last = net.get("/changes", limit=2, cursor=first["next"])
    assert ([c["id"] for c in last["items"]], last["next"]) == (["c1"], None)


def test_not_without_end(net: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gsid_service.api.changes.UNCLOSED_AT_MOST", 1)
    announced(net, local_pref=1)
    assert post(net, announcement(net, local_pref=2)).status_code == 409


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"ends_at": None}, "ends_at"),
        ({"ends_at": "2026-11-15T22:30:00"}, "ends_at"),
        ({"ends_at": "1999-01-01T00:00:00Z"}, "ends_at"),
        ({"begins_at": "1999-01-01T00:00:00Z", "ends_at": "1999-01-02T00:00:00Z"}, "ends_at"),
        ({"ends_at": "2036-01-01T00:00:00Z"}, "ends_at"),
        ({"begins_at": 5}, "begins_at"),
        ({"ticket": ""}, "ticket"),
        ({"ticket": "x" * 201}, "ticket"),
        ({"comment": "a\0b"}, "comment"),
        ({"author": "a\0b"}, "author"),
        ({"changes": None}, "body"),
        ({"candidate": small(NET)}, "body"),
        ({"changes": None, "candidate": small(NET)}, "candidate"),
        ({"changes": None, "candidate": small("other")}, "network"),
        ({"changes": None, "candidate": small(NET, med=-1)}, "candidate.facts[10].params.med"),
        ({"changes": [{"fact": ROUTE, "parameter": "med", "value": -1}]}, "changes[0].value"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_input_names_the_field(net: Inside, wrong: dict[str, Any], field: str) -> None:
    answer = post(net, announcement(net, local_pref=50) | wrong)
    assert answer.status_code == 422, answer.text
    assert field in {error["field"] for error in answer.json()["errors"]}, answer.text
    assert net.get("/changes")["items"] == []


@pytest.mark.parametrize("odd", ["c9", "x", "c", "c٣", "c" + "9" * 19, "%00"])
def test_what_is_not_there_is_not_found(net: Inside, odd: str) -> None:
    assert net.client.get(f"{NETWORK}/changes/{odd}").status_code == 404
    assert net.client.delete(f"{NETWORK}/changes/{odd}").status_code == 404


def test_who_may_check_announce_and_cancel(net: Inside) -> None:
    """A reader may check, since nothing is kept; only an operator may announce."""
    body = announcement(net, local_pref=50)
    wanted = {"changes": body["changes"]}
    for role, networks, answers in (
        ("read", (), (200, 403, 403)),
        ("operate", (), (200, 201, 200)),
        ("ingest", (), (403, 403, 403)),
        ("operate", ("other",), (403, 403, 403)),
    ):
        with net.caller(role, *networks) as client:
            told = (
                client.post(f"{NETWORK}/check", json=wanted),
                client.post(f"{NETWORK}/changes", json=body),
                client.delete(f"{NETWORK}/changes/c1"),
            )
            assert tuple(answer.status_code for answer in told) == answers
    for path in ("check", "changes"):
        assert net.client.post(f"{NETWORK}/{path}", json=body).status_code == 401


def test_the_caller_is_the_author_where_none_is_named(net: Inside) -> None:
    body = announcement(net, local_pref=50)
    body.pop("author")
    with net.caller("operate") as client:
        done = client.post(f"{NETWORK}/changes", json=body).json()
    assert done["author"] == done["announced_by"] == "operate ()"


def test_an_operator_who_approves_meanwhile_comes_first(
    net: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The approval of what was applied never takes the place of a newer one."""
    announced(net, local_pref=50)
    net.see(local_pref=50)
    net.later(hours=2)
    derive, turns = net.service.expectations.derive, iter([True])

    def interrupted(*state: Any) -> Any:
        if next(turns, False):
            net.client.put(f"{NETWORK}/baseline", json={"now": True}).raise_for_status()
        return derive(*state)

    monkeypatch.setattr(net.service.expectations, "derive", interrupted)
    net.see(local_pref=50)
    tickets = [a["ticket"] for a in net.get("/baseline/history")["items"]]
    assert tickets == [None, None]
    net.cycle()
    assert status(net) == ("applied", "1 of 1 applied")
    assert net.get("/changes/c1")["closed_at"] is not None
    assert len(net.get("/baseline/history")["items"]) == 2
    assert net.alerts() == []
