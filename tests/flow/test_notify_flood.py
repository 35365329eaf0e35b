"""A reflector reloads an old file, 5,000 values are wrong at once, and nobody is flooded."""

import time
from pathlib import Path

from tests.flow.server import Server, need_model
from tests.notify.diffing import Diffing, star
from tests.notify.listener import SECRET, Listener, listening

NETWORKS, LINKS = 5, 1000
SETTINGS = """
[notify]
group_wait_seconds = 1
group_interval_seconds = 1
[log]
level = "warning"
[[receivers]]
name = "noc"
type = "webhook"
url = "{url}"
secret_env = "NOC_SECRET"
min_severity = "minor"
"""
USABLE_SECONDS = 2.0  # for a page, while it all happens on a busy machine


def see(server: Server, sequence: int, wrong: bool) -> None:
    faulty = range(1, LINKS + 1) if wrong else ()
    for number in range(NETWORKS):
        body = star(f"n{number}", sequence, LINKS, faulty)
        server.client.post("/ingest", json=body).raise_for_status()


def wait_scored(server: Server, sequence: int) -> float:
    """Until all is scored; how long alerts and the console's overview took meanwhile, at most."""
    longest, deadline = 0.0, time.monotonic() + 120
    while True:
        for path in ("/", "/api/v1/alerts?limit=100"):
            begun = time.monotonic()
            page = server.client.get(path).raise_for_status()
            longest = max(longest, time.monotonic() - begun)
        assert len(page.json()["items"]) <= 100
        found = server.client.get("/api/v1/networks").json()["items"]
        done = [n for n in found if n["up_to_date"] and n["scored_snapshot"]]
        if len(done) == NETWORKS and len(found) == NETWORKS:
            return longest
        assert time.monotonic() < deadline, f"not scored: {sequence}"


def test_a_flood_is_one_message_for_each_network_and_cause(tmp_path: Path) -> None:
    need_model()
    with listening(tmp_path) as listener:
        config = tmp_path / "gsid.toml"
        config.write_text(SETTINGS.format(url=listener.url("/ok")))
        url, flags = f"sqlite:///{tmp_path / 'gsid.db'}", ("--config", str(config))
        server = Diffing(url, tmp_path / "server.log", flags, {"NOC_SECRET": SECRET})
        try:
            server.start()
            see(server, 1, wrong=False)
            wait_scored(server, 1)
            see(server, 2, wrong=True)
            assert wait_scored(server, 2) < USABLE_SECONDS
            assert_one_each(listener, 1, "firing")
            see(server, 3, wrong=False)
            assert wait_scored(server, 3) < USABLE_SECONDS
            assert_one_each(listener, 2, "resolved")
            assert server.client.get("/-/ready").is_success
        finally:
            server.close()


def assert_one_each(listener: Listener, messages: int, status: str) -> None:
    """Each network's last message speaks of all its alerts."""
    listener.wait(messages * NETWORKS, seconds=30)
    time.sleep(2.5)  # nothing follows within the interval
    bodies = [line["body"] for line in listener.taken()]
    assert len(bodies) == messages * NETWORKS
    last = bodies[-NETWORKS:]
    assert {body["groupLabels"]["network"] for body in last} == {f"n{n}" for n in range(NETWORKS)}
    for body in last:
        assert body["status"] == status
        assert len(body["alerts"]) + body["truncatedAlerts"] == LINKS
