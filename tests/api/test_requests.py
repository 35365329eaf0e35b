"""The contract of requests on the real server: bodies, limits, errors, headers, pages."""

import base64
import gzip
import json
import socket
import time
import zlib
from typing import Any

import httpx
import pytest

from tests.api.conftest import BODY_BYTES
from tests.flow.network import small
from tests.flow.server import Server

JSON = {"Content-Type": "application/json"}
GZIP = JSON | {"Content-Encoding": "gzip"}
NETWORK = "/api/v1/networks/as65000"


def assert_problem(answer: httpx.Response, status: int, *named: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["type"]) == (status, "about:blank")
    assert body["title"]
    for name in named:
        assert name in body["detail"], body


def cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_accepted_duplicate_and_conflict(service: Server) -> None:
    body = small("receipts", "rr1", 5)
    first, again = (service.client.post("/ingest", json=body) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json() == {
        "snapshot_id": first.json()["snapshot_id"],
        "network": "receipts",
        "duplicate": False,
    }
    assert again.json() == first.json() | {"duplicate": True}
    zipped = gzip.compress(first.request.content)
    assert service.client.post("/ingest", content=zipped, headers=GZIP).status_code == 200
    other = small("receipts", "rr1", 5, local_pref=7)
    assert_problem(service.client.post("/ingest", json=other), 409, "sequence")
    assert len(service.client.get("/api/v1/networks/receipts/snapshots").json()["items"]) == 1


def test_an_older_sequence_is_history(service: Server) -> None:
    for sequence, local_pref in ((9, 150), (3, 50)):
        body = small("history", "rr1", sequence, local_pref=local_pref)
        answer = service.client.post("/ingest", json=body)
        assert answer.status_code == 202
    query = {"snapshot": answer.json()["snapshot_id"], "wait": 30, "parameter": "local_pref"}
    found = service.client.get("/api/v1/networks/history/scores", params=query).json()["items"]
    assert {s["observed"] for s in found} == {150, 100}


def test_a_difference_names_which_end_is_wrong(service: Server) -> None:
    known = service.client.post("/ingest", json=small("ends", "rr1", 1)).json()["snapshot_id"]
    for ends, status, field in (
        ({"from": "x", "to": known}, 422, "from"),
        ({"from": known, "to": "x"}, 422, "to"),
        ({"from": known, "to": "s999999"}, 404, "to"),
    ):
        answer = service.client.get("/api/v1/networks/ends/diff", params=ends)
        assert_problem(answer, status, field)


def test_gzip_is_taken(service: Server) -> None:
    body = gzip.compress(json.dumps(small("zipped")).encode())
    assert service.client.post("/ingest", content=body, headers=GZIP).status_code == 202


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "zlib", "trailing"])
def test_broken_gzip_is_a_400(service: Server, damage: str) -> None:
    plain = json.dumps(small("broken")).encode()
    whole = gzip.compress(plain)
    bodies = {
        "cut": whole[: len(whole) // 2],
        "text": plain,
        "empty": b"",
        "zlib": zlib.compress(plain),
        "trailing": whole + b"and more",
    }
    answer = service.client.post("/ingest", content=bodies[damage], headers=GZIP)
    assert_problem(answer, 400)
    assert service.client.get("/api/v1/networks/broken").status_code == 404


def test_a_bomb_is_a_413_and_takes_no_memory(service: Server) -> None:
    before = resident(service)
    bomb = gzip.compress(b" " * 100_000_000, 9)
    assert len(bomb) < BODY_BYTES
    assert_problem(service.client.post("/ingest", content=bomb, headers=GZIP), 413)
    assert resident(service) - before < 30_000_000


def resident(service: Server) -> float:
    lines = service.client.get("/metrics").text.splitlines()
    line = next(each for each in lines if each.startswith("process_resident_memory_bytes"))
    return float(line.split()[1])


@pytest.mark.parametrize("headers", [JSON, GZIP])
def test_a_body_over_the_limit_is_a_413(service: Server, headers: dict[str, str]) -> None:
    answer = service.client.post("/ingest", content=b"x" * (BODY_BYTES + 1), headers=headers)
    assert_problem(answer, 413)


def test_a_body_over_the_limit_is_refused_by_its_length(service: Server) -> None:
    """Without waiting for a body that is too large anyway."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=2) as connection:
        connection.sendall(
            b"POST /ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 999999999\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_other_bodies_have_a_limit_too(service: Server) -> None:
    """Of 16 MiB, whatever a snapshot may be."""
    before = resident(service)
    answer = service.client.put(
        f"{NETWORK}/intents", content=b'"' + b"x" * (17 << 20) + b'"', headers=JSON
    )
    assert_problem(answer, 413)
    assert resident(service) - before < 40_000_000


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {},
        JSON | {"Content-Encoding": "br"},
        JSON | {"Content-Encoding": "gzip, gzip"},
    ],
)
def test_another_type_is_a_415(service: Server, headers: dict[str, str]) -> None:
    body = json.dumps(small("typed")).encode()
    assert_problem(service.client.post("/ingest", content=body, headers=headers), 415, "content-")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[" * 10_000, b'{"a":' * 10_000, b"\x00", b"{'a': 1}"],
    ids=["empty", "open", "not UTF-8", "deep list", "deep object", "nul", "quotes"],
)
def test_what_is_not_json_is_a_400(service: Server, body: bytes) -> None:
    assert_problem(service.client.post("/ingest", content=body, headers=JSON), 400, "not JSON")


def without(name: str) -> dict[str, Any]:
    body = small("wrong")
    del body[name]
    return body


def altered(place: str, value: Any) -> dict[str, Any]:
    """A snapshot with one thing in it replaced; `place` as in facts.0.params.ospf_weight."""
    body = small("wrong")
    target: Any = body
    *way, last = [int(part) if part.isdecimal() else part for part in place.split(".")]
    for part in way:
        target = target[part]
    target[last] = value
    return body


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (without("collector"), "collector"),
        (without("sequence"), "sequence"),
        (altered("schema", "gsid.snapshot/2"), "schema"),
        (altered("network", ""), "network"),
        (altered("network", "a\nb"), "network"),
        (altered("network", "x" * 201), "network"),
        (altered("sequence", -1), "sequence"),
        (altered("sequence", 2**63), "sequence"),
        (altered("sequence", 1.5), "sequence"),
        (altered("sequence", "1"), "sequence"),
        (altered("observed_at", "2026-11-15T22:00:00"), "observed_at"),
        (altered("observed_at", 1_700_000_000), "observed_at"),
        (altered("complete", "yes"), "complete"),
        (altered("surplus", 1), "surplus"),
        (altered("entities.0.kind", "switch"), "entities[0].kind"),
        (altered("entities.0.position", [181, 0]), "entities[0].position[0]"),
        (altered("entities.0.asn", 65000), "entities[0].asn"),
        (altered("facts.0.predicate", "frobnicates"), "facts[0].predicate"),
        (altered("facts.0.predicate", "reachable"), "facts[0].predicate"),
        (altered("facts.0.args.0", "R99"), "facts[0].args[0]"),
        (altered("facts.0.args.0", "203.0.113.0/24"), "facts[0].args[0]"),
        (altered("facts.0.args", ["R1"]), "facts[0].args"),
        (altered("facts.0.params.ospf_weight", 0), "facts[0].params.ospf_weight"),
        (altered("facts.0.params.ospf_weight", "10"), "facts[0].params.ospf_weight"),
        (altered("facts.0.params", {}), "facts[0].params.ospf_weight"),
        (altered("facts.10.params.local_pref", 2**32), "facts[10].params.local_pref"),
        (altered("facts.10.params.local_pref", True), "facts[10].params.local_pref"),
        (altered("facts.1.args", ["R1", "R2"]), "facts[1]"),
        (altered("withdrawn", [{"predicate": "ebgp"}]), "withdrawn[0].args"),
    ],
)
def test_what_the_schema_forbids_is_a_422_that_names_it(
    service: Server, body: dict[str, Any], field: str
) -> None:
    answer = service.client.post("/ingest", json=body)
    assert_problem(answer, 422, field)
    assert answer.json()["errors"][0]["field"] == field
    assert service.client.get("/api/v1/networks/wrong").status_code == 404, "half-stored"


@pytest.mark.parametrize("observed_at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_times_at_the_edge_are_refused_or_can_be_read_back(
    service: Server, observed_at: str
) -> None:
    name = f"edge{observed_at[:4]}"
    answer = service.client.post("/ingest", json=small(name) | {"observed_at": observed_at})
    if answer.status_code == 422:
        return
    assert answer.status_code == 202
    for path in ("snapshots", "collectors"):
        assert service.client.get(f"/api/v1/networks/{name}/{path}").status_code == 200


def test_the_highest_sequence_does_not_stop_the_cycle(service: Server) -> None:
    for sequence in (1, 2**63 - 2, 5):
        body = small("highest", "rr1", sequence) | {"complete": sequence == 1}
        answer = service.client.post("/ingest", json=body)
        assert answer.status_code == 202
        query = {"snapshot": answer.json()["snapshot_id"], "wait": 3}
        scored = service.client.get("/api/v1/networks/highest/scores", params=query)
        problem = service.client.get("/api/v1/networks/highest").json()["problem"]
        assert (scored.status_code, problem) == (200, None)


def test_a_network_with_a_slash_in_its_name_can_be_reached(service: Server) -> None:
    answer = service.client.post("/ingest", json=small("site/a"))
    if answer.status_code == 422:
        return
    found = service.client.get("/api/v1/networks/site%2Fa")
    assert (found.status_code, found.json().get("name")) == (200, "site/a")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/api/v1/nowhere", 404),
        ("GET", "/api/v1/networks/unknown", 404),
        ("GET", "/api/v1/networks/unknown/scores", 404),
        ("GET", f"{NETWORK}/scores?snapshot=s999999", 404),
        ("GET", f"{NETWORK}/scores?snapshot=17", 422),
        ("GET", f"{NETWORK}/scores?parameter=speed", 422),
        ("GET", f"{NETWORK}/scores?min=2", 422),
        ("GET", f"{NETWORK}/scores?min=nan", 422),
        ("GET", f"{NETWORK}/scores?limit=0", 422),
        ("GET", f"{NETWORK}/scores?limit=1001", 422),
        ("GET", f"{NETWORK}/scores?wait=-1", 422),
        ("GET", f"{NETWORK}/scores?cursor=!", 422),
        ("GET", "/api/v1/alerts?status=loud", 422),
        ("GET", "/api/v1/alerts/a99999", 404),
        ("GET", "/api/v1/alerts/b1", 404),
        ("POST", "/api/v1/alerts/a99999/ack", 404),
        ("DELETE", "/ingest", 405),
        ("PUT", "/ingest", 405),
        ("DELETE", NETWORK, 405),
        ("POST", "/metrics", 405),
        ("PATCH", "/api/v1/alerts/a1", 405),
    ],
)
def test_errors_are_problem_documents(service: Server, method: str, path: str, status: int) -> None:
    assert_problem(service.client.request(method, path), status)


@pytest.mark.parametrize("path", ["/api/v1/networks/", "/ingest/", "/api/v1/alerts/"])
def test_a_slash_at_the_end_is_another_path(service: Server, path: str) -> None:
    """A redirect is not in the contract, and a POST would lose its body on the way."""
    assert_problem(service.client.get(path), 404)


@pytest.mark.parametrize(
    "place",
    [
        "[999999999999999999999999]",
        "[-999999999999999999999999]",
        '["\\ud800"]',
        '["\\u0000"]',
        "[" * 2_900,
        "{}",
        "[]",
        "[true]",
        "[1,2]",
        "[NaN,1,1]",
        '[NaN,"a","b"]',
        '[Infinity,"a","b"]',
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/networks",
        "/api/v1/alerts",
        f"{NETWORK}/snapshots",
        f"{NETWORK}/scores",
        f"{NETWORK}/intents",
        f"{NETWORK}/baseline/history",
    ],
)
def test_a_made_up_cursor_is_a_422(service: Server, path: str, place: str) -> None:
    answer = service.client.get(path, params={"cursor": cursor(place)})
    assert answer.status_code in {200, 422}, answer.text
    if answer.status_code == 422:
        assert_problem(answer, 422, "cursor")


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("PATCH", NETWORK, b'{"always_compare_med": 1}', "always_compare_med"),
        ("PATCH", NETWORK, b'{"colour": "red"}', "colour"),
        ("PUT", f"{NETWORK}/baseline", b"{}", "now"),
        ("PUT", f"{NETWORK}/baseline", b'{"now": true, "snapshot_id": "s1"}', "now"),
        ("PUT", f"{NETWORK}/baseline", b'{"snapshot_id": "1"}', "snapshot"),
        ("PUT", f"{NETWORK}/intents", b'{"intents": 1}', "intents"),
        (
            "PUT",
            f"{NETWORK}/intents",
            b'{"intents": [{"predicate": "connected", "args": ["R1", "R2"]}]}',
            "intents[0].predicate",
        ),
        (
            "PUT",
            f"{NETWORK}/intents",
            b'{"intents": [{"predicate": "fwd", "args": ["R1", "203.0.113.0/24", "R9"]}]}',
            "intents[0].args[2]",
        ),
        ("POST", "/api/v1/alerts/a1/verdict", b'{"alarm": true}', "alarm"),
        ("POST", "/api/v1/alerts/a1/ack", b'{"note": 1}', "note"),
    ],
)
def test_other_bodies_are_checked_too(
    service: Server, method: str, path: str, body: bytes, field: str
) -> None:
    answer = service.client.request(method, path, content=body, headers=JSON)
    assert_problem(answer, 422, field)
    for broken in (b"{", b"\xff", b"[" * 10_000):
        answer = service.client.request(method, path, content=broken, headers=JSON)
        assert_problem(answer, 400)


def test_a_key_given_twice_is_refused_everywhere(service: Server) -> None:
    body = b'{"intents": [], "intents": []}'
    answer = service.client.put(f"{NETWORK}/intents", content=body, headers=JSON)
    assert_problem(answer, 422, "intents: is given twice")
    assert answer.json()["errors"][0]["field"] == "intents"


def test_other_bodies_may_be_zipped_too(service: Server) -> None:
    headers = JSON | {"Content-Encoding": "gzip"}
    body = gzip.compress(b'{"colour": "red"}')
    answer = service.client.patch(NETWORK, content=body, headers=headers)
    assert_problem(answer, 422, "colour")
    for broken in (body[:-3], b"{}", body + body):
        answer = service.client.patch(NETWORK, content=broken, headers=headers)
        assert_problem(answer, 400, "gzip")
    bomb = gzip.compress(b" " * (17 << 20))
    assert_problem(service.client.patch(NETWORK, content=bomb, headers=headers), 413)
    headers = JSON | {"Content-Encoding": "br"}
    assert_problem(service.client.patch(NETWORK, content=b"{}", headers=headers), 415)


def test_who_counts_anew_is_told(service: Server) -> None:
    for sequence in (1000, 1, 2):
        answer = service.client.post("/ingest", json=small("anew", sequence=sequence))
        assert answer.status_code == 202
    (found,) = service.client.get("/api/v1/networks/anew/collectors").json()["items"]
    assert (found["sequence"], found["overtaken"]) == (1000, 2)


def test_every_answer_is_safe_and_has_an_id(service: Server) -> None:
    ids = set()
    for path in ("/-/healthy", "/metrics", "/docs", "/nowhere", NETWORK, "/api/v1/alerts/x"):
        headers = service.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "server" not in headers
        ids.add(headers["x-request-id"])
    assert len(ids) == 6
    time.sleep(0.2)  # a line is written after its answer is sent
    assert all(each in service.logged for each in ids)


def test_the_log_cannot_be_written_from_outside(service: Server) -> None:
    service.client.get("/api/%0A2026-11-16 [info] forged%1b[31m")
    assert not any(line.startswith("2026-11-16 [info] forged") for line in lines(service))
    assert "\x1b" not in service.logged


def lines(service: Server) -> list[str]:
    return service.logged.splitlines()


def test_documentation_loads_nothing_from_outside(service: Server) -> None:
    page = service.client.get("/docs").text
    assert 'src="http' not in page
    assert 'href="http' not in page


def pages(client: httpx.Client, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    found, place = [], None
    while True:
        page = client.get(path, params=query | ({"cursor": place} if place else {})).json()
        found.append(page["items"])
        place = page["next"]
        if place is None:
            return found


def test_pages_hold_everything_once(service: Server) -> None:
    for sequence in range(1, 8):
        service.client.post("/ingest", json=small("paged", "rr1", sequence)).raise_for_status()
        service.client.post("/ingest", json=small(f"paged{sequence}")).raise_for_status()
    last = service.client.get("/api/v1/networks/paged/snapshots").json()["items"][0]
    path = "/api/v1/networks/paged/scores"
    service.client.get(path, params={"snapshot": last["snapshot_id"], "wait": 30})
    for path, key in (
        ("/api/v1/networks", lambda n: n["name"]),
        ("/api/v1/networks/paged/snapshots", lambda s: s["sequence"]),
        ("/api/v1/networks/paged/scores", lambda s: (*s["fact"]["args"], s["parameter"])),
        ("/api/v1/networks/paged/intents", lambda i: tuple(i["args"])),
        ("/api/v1/networks/paged/baseline/history", lambda a: a["number"]),
        ("/api/v1/alerts", lambda a: a["id"]),
    ):
        (whole,) = pages(service.client, path, limit=1000)
        for limit in (1, 2, 3):
            parts = pages(service.client, path, limit=limit)
            assert all(len(part) == limit for part in parts[:-1]), path
            assert len(parts[-1]) in range(1, limit + 1), path
            assert [key(i) for part in parts for i in part] == [key(i) for i in whole], path


def test_wait_holds_the_answer_until_it_is_scored(service: Server) -> None:
    answer = service.client.post("/ingest", json=small("waited"))
    path, query = "/api/v1/networks/waited/scores", {"snapshot": answer.json()["snapshot_id"]}
    found = service.client.get(path, params=query | {"wait": 30})
    assert found.status_code == 200
    assert len(found.json()["items"]) == 10
    other = service.client.get(f"{NETWORK}/scores", params=query | {"wait": 5})
    assert_problem(other, 404, "snapshot")
    assert other.elapsed.total_seconds() < 3, "it is no snapshot of that network, now or later"


def test_an_acknowledgement_shows_in_the_metrics_at_once(service: Server) -> None:
    (alert,) = service.client.get("/api/v1/alerts?network=as65000").json()["items"]
    service.client.post(f"/api/v1/alerts/{alert['id']}/ack").raise_for_status()
    wanted = (
        f'gsid_alerts{{network="as65000",severity="{alert["severity"]}",status="acknowledged"}}'
    )
    for _ in range(20):
        if f"{wanted} 1.0" in service.client.get("/metrics").text:
            return
        time.sleep(0.1)
    raise AssertionError("gsid_alerts still says that it fires")


def test_derived_intents_follow_whether_med_is_compared_across_ases(service: Server) -> None:
    """Two neighbours announce the same but for MED; the reflector is nearer to the higher one."""
    body = small("meds")
    meds = {"AS65101@R2": 5, "AS65101@R3": 9}
    for entity in body["entities"]:
        if entity["id"] == "AS65101@R3":
            entity["asn"] = 65102
    for fact in body["facts"]:
        if fact["predicate"] == "bgp_route":
            fact["params"] = {"local_pref": 200, "as_path_length": 2, "med": meds[fact["args"][0]]}
        if (fact["predicate"], *fact["args"]) == ("connected", "R3", "RR1"):
            fact["params"] = {"ospf_weight": 5}
    posted = service.client.post("/ingest", json=body).json()
    network = "/api/v1/networks/meds"
    query = {"snapshot": posted["snapshot_id"], "wait": 30}
    assert service.client.get(f"{network}/scores", params=query).status_code == 200

    def exits() -> set[str]:
        return {i["args"][2] for i in service.client.get(f"{network}/intents").json()["items"]}

    assert exits() == {"R3"}
    for compared, expected in ((True, {"R2"}), (False, {"R3"})):
        changed = service.client.patch(network, json={"always_compare_med": compared})
        assert changed.status_code == 200, changed.text
        assert exits() == expected
