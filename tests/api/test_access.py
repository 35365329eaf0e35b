"""Who may do what, on the real server: tokens, roles, networks, and secrets that stay secret."""

import json
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest

from gsid_service.api.access import KNOWN_SECONDS
from gsid_service.store import tokens
from tests.api.conftest import Caller, add_token
from tests.flow.network import small
from tests.flow.server import Server, gsid

OPEN = ("/-/healthy", "/-/ready", "/openapi.json", "/docs")
READS = (
    "/metrics",
    "/api/v1/networks",
    "/api/v1/networks/mine",
    "/api/v1/networks/mine/collectors",
    "/api/v1/networks/mine/snapshots",
    "/api/v1/networks/mine/scores",
    "/api/v1/networks/mine/baseline",
    "/api/v1/networks/mine/baseline/history",
    "/api/v1/networks/mine/intents",
    "/api/v1/networks/mine/changes",
    "/api/v1/alerts",
    "/api/v1/alerts/a1",
    "/api/v1/models",
)
WRITES: tuple[tuple[str, str, Any], ...] = (
    ("PATCH", "/api/v1/networks/mine", {}),
    ("PUT", "/api/v1/networks/mine/intents", {"intents": []}),
    ("POST", "/api/v1/networks/mine/intents/derive", None),
    ("POST", "/api/v1/alerts/a1/verdict", {"alarm": "true"}),
    ("POST", "/-/reload", None),
)


def assert_problem(answer: httpx.Response, status: int) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert answer.json()["detail"]


@pytest.mark.parametrize("path", OPEN)
def test_health_and_documentation_need_no_token(guarded: Server, path: str) -> None:
    assert guarded.client.get(path).status_code == 200


