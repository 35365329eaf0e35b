"""From a snapshot to the message that a receiver gets, and all that keeps it from getting one."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gsid_service.__main__ import app
from tests.flow.server import Server, running
from tests.flow.watched import RIGHT, WRONG, Watched
from tests.notify.listener import SECRET, Listener, listening
from tests.waiting import until

SETTINGS = """
[notify]
group_wait_seconds = 0
group_interval_seconds = 0
external_url = "https://gsid.example"

[[receivers]]
name = "noc"
type = "webhook"
url = "{url}/ok"
secret_env = "NOC_SECRET"

[[receivers]]
name = "refusing"
type = "webhook"
url = "{url}/refuse"
secret_env = "NOC_SECRET"
"""


@pytest.fixture(scope="module")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    with listening(tmp_path_factory.mktemp("listener")) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("notify")
    config = folder / "gsid.toml"
    config.write_text(SETTINGS.format(url=listener.url("")))
    url = f"sqlite:///{folder / 'gsid.db'}"
    with running(url, folder, "--config", str(config), NOC_SECRET=SECRET) as started:
        yield started


class Net(Watched):
    """A network, and what the NOC was told of it."""

    def __init__(self, server: Server, listener: Listener) -> None:
        super().__init__(server)
        self.listener = listener

    def told(self) -> list[str]:
        """The status of every message about the network that the NOC took."""
        lines = [line["body"] for line in self.listener.taken("/ok")]
        mine = [b for b in lines if b["groupLabels"]["network"] == self.name]
        return [body["status"] for body in mine]

    def why(self, receiver: str = "noc") -> dict[str, Any]:
        return super().why(receiver)


@pytest.fixture
def net(server: Server, listener: Listener) -> Net:
    return Net(server, listener)


def gsid(*arguments: str, **environment: str) -> Result:
    """A command, in this process: starting another takes seconds."""
    return CliRunner().invoke(app, arguments, env=environment)


def in_an_hour() -> str:
    return (datetime.now(UTC) + timedelta(hours=1)).isoformat()


def test_a_mistake_is_told_and_so_is_its_end(net: Net) -> None:
    net.see(WRONG)
    until(lambda: net.told() == ["firing"])
    alert = net.alert()
    bodies = (line["body"] for line in net.listener.taken("/ok"))
    message = next(body for body in bodies if body["groupLabels"]["network"] == net.name)
    (told,) = [a for a in message["alerts"] if a["gsid"]["id"] == alert["id"]]
    differing = {"first_seen", "last_seen", "since"}  # times are written in two ways
    same = [name for name in told["gsid"] if name not in differing]
    assert {name: told["gsid"][name] for name in same} == {name: alert[name] for name in same}
    assert told["generatorURL"] == f"https://gsid.example/alerts/{alert['id']}"
    assert (net.why()["stage"], net.why()["told"]) == ("deliver", "firing")
    until(lambda: net.get(f"/deliveries/{net.why()['delivery']}")["status"] == "delivered")
    net.see(RIGHT)
    until(lambda: net.told() == ["firing", "resolved"])
    assert net.why()["told"] == "resolved"


def test_a_silence_is_seen_in_the_alert_and_its_end_lets_the_page_out(net: Net) -> None:
    matchers = [
        {"name": "network", "operator": "=", "value": net.name},
        {"name": "parameter", "operator": "=", "value": "local_pref"},
    ]
    added = net.post("/silences", matchers=matchers, comment="known", ends_at=in_an_hour())
    assert (added["status"], added["author"]) == ("active", "anyone")
    net.see(WRONG)
    assert net.alert()["status"] == "silenced"
    assert net.why()["stage"] == "silence"
    assert added["id"] in net.why()["reason"]
    assert net.told() == []
    net.server.client.delete(f"/api/v1/silences/{added['id']}").raise_for_status()
    until(lambda: net.told() == ["firing"])
    assert net.alert()["status"] == "firing"
    assert [e["what"] for e in net.alert()["events"]] == [
        *("opened", "silenced", "no longer silenced")
    ]
    again = net.server.client.delete(f"/api/v1/silences/{added['id']}")
    assert again.status_code == 409


def test_a_broad_silence_asks_for_confirmation(net: Net) -> None:
    broad = {
        "matchers": [{"name": "network", "operator": "=", "value": net.name}],
        "comment": "all of it",
        "ends_at": in_an_hour(),
    }
    answer = net.server.client.post("/api/v1/silences", json=broad)
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["field"] == "confirm"
    net.post("/silences", **broad, confirm=True)


@pytest.mark.parametrize("mode", ["mute", "hold"])
def test_a_maintenance_window_mutes_or_holds_back(net: Net, mode: str) -> None:
    ends_at = (datetime.now(UTC) + timedelta(seconds=2.5)).isoformat()
    starts_at = (datetime.now(UTC) - timedelta(days=7)).isoformat()
    recurring = {"rule": "FREQ=WEEKLY", "starts_at": starts_at}
    recurring["ends_at"] = (datetime.fromisoformat(ends_at) - timedelta(days=7)).isoformat()
    added = net.post(
        "/maintenance",
        network=net.name,
        mode=mode,
        comment="upgrade",
        entity="AS65101@R3",
        **recurring,
    )
    assert added["open_until"] is not None
    net.see(WRONG)
    if mode == "mute":
        assert net.alert()["status"] == "silenced"
        assert net.why()["stage"] == "maintenance"
    else:
        assert net.get("/alerts", network=net.name)["items"] == []
    assert net.told() == []
    until(lambda: net.told() == ["firing"])
    assert net.alert()["status"] == "firing"


def test_verdicts_are_counted(net: Net) -> None:
    net.see(WRONG)
    alert = net.alert()["id"]
    net.post(f"/alerts/{alert}/verdict", alarm="true")
    net.post(f"/alerts/{alert}/verdict", alarm="false", note="a test")
    shown = net.server.client.get("/metrics").text
    assert f'gsid_alert_verdicts{{network="{net.name}",verdict="false"}} 1.0' in shown
    assert f'gsid_alert_verdicts{{network="{net.name}",verdict="true"}} 0.0' in shown
    assert f'gsid_alert_precision_ratio{{network="{net.name}"}} 0.0' in shown


def test_dead_letters_are_listed_and_replayed_by_the_command_line(net: Net) -> None:
    net.see(WRONG)
    url = net.server.url

    def dead() -> list[dict[str, Any]]:
        done = gsid("deliveries", "list", "--status", "dead", "--url", url, "--json")
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return [row for row in rows if row["network"] == net.name]

    until(lambda: bool(dead()))
    (letter,) = dead()
    assert letter["receiver"] == "refusing"
    assert "404" in letter["answer"]
    done = gsid("deliveries", "replay", letter["id"], "--url", url)
    assert (done.exit_code, done.stderr) == (0, "1 to be tried again\n")
    until(lambda: bool(dead()))
    tries = [x for x in net.listener.received("/refuse") if x["id"] == letter["key"]]
    assert len(tries) == 2
    again = gsid("deliveries", "replay", net.why()["delivery"], "--url", url)
    assert (again.exit_code, "not dead" in again.stderr) == (2, True)


def test_receivers_are_shown_and_tested(server: Server, listener: Listener) -> None:
    shown = json.loads(gsid("receivers", "list", "--url", server.url, "--json").stdout)
    assert [(r["name"], r["type"]) for r in shown] == [("noc", "webhook"), ("refusing", "webhook")]
    assert shown[0]["target"] == listener.url("")
    done = gsid("receivers", "test", "noc", "--url", server.url)
    assert (done.exit_code, done.stderr) == (0, "noc answered: 200 OK: ok\n")
    failed = gsid("receivers", "test", "refusing", "--url", server.url)
    assert (failed.exit_code, "404" in failed.stderr) == (1, True)
    unknown = gsid("receivers", "test", "nobody", "--url", server.url)
    assert (unknown.exit_code, "not known" in unknown.stderr) == (2, True)
    secret = SECRET.removeprefix("whsec_")
    answers = server.client.get("/api/v1/receivers").text + server.logged
    database = (server.log.parent / "gsid.db").read_bytes()
    assert secret not in answers
    assert secret.encode() not in database


def test_silences_and_windows_by_the_command_line(net: Net) -> None:
    url = net.server.url
    add = ("silences", "add", f"network={net.name}", "--comment", "c", "--for", "1h", "--url", url)
    refused = gsid(*add)
    assert (refused.exit_code, refused.stderr.startswith("confirm:")) == (2, True)
    done = json.loads(gsid(*add, "--yes", "--json").stdout)
    listed = gsid("silences", "list", "--url", url).stdout
    assert f"{done['id']}\tactive\tnetwork={net.name}" in listed
    assert gsid("silences", "end", done["id"], "--url", url).exit_code == 0
    window = gsid(
        *("maintenance", "add", "--comment", "c", "--network", net.name, "--for", "2h", "--json"),
        *("--from", "2026-11-15T02:00", "--rule", "FREQ=WEEKLY;BYDAY=SU", "--url", url),
        *("--timezone", "Europe/Berlin"),
    )
    added = json.loads(window.stdout)
    assert added["next_start"].endswith(("T02:00:00Z", "T01:00:00Z"))
    assert gsid("maintenance", "cancel", added["id"], "--url", url).exit_code == 0
    shown = gsid("maintenance", "list", "--url", url, "--json").stdout
    assert added["id"] not in [row["id"] for row in json.loads(shown)]
    elsewhere = ("maintenance", "add", "--comment", "c", "--network", "as6500", "--for", "2h")
    mistyped = gsid(*elsewhere, "--url", url)
    assert (mistyped.exit_code, "no network 'as6500'" in mistyped.stderr) == (0, True)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ('name = "n"\ntype = "smtp"\nurl = "https://h"', "receivers[0].type"),
        ('name = "n"\ntype = "webhook"\nsecret_env = "NOC_SECRET"', "receivers[0].url"),
        (
            'name = "n"\ntype = "webhook"\nurl = "h:x"\nsecret_env = "NOC_SECRET"',
            "receivers[0].url",
        ),
        ('name = "n"\ntype = "webhook"\nurl = "http://h"\nsecret_env = "NOC_SECRET"', "[0].url"),
        ('name = "n"\ntype = "webhook"\nurl = "https://h"', "receivers[0].secret_env"),
        ('name = "n"\ntype = "webhook"\nurl = "https://h"\nsecret_env = "NO"', "[0].secret_env"),
        ('name = "n"\ntype = "webhook"\nurl = "https://h"\nsecret_file = "no"', "[0].secret_file"),
        ('name = "n"\ntype = "webhook"\nurl = "https://h"\nsecret_env = "SHORT"', "[0].secret_env"),
        ('type = "stdout"', "receivers[0].name"),
        ('name = "n"\ntype = "stdout"\nmin_severity = "high"', "receivers[0].min_severity"),
        ('name = "n"\ntype = "stdout"\nhost = "h"', "receivers[0].host"),
        ('name = "n"\ntype = "apprise"\nsecret_env = "NOC_SECRET"', "receivers[0].secret_env"),
        ('name = "n"\ntype = "pagerduty"', "receivers[0].secret_env"),
    ],
)
def test_a_bad_receiver_stops_the_start_with_its_key(tmp_path: Path, table: str, key: str) -> None:
    config = tmp_path / "gsid.toml"
    config.write_text(f"[[receivers]]\n{table}\n")
    done = gsid(
        "serve", "--check-config", "--config", str(config), NOC_SECRET=SECRET, SHORT="whsec_QUJD"
    )
    assert done.exit_code == 2
    (line,) = done.stderr.strip().splitlines()
    assert key in line
    assert SECRET not in line
