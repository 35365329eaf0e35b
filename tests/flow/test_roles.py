"""An API, a scorer and a notifier as processes of their own, on one PostgreSQL."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests import postgres
from tests.flow.network import small
from tests.flow.server import Server, gsid, running
from tests.flow.watched import RIGHT, WRONG, Watched
from tests.notify.listener import SECRET, Listener, listening
from tests.waiting import until

SETTINGS = """
[notify]
group_wait_seconds = 0
group_interval_seconds = 0
[[receivers]]
name = "noc"
type = "webhook"
url = "{url}"
secret_env = "NOC_SECRET"
"""


@dataclass
class Apart:
    api: Server
    scorer: Server
    notifier: Server
    noc: Listener


@pytest.fixture(scope="module")
def apart(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    folder = tmp_path_factory.mktemp("roles")
    url = postgres.new_database(postgres_server)
    config = folder / "gsid.toml"

    def started(role: str) -> tuple[str, Path, str, str, str, str]:
        (folder / role).mkdir()
        return url, folder / role, "--config", str(config), "--role", role

    with listening(folder) as noc:
        config.write_text(SETTINGS.format(url=noc.url("/ok")))
        with (
            running(*started("api"), NOC_SECRET=SECRET) as api,
            running(*started("scorer"), NOC_SECRET=SECRET) as scorer,
            running(*started("notifier"), NOC_SECRET=SECRET) as notifier,
        ):
            yield Apart(api, scorer, notifier, noc)


def test_a_mistake_goes_through_all_of_them(apart: Apart) -> None:
    net = Watched(apart.api)
    net.see(WRONG)
    (told,) = apart.noc.wait(1)
    assert told["body"]["alerts"][0]["gsid"]["id"] == net.alert()["id"]
    net.see(RIGHT)
    assert [line["body"]["status"] for line in apart.noc.wait(2)] == ["firing", "resolved"]
    assert net.why("noc")["stage"] == "deliver"


def test_the_series_of_networks_are_the_api_s_and_those_of_work_its_doer_s(apart: Apart) -> None:
    net = Watched(apart.api)
    servers = {"api": apart.api, "scorer": apart.scorer, "notifier": apart.notifier}
    shown = {role: server.client.get("/metrics").text for role, server in servers.items()}
    mine = f'network="{net.name}"'
    assert f"gsid_anomaly_score_max{{{mine}" in shown["api"]
    assert f'gsid_snapshots_total{{{mine},outcome="accepted"}} 1.0' in shown["api"]
    heard = f'gsid_collector_last_snapshot_timestamp_seconds{{collector="rr1",{mine}}}'
    assert heard in shown["api"]
    for role in ("scorer", "notifier"):
        assert mine not in shown[role], "it would count twice"
    none = 'gsid_cycle_seconds_count{stage="score"} 0.0'
    assert {role for role, text in shown.items() if none not in text} == {"scorer"}
    assert 'gsid_notifications_total{outcome="delivered",receiver="noc"}' in shown["notifier"]
    net.see(WRONG)
    firing = f'gsid_alerts{{{mine},severity="critical",status="firing"}} 1.0'
    assert firing in apart.api.client.get("/metrics").text


def test_who_does_one_thing_only_answers_nothing_else(apart: Apart) -> None:
    for server in (apart.scorer, apart.notifier):
        for path in ("/-/healthy", "/-/ready", "/metrics"):
            assert server.client.get(path).status_code == 200
        for path in ("/", "/docs", "/openapi.json", "/api/v1/networks"):
            assert server.client.get(path).status_code == 404
        assert server.client.post("/ingest", json=small("x")).status_code == 404


def test_a_page_hears_of_what_another_process_did(apart: Apart) -> None:
    net = Watched(apart.api)
    with (
        httpx.Client(base_url=apart.api.url, timeout=20) as client,
        client.stream("GET", "/events", params={"known": "nothing"}) as events,
    ):
        lines = events.iter_lines()
        assert any('"network": "*"' in line for line in lines), "what it missed comes first"
        net.see(WRONG)
        # The cycle's end, and what the notifier delivered: in this order or together.
        missing = {net.name, "*"}
        for line in lines:
            missing -= {name for name in missing if f'"network": "{name}"' in line}
            if not missing:
                break
        assert not missing


def test_a_check_has_a_model_of_its_own(apart: Apart) -> None:
    net = Watched(apart.api)
    assert "the scoring process is ready" not in apart.api.logged
    candidate = small(net.name, "rr1", 99, local_pref=WRONG)
    found = net.post(f"/networks/{net.name}/check", **candidate)
    assert [value["observed"] for value in found["new"]] == [WRONG]
    assert "the scoring process is ready" in apart.api.logged
    assert apart.api.client.get("/api/v1/models").json()["items"][0]["name"] == "gsid-1"


def test_the_scorer_finishes_its_round_when_it_is_stopped(apart: Apart) -> None:
    net = Watched(apart.api)
    net.sequence += 1
    body = small(net.name, "rr1", net.sequence, local_pref=WRONG)
    apart.api.client.post("/ingest", json=body).raise_for_status()
    assert apart.scorer.stop() in {0, -signal.SIGTERM}
    apart.scorer.start()
    until(lambda: net.get(f"/networks/{net.name}")["up_to_date"])
    assert "taken up again" not in apart.scorer.logged, "it left a job behind"


def test_one_process_alone_is_refused_on_sqlite(tmp_path: Path) -> None:
    done = gsid(
        "serve", "--role", "scorer", "--port", "0", GSID_DATABASE_URL=f"sqlite:///{tmp_path}/g.db"
    )
    assert done.returncode != 0
    assert "server.role: scorer" in done.stderr
    assert "database.url" in done.stderr
    unknown = gsid("serve", "--role", "boss", GSID_DATABASE_URL=f"sqlite:///{tmp_path}/g.db")
    assert "server.role" in unknown.stderr