@pytest.mark.parametrize("path", READS)
def test_without_a_token_nothing_is_read(guarded: Server, path: str) -> None:
    answer = guarded.client.get(path)
    assert_problem(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
def test_without_a_token_nothing_is_changed(
    guarded: Server, method: str, path: str, body: object
) -> None:
    assert_problem(guarded.client.request(method, path, json=body), 401)


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer", "Basic dXNlcjpwYXNz", "gsid"])
def test_a_wrong_token_is_refused(guarded: Server, header: str) -> None:
    answer = guarded.client.get("/api/v1/networks", headers={"Authorization": header})
    assert_problem(answer, 401)
    assert_problem(
        guarded.client.post("/ingest", json=small("mine"), headers={"Authorization": header}), 401
    )


def test_a_reader_reads_and_no_more(caller: Caller) -> None:
    reader = caller("read")
    for path in READS:
        assert reader.get(path).status_code == 200, path
    for method, path, body in WRITES:
        assert_problem(reader.request(method, path, json=body), 403)
    assert_problem(reader.post("/ingest", json=small("mine", sequence=7)), 403)


def test_an_operator_reads_and_changes_and_sends_nothing(caller: Caller) -> None:
    operator = caller("operate")
    for path in READS:
        assert operator.get(path).status_code == 200, path
    for method, path, body in WRITES:
        assert operator.request(method, path, json=body).status_code == 200, path
    assert_problem(operator.post("/ingest", json=small("mine", sequence=7)), 403)


def test_a_collector_sends_and_no_more(caller: Caller) -> None:
    sender = caller("ingest")
    assert sender.post("/ingest", json=small("mine", "rr2", 1)).status_code == 202
    for path in READS:
        assert_problem(sender.get(path), 403)
    for method, path, body in WRITES:
        assert_problem(sender.request(method, path, json=body), 403)


def test_a_bound_collector_sends_for_its_network_only(caller: Caller) -> None:
    sender = caller("ingest mine")
    assert sender.post("/ingest", json=small("mine", "rr3", 1)).status_code == 202
    assert_problem(sender.post("/ingest", json=small("other", "rr3", 1)), 403)
    assert_problem(sender.post("/ingest", json=small("new", "rr3", 1)), 403)


def test_a_bound_caller_reaches_its_network_only(caller: Caller) -> None:
    operator = caller("operate mine")
    for path in READS[2:-3]:
        assert operator.get(path).status_code == 200, path
        assert_problem(operator.get(path.replace("mine", "other")), 403)
    for method, path, body in WRITES[:3]:
        assert_problem(operator.request(method, path.replace("mine", "other"), json=body), 403)
    assert {a["network"] for a in operator.get("/api/v1/alerts").json()["items"]} == {"mine"}
    assert_problem(operator.get("/api/v1/alerts?network=other"), 403)
    others = caller("read").get("/api/v1/alerts?network=other").json()["items"]
    assert others
    for method, path in (("GET", ""), ("POST", "/ack")):
        answer = operator.request(method, f"/api/v1/alerts/{others[0]['id']}{path}")
        assert_problem(answer, 403)
    assert_problem(operator.put("/api/v1/networks/other/baseline", json={"now": True}), 403)


def test_a_bound_reader_sees_nothing_of_other_networks(caller: Caller) -> None:
    reader = caller("read mine")
    listed = reader.get("/api/v1/networks").json()
    assert [n["name"] for n in listed["items"]] == ["mine"]
    first = reader.get("/api/v1/networks?limit=1").json()
    assert first["next"] is None, "there is no second page for this caller"
    metrics = reader.get("/metrics")
    assert metrics.status_code == 403 or 'network="other"' not in metrics.text


def test_bound_reader_is_not_given_empty_pages(caller: Caller) -> None:
    reader = caller("read other")
    first = reader.get("/api/v1/networks?limit=1").json()
    assert [n["name"] for n in first["items"]] == ["other"]


def test_what_a_person_did_carries_their_name(caller: Caller, guarded: Server) -> None:
    operator = caller("operate")
    alert = operator.get("/api/v1/alerts?network=mine").json()["items"][0]
    acknowledged = operator.post(f"/api/v1/alerts/{alert['id']}/ack", json={"note": "mine"})
    assert acknowledged.json()["status"] == "acknowledged"
    event = acknowledged.json()["events"][-1]
    assert (event["what"], event["why"]) == ("acknowledged", "mine")
    assert event["who"].startswith("operate ")
    assert guarded.client.get(f"/api/v1/alerts/{alert['id']}").status_code == 401


def test_tokens_by_command_and_a_revoked_one_is_useless_within_a_second(guarded: Server) -> None:
    settings = {"GSID_DATABASE_URL": guarded.settings["GSID_DATABASE_URL"]}
    made = gsid("token", "create", "noc", "--role", "read", "--network", "mine", **settings)
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    headers = {"Authorization": f"Bearer {secret}"}
    assert guarded.client.get("/api/v1/networks/mine", headers=headers).status_code == 200
    listed = gsid("token", "list", "--json", **settings)
    assert secret not in listed.stdout
    (mine,) = [row for row in json.loads(listed.stdout) if row["name"] == "noc"]
    assert (mine["role"], mine["networks"]) == ("read", ["mine"])
    again = gsid("token", "create", "noc", "--role", "read", **settings)
    assert (again.returncode, len(again.stderr.splitlines())) == (2, 1)
    assert gsid("token", "revoke", "noc", **settings).returncode == 0
    time.sleep(KNOWN_SECONDS)
    assert_problem(guarded.client.get("/api/v1/networks/mine", headers=headers), 401)


def test_only_digests_are_stored_and_no_secret_is_logged(guarded: Server) -> None:
    url = guarded.settings["GSID_DATABASE_URL"]
    secret = add_token(url, "secretive", tokens.READ)
    for value in (secret, "gsid_not-a-token-at-all"):
        headers = {"Authorization": f"Bearer {value}"}
        guarded.client.get("/api/v1/networks", headers=headers)
        guarded.client.get("/api/v1/nowhere", headers=headers, params={"token": value})
        guarded.client.post("/ingest", content=value, headers=headers)
    stored = b"".join(p.read_bytes() for p in guarded.log.parent.glob("gsid.db*"))
    assert secret.encode() not in stored
    assert "gsid_" not in guarded.logged
    assert "Bearer" not in guarded.logged


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_without_tokens_a_browser_does_not_act_for_other_sites(
    service: Server, headers: dict[str, str]
) -> None:
    for method, path, body in WRITES:
        assert_problem(service.client.request(method, path, json=body, headers=headers), 403)


def test_without_tokens_another_name_of_this_machine_is_not_answered(service: Server) -> None:
    for path in ("/api/v1/networks", "/metrics", "/"):
        assert service.client.get(path, headers={"Host": "evil.example"}).status_code == 403


def test_without_tokens_its_own_names_are_answered(service: Server) -> None:
    for name in ("localhost", "localhost:8080", "127.0.0.1", "[::1]:8080"):
        answer = service.client.get("/api/v1/networks", headers={"Host": name})
        assert answer.status_code == 200, name


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_shows_no_variables(form: str) -> None:
    """They may hold a token, or the password of the database."""
    program = f"""
import logging, structlog
from gsid_service import config, serve
serve._log_to(config.load(None, {{}}, {{"log.format": "{form}"}}))
def fail(secret):
    raise RuntimeError("told")
try:
    fail("".join(["very", "-", "secret"]))
except RuntimeError:
    structlog.get_logger().exception("failed")
    logging.getLogger("library").exception("failed")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "RuntimeError" in done.stderr
    assert done.stderr.count("told") >= 2
    assert "very-secret" not in done.stdout + done.stderr
