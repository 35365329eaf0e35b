"""A clock that jumps by an hour, and a receiver that takes messages in and never answers."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.server import Server, started
from tests.flow.watched import RIGHT, WRONG, Watched
from tests.notify.listener import SECRET, Listener, listening
from tests.waiting import until

HOUR = 3600
SETTINGS = """
[notify]
group_wait_seconds = 1
group_interval_seconds = 0
timeout_seconds = 1
retry_seconds = 0.1
retry_at_most_seconds = 1

[[receivers]]
name = "noc"
type = "webhook"
url = "{noc}"
secret_env = "NOC_SECRET"

[[receivers]]
name = "hanging"
type = "webhook"
url = "{hanging}"
secret_env = "NOC_SECRET"
"""


class Clock:
    """The clock of the server's process: the machine's, set forward or back."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "clock"
        self.set(0)

    def set(self, seconds: int) -> None:
        fresh = self.file.with_suffix(".fresh")  # so that no half of it is ever read
        fresh.write_text(str(seconds))
        fresh.replace(self.file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fault")


@pytest.fixture(scope="module")
def clock(folder: Path) -> Clock:
    return Clock(folder)


@pytest.fixture(scope="module")
def noc(folder: Path) -> Iterator[Listener]:
    with listening(folder) as found:
        yield found


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    """Its system takes connections and requests, as long as it is stopped nobody answers."""
    with listening(tmp_path_factory.mktemp("hanging")) as found:
        yield found


@pytest.fixture(scope="module")
def server(folder: Path, clock: Clock, noc: Listener, hanging: Listener) -> Iterator[Server]:
    config = folder / "gsid.toml"
    config.write_text(SETTINGS.format(noc=noc.url("/ok"), hanging=hanging.url("/ok")))
    url = f"sqlite:///{folder / 'gsid.db'}"
    flags, settings = ("--config", str(config)), {"NOC_SECRET": SECRET}
    made = Server(url, folder / "server.log", flags, settings)
    made.program = (sys.executable, "-m", "tests.fault.shifted", str(clock.file))
    with started(made) as server:
        yield server


def told(listener: Listener, net: Watched) -> list[str]:
    lines = [line for line in listener.taken("/ok") if name_of(line) == net.name]
    return [line["body"]["status"] for line in lines]


def name_of(line: dict[str, Any]) -> str:
    return str(line["body"]["groupLabels"]["network"])


def test_pages_go_out_whichever_way_the_clock_jumps(
    server: Server, clock: Clock, noc: Listener
) -> None:
    net = Watched(server)
    clock.set(HOUR)
    net.see(WRONG)  # the page waits a second for others of its group
    clock.set(0)
    until(lambda: told(noc, net) == ["firing"], 20)
    net.see(RIGHT)
    until(lambda: told(noc, net) == ["firing", "resolved"])
    clock.set(-HOUR)
    net.see(WRONG)
    clock.set(0)
    until(lambda: told(noc, net) == ["firing", "resolved", "firing"], 20)
    events = [event["what"] for event in net.alert()["events"]]
    assert events == ["opened", "resolved", "reopened"]
    assert len(net.get(f"/networks/{net.name}/snapshots")["items"]) == 4, "nothing is lost"


def test_a_receiver_that_never_answers_delays_no_other(
    server: Server, noc: Listener, hanging: Listener
) -> None:
    net = Watched(server)
    assert hanging.process is not None
    hanging.process.send_signal(signal.SIGSTOP)
    try:
        net.see(WRONG)
        until(lambda: told(noc, net) == ["firing"])
        retried = 'gsid_notifications_total{outcome="retried",receiver="hanging"}'
        until(lambda: count(server, retried) >= 2)
        assert count(server, "gsid_outbox_pending") == 1
        assert server.client.get("/-/ready").status_code == 200
        answer = net.get("/deliveries", status="pending")["items"][0]["answer"]
        assert "ReadTimeout" in answer
    finally:
        hanging.process.send_signal(signal.SIGCONT)
    until(lambda: count(server, "gsid_outbox_pending") == 0)
    assert set(told(hanging, net)) == {"firing"}
    assert len({line["id"] for line in hanging.taken("/ok") if name_of(line) == net.name}) == 1


def count(server: Server, series: str) -> float:
    lines = server.client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(series)).split()[-1])
