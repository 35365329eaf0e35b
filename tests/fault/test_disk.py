"""A disk that is full, or takes no writes: what was acknowledged stays, what was not is refused,
and once there is room again the service goes on by itself."""

import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from gsid_service.store.database import connect
from tests.fault.disk import (
    full,
    need_mounts,
    on_read_only_disk,
    on_small_disk,
    seen_by,
    unwritable,
)
from tests.flow.network import small
from tests.flow.server import PROGRAM, Server, environment, running, started
from tests.waiting import until

RIGHT, WRONG = 200, 0
POSTS_AT_MOST = 200  # some still fit: the log that SQLite writes ahead is there already


class Collector:
    """Posts one snapshot after the other, and remembers what was acknowledged."""

    def __init__(self, server: Server, name: str) -> None:
        self.client, self.name, self.sequence = server.client, name, 0
        self.acknowledged: set[str] = set()
        self.post(RIGHT).raise_for_status()
        self.until_scored()

    def post(self, local_pref: int) -> httpx.Response:
        self.sequence += 1
        body = small(self.name, "rr1", self.sequence, local_pref=local_pref)
        answer = self.client.post("/ingest", json=body)
        if answer.status_code == 202:
            self.acknowledged.add(answer.json()["snapshot_id"])
        return answer

    def until_refused(self) -> httpx.Response:
        for _ in range(POSTS_AT_MOST):
            answer = self.post(WRONG)
            if answer.status_code != 202:
                return answer
        raise AssertionError("it is never refused")

    def until_scored(self) -> None:
        until(lambda: self._get("")["up_to_date"] is True)

    def stored(self) -> set[str]:
        return {s["snapshot_id"] for s in self._get("/snapshots?limit=1000")["items"]}

    def firing(self) -> list[int]:
        query = {"network": self.name, "status": "firing"}
        found = self.client.get("/api/v1/alerts", params=query).raise_for_status().json()["items"]
        return [alert["observed"] for alert in found]

    def _get(self, path: str) -> Any:
        return self.client.get(f"/api/v1/networks/{self.name}{path}").raise_for_status().json()


def assert_refused_and_back(
    server: Server, name: str, trouble: AbstractContextManager[None], problem: str
) -> None:
    collector = Collector(server, name)
    with trouble:
        refused = collector.until_refused()
        assert refused.status_code == 503, refused.text
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["retry-after"]) >= 1
        assert problem in refused.json()["detail"]
        ready = server.client.get("/-/ready")
        assert (ready.status_code, problem in ready.json()["detail"]) == (503, True)
        assert server.client.get("/-/healthy").status_code == 200
        assert collector.acknowledged <= collector.stored(), "what is there can still be read"
    until(lambda: server.client.get("/-/ready").status_code == 200)
    assert collector.acknowledged <= collector.stored()
    assert collector.post(WRONG).status_code == 202
    collector.until_scored()
    assert collector.firing() == [WRONG]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_mounts()
    return tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def server(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("log") / "server.log"
    made = Server(f"sqlite:///{disk / 'gsid.db'}", log, (), {})
    made.program = (*on_small_disk(disk, "16m"), *PROGRAM)
    with started(made) as server:
        yield server


def test_a_full_disk(server: Server, disk: Path) -> None:
    assert_refused_and_back(server, "full", full(seen_by(server, disk)), "SQLITE_FULL")
    assert "database or disk is full" in server.logged


def test_a_disk_that_takes_no_writes(server: Server) -> None:
    """Not even lines of the log, which must stop nothing."""
    assert_refused_and_back(server, "unwritable", unwritable(server), "SQLITE_")


def test_a_start_on_a_read_only_disk_is_refused_in_one_line(tmp_path: Path) -> None:
    need_mounts()
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    connect(url, migrate=True).close()
    done = subprocess.run(
        [*on_read_only_disk(tmp_path), *PROGRAM, "serve", "--port", "0"],
        env=environment(GSID_DATABASE_URL=url),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert "cannot be written to" in line


def test_a_postgresql_that_became_read_only(postgres_database: str, tmp_path: Path) -> None:
    """As after a failover to a standby, or where its own disk is nearly full."""
    with running(postgres_database, tmp_path) as server:
        reading = ReadOnly(postgres_database)
        assert_refused_and_back(server, "standby", reading, "ReadOnlySqlTransaction")


class ReadOnly(AbstractContextManager[None]):
    """A PostgreSQL database on which nobody can write."""

    def __init__(self, url: str) -> None:
        self.url = url.replace("+psycopg", "")
        self.name = url.rsplit("/", 1)[1]

    def __enter__(self) -> None:
        self._set("on")

    def __exit__(self, *_: object) -> None:
        self._set("off")

    def _set(self, value: str) -> None:
        other = self.url.rsplit("/", 1)[0] + "/postgres"
        with psycopg.connect(other, autocommit=True) as connection:
            connection.execute(
                f'ALTER DATABASE "{self.name}" SET default_transaction_read_only = {value}'
            )
            # It counts for new connections only.
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                (self.name,),
            )
