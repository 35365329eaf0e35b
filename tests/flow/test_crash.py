"""kill -9 under load: what was acknowledged is there, nothing is half-stored, alerts are right.

Each thread is one collector of one network, and reports a right or a wrong local preference. After
every kill nobody may hold the port, the process that scores must end, and the database is read
without the service; after every start the service must have caught up by itself, and an alert must
fire exactly where the newest stored value is wrong.
"""

import errno
import random
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import decompress

import httpx
from sqlalchemy import func, select

from gsid_service.alert.decide import TURNS
from gsid_service.ingest.wire import parse_snapshot
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF
from gsid_service.store.database import Database, connect
from gsid_service.store.tables import alert_events, alerts, networks, snapshots
from tests.flow import network
from tests.flow.forking import Forked
from tests.flow.server import Server, is_running, need_model

ROUNDS = 16  # on each of two databases
WHOLE = 8  # of so many rounds one is of a server that is not forked, and takes seconds to start
COLLECTORS = 4
RIGHT, WRONG = 200, 0
LOAD = (5, 80)  # snapshots acknowledged before a kill
END_WITHIN = 10.0


@dataclass
class Collector:
    """Posts one snapshot after the other, and remembers what was acknowledged."""

    name: str
    sequence: int = 0
    acknowledged: dict[str, int] = field(default_factory=dict)  # sequence by snapshot id

    def post(self, url: str, rng: random.Random) -> None:
        """Until the server is gone."""
        with httpx.Client(base_url=url, timeout=10) as client:
            try:
                while True:
                    self.send(client, rng.choice((RIGHT, WRONG)))
            except httpx.TransportError:
                return

    def send(self, client: httpx.Client, local_pref: int) -> str | None:
        self.sequence += 1
        body = network.small(self.name, "rr1", self.sequence, local_pref=local_pref)
        answer = client.post("/ingest", json=body)
        assert answer.status_code in {202, 429}, answer.text
        if answer.status_code == 429:
            return None
        snapshot: str = answer.json()["snapshot_id"]
        self.acknowledged[snapshot] = self.sequence
        return snapshot


def test_nothing_acknowledged_is_lost(database_url: str, tmp_path: Path) -> None:
    rng = random.Random("crash")
    need_model()
    forked = Forked(database_url, tmp_path / "server.log", (), {})
    whole = Server(database_url, tmp_path / "whole.log", (), {})
    collectors = [Collector(f"as{n}") for n in range(COLLECTORS)]
    server: Server = forked
    try:
        server.start()
        for collector in collectors:  # the approved state is the right one
            snapshot = collector.send(server.client, RIGHT)
            path = f"/api/v1/networks/{collector.name}/scores"
            server.client.get(path, params={"snapshot": snapshot, "wait": 30}).raise_for_status()
        for number in range(ROUNDS):
            crash_under_load(server, collectors, rng)
            assert_whole(database_url, collectors)
            server = whole if number % WHOLE == 0 else forked
            if number % 4 == 3:
                crash_while_starting(server, rng)
            server.start()
            assert_alerts(server, database_url)
        assert server.stop() in {0, -signal.SIGTERM}
    finally:
        forked.close()
        whole.close()
    assert "cycle failed" not in forked.logged + whole.logged


def crash_under_load(server: Server, collectors: list[Collector], rng: random.Random) -> None:
    scoring = scoring_process(server)
    assert is_running(scoring)
    enough = acknowledged(collectors) + rng.randint(*LOAD)
    with ThreadPoolExecutor(COLLECTORS) as threads:
        posting = [
            threads.submit(collector.post, server.url, random.Random(rng.random()))
            for collector in collectors
        ]
        while acknowledged(collectors) < enough and not any(each.done() for each in posting):
            time.sleep(rng.uniform(0, 0.02))
        server.kill()
        assert_nobody_listens(server.port)
        for each in posting:
            each.result()
    deadline = time.monotonic() + END_WITHIN
    while is_running(scoring):
        assert time.monotonic() < deadline, "the process that scores outlives its server"
        time.sleep(0.02)


def acknowledged(collectors: list[Collector]) -> int:
    return sum(len(collector.acknowledged) for collector in collectors)


def scoring_process(server: Server) -> int:
    """The one that was started last."""
    return int(re.findall(r"the scoring process is ready +pid=(\d+)", server.logged)[-1])


def assert_nobody_listens(port: int) -> None:
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED, "who holds the port?"


def crash_while_starting(server: Server, rng: random.Random) -> None:
    server.launch()
    time.sleep(rng.uniform(0.05, 0.6))
    server.kill()


def assert_whole(database_url: str, collectors: list[Collector]) -> None:
    database = connect(database_url, migrate=False)
    try:
        with database.read() as connection:
            known = set(connection.scalars(select(networks.c.name)))
            stored = connection.execute(select(snapshots)).all()
            counted = connection.execute(select(alerts.c.number, alerts.c.status)).all()
            events = connection.execute(
                select(alert_events.c.alert, alert_events.c.what).order_by(alert_events.c.number)
            ).all()
    finally:
        database.close()
    whole: dict[tuple[str, str], int] = {}
    for row in stored:
        snapshot = parse_snapshot(decompress(row.body))
        assert row.network in known
        assert (snapshot.network, snapshot.sequence) == (row.network, row.sequence)
        assert len(snapshot.facts) == row.facts
        whole[row.network, f"s{row.number}"] = row.sequence
    for collector in collectors:
        for snapshot_id, sequence in collector.acknowledged.items():
            assert whole.get((collector.name, snapshot_id)) == sequence, "acknowledged, and lost"
    for number, status in counted:
        turns = [what for alert, what in events if alert == number and what in TURNS]
        assert turns[:1] == ["opened"]
        assert (turns[-1] == "resolved") == (status == "resolved")
    assert {alert for alert, _ in events} == {number for number, _ in counted}


def assert_alerts(server: Server, database_url: str) -> None:
    """Once it has caught up, an alert fires where, and only where, the newest value is wrong."""
    deadline = time.monotonic() + 30
    while True:
        found = server.client.get("/api/v1/networks").raise_for_status().json()["items"]
        if all(n["up_to_date"] for n in found):
            break
        assert time.monotonic() < deadline, f"it does not catch up: {found}"
        time.sleep(0.02)
    assert [n["problem"] for n in found] == [None] * COLLECTORS
    answer = server.client.get("/api/v1/alerts", params={"status": "firing"}).raise_for_status()
    firing = {alert["network"]: alert["observed"] for alert in answer.json()["items"]}
    newest = newest_values(database_url)
    assert firing == {name: value for name, value in newest.items() if value == WRONG}


def newest_values(database_url: str) -> dict[str, int]:
    """The local preference in the newest stored snapshot of each network."""
    database: Database = connect(database_url, migrate=False)
    try:
        with database.read() as connection:
            last = (
                select(func.max(snapshots.c.number)).group_by(snapshots.c.network).scalar_subquery()
            )
            rows = connection.execute(
                select(snapshots.c.network, snapshots.c.body).where(snapshots.c.number.in_(last))
            ).all()
    finally:
        database.close()
    return {name: local_pref(parse_snapshot(decompress(body))) for name, body in rows}


def local_pref(snapshot: Any) -> int:
    route = next(
        f for f in snapshot.facts if f.predicate == BGP_ROUTE.name and "AS65101@R3" in f.args
    )
    value: int = route.params[LOCAL_PREF.name]
    return value
