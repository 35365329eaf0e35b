"""The service and its receiver killed again and again, while alerts open and resolve.

Every alert arrives, in order, under one id a message; what is dead had to be.
"""

import random
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from gsid_service.notices import Sending
from gsid_service.store import outbox
from gsid_service.store.database import connect
from tests import postgres
from tests.flow.server import Server, need_model
from tests.notify.diffing import Diffing, star
from tests.notify.listener import SECRET, Listener, is_refused, listening

ROUNDS, AT_ONCE = 5, 10
LINKS = ROUNDS * AT_ONCE
POSTERS = 4
SHORTEST = 0.5  # seconds between a start and the next kill
SETTINGS = """
[notify]
group_wait_seconds = 0
group_interval_seconds = 0
retry_seconds = 0.02
retry_at_most_seconds = 0.2
[log]
level = "warning"
"""
RECEIVER = """
[[receivers]]
name = "{name}"
type = "webhook"
url = "{url}/{name}"
secret_env = "NOC_SECRET"
min_severity = "minor"
"""


def posted(server: Server, name: str) -> None:
    """One network: some links wrong, then others, then none; each state is scored in its turn."""
    with httpx.Client(base_url=server.url, timeout=5) as client:
        for number in range(ROUNDS + 2):
            first = 1 + (number - 1) * AT_ONCE
            wrong = range(first, first + AT_ONCE) if 0 < number <= ROUNDS else ()
            body = star(name, number + 1, LINKS, wrong)
            snapshot = patiently(client, "POST", "/ingest", json=body)["snapshot_id"]
            query = {"snapshot": snapshot, "wait": 5, "limit": 1}
            patiently(client, "GET", f"/api/v1/networks/{name}/scores", params=query)


def patiently(client: httpx.Client, method: str, path: str, **more: Any) -> Any:
    """Ask until there is an answer."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            answer = client.request(method, path, **more)
            if answer.is_success:
                return answer.json()
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"no answer to {method} {path}")


def kill_at_random(
    server: Server, listener: Listener, ending: threading.Event, longest: float
) -> int:
    kills, rng = 0, random.Random("kills")
    while not ending.wait(rng.uniform(SHORTEST, longest)):
        server.kill()
        kills += 1
        if kills % 3 == 0:
            listener.kill()
            time.sleep(rng.uniform(0, 0.2))
            listener.start()
        server.launch()
        server.wait_ready()
    return kills


@pytest.mark.parametrize(
    ("kind", "networks", "longest"), [("sqlite", 40, 4.0), ("postgresql", 6, 1.0)]
)
def test_every_alert_arrives(
    kind: str, networks: int, longest: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    need_model()
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    if kind == "postgresql":
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
    with listening(tmp_path) as listener:
        config = tmp_path / "gsid.toml"
        tables = [RECEIVER.format(name=n, url=listener.url("")) for n in ("flaky", "picky", "gone")]
        config.write_text(SETTINGS + "".join(tables))
        flags = ("--config", str(config))
        server = Diffing(url, tmp_path / "server.log", flags, {"NOC_SECRET": SECRET})
        try:
            server.start()
            kills = under_fire(server, listener, networks, longest)
            drain(url)
        finally:
            server.close()
        assert kills >= 3
        assert "cycle failed" not in server.logged
        assert_arrived(listener, networks)
        assert_dead(url, listener, kills)


def under_fire(server: Server, listener: Listener, networks: int, longest: float) -> int:
    ending = threading.Event()
    with ThreadPoolExecutor(POSTERS + 1) as threads:
        killing = threads.submit(kill_at_random, server, listener, ending, longest)
        posting = [threads.submit(posted, server, f"n{n}") for n in range(networks)]
        try:
            for each in posting:
                each.result()
        finally:
            ending.set()
        return killing.result()


def drain(url: str) -> None:
    database = connect(url, migrate=False)
    deadline = time.monotonic() + 60
    while True:
        with database.read() as connection:
            pending = outbox.page(connection, None, 5, None, [Sending.PENDING.value])
        if not pending:
            break
        assert time.monotonic() < deadline, pending
        time.sleep(0.05)
    database.close()


def assert_arrived(listener: Listener, networks: int) -> None:
    """At the flaky receiver: each alert's turns in order, each under one id."""
    seen: dict[str, Any] = {}
    turns: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in listener.received("/flaky"):
        assert line["status"] != 401, "a signature was wrong"
        if line["id"] in seen:
            assert line["body"] == seen[line["id"]], "an id that was seen, with something else"
        elif line["status"] == 200:
            seen[line["id"]] = line["body"]
            assert line["body"]["truncatedAlerts"] == 0
            for alert in line["body"]["alerts"]:
                turns[alert["labels"]["network"], alert["labels"]["fact"]].append(alert["status"])
    assert len(turns) == networks * LINKS, "an alert is missing"
    assert all(told == ["firing", "resolved"] for told in turns.values()), (
        "told twice or disorderly"
    )


def assert_dead(url: str, listener: Listener, kills: int) -> None:
    database = connect(url, migrate=False)
    with database.read() as connection:
        found = outbox.page(connection, None, 100_000, None)
        assert set(outbox.disabled(connection)) == {"gone"}
    database.close()
    by = {
        (name, status): {d.key for d in found if (d.receiver, d.status) == (name, status)}
        for name in ("flaky", "picky", "gone")
        for status in (Sending.DELIVERED, Sending.DEAD)
    }
    assert by["flaky", Sending.DEAD] == set()
    assert by["flaky", Sending.DELIVERED] == ids(listener, "/flaky", 200)
    assert all(is_refused(key) for key in by["picky", Sending.DEAD])
    assert not any(is_refused(key) for key in by["picky", Sending.DELIVERED])
    assert by["picky", Sending.DEAD] == ids(listener, "/picky", 400)
    assert by["picky", Sending.DELIVERED] == ids(listener, "/picky", 200)
    # One that was taken just before a kill is sent again, and is dead where that came too late.
    taken = ids(listener, "/gone", 200)
    assert by["gone", Sending.DELIVERED] <= taken
    assert taken - by["gone", Sending.DELIVERED] <= ids(listener, "/gone", 410)
    assert by["gone", Sending.DEAD] > ids(listener, "/gone", 410)
    # Asked once, and once more only where a kill came before its answer was kept.
    assert 1 <= len(ids(listener, "/gone", 410)) <= 1 + kills, "asked again after it was gone"


def ids(listener: Listener, path: str, status: int) -> set[str]:
    return {line["id"] for line in listener.received(path) if line["status"] == status}
