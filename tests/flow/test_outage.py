"""What fails around the service and comes back: it must go on by itself, and say so meanwhile."""

import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest

from tests import postgres
from tests.flow.network import small
from tests.flow.server import Server, running


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Nobody else can write to a SQLite database, as while a backup holds it or a disk stalls."""
    connection = sqlite3.connect(file, isolation_level=None, timeout=30)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


def post(server: Server, name: str, sequence: int) -> httpx.Response:
    return httpx.post(f"{server.url}/ingest", json=small(name, "rr1", sequence), timeout=30)


def until(true: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.1)
    return False


def scored(server: Server, name: str, sequence: int) -> bool:
    """Whether a new snapshot of the network is taken and scored."""
    answer = post(server, name, sequence)
    if answer.status_code != 202:
        return False
    query: dict[str, str | int] = {"snapshot": answer.json()["snapshot_id"], "wait": 5}
    found = server.client.get(f"/api/v1/networks/{name}/scores", params=query)
    return found.status_code == 200


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One snapshot may wait, and a request takes 2 seconds at most."""
    folder = tmp_path_factory.mktemp("narrow")
    settings = {"GSID_INGEST_QUEUE": "1", "GSID_SERVER_REQUEST_SECONDS": "2"}
    with running(f"sqlite:///{folder / 'gsid.db'}", folder, **settings) as server:
        assert scored(server, "n", 1)
        yield server


def test_a_full_queue_is_a_429_that_says_when_to_come_back(narrow: Server) -> None:
    with ThreadPoolExecutor(12) as threads:
        with locked(narrow.log.parent / "gsid.db"):
            posting = [threads.submit(post, narrow, "flood", n) for n in range(1, 13)]
            assert until(lambda: sum(p.done() for p in posting) == 10, 1.5)
            assert narrow.client.get("/-/healthy").status_code == 200
        answers = [each.result() for each in posting]
    refused = [answer for answer in answers if answer.status_code == 429]
    for answer in refused:
        assert answer.headers["content-type"] == "application/problem+json"
        assert int(answer.headers["retry-after"]) >= 1
    accepted = {a.json()["snapshot_id"] for a in answers if a.status_code == 202}
    assert (len(accepted), len(refused)) == (2, 10), "one is being stored, and one may wait"
    stored = narrow.client.get("/api/v1/networks/flood/snapshots").json()["items"]
    assert {snapshot["snapshot_id"] for snapshot in stored} == accepted
    assert 'outcome="refused"} 10.0' in narrow.client.get("/metrics").text


def test_ingest_goes_on_after_requests_timed_out(narrow: Server) -> None:
    """A request that was given up must not take the thread with it that stores snapshots."""
    with locked(narrow.log.parent / "gsid.db"):
        late = post(narrow, "late", 1)
    assert late.status_code == 503
    assert late.headers["content-type"] == "application/problem+json"
    assert until(lambda: scored(narrow, "late", 2)), "no snapshot is stored any more"


@pytest.fixture
def own_postgres() -> Iterator[tuple[str, Callable[[], None]]]:
    """A database, and a way to cut every connection to it, as a restart or a failover does."""
    with postgres.server() as url:
        database = postgres.new_database(url)
        plain = f"{url}/postgres".replace("+psycopg", "")

        def cut() -> None:
            with psycopg.connect(plain, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                    [database.rpartition("/")[2]],
                )

        yield database, cut


def test_the_cycle_outlives_the_database(
    own_postgres: tuple[str, Callable[[], None]], tmp_path: Path
) -> None:
    url, cut = own_postgres
    with running(url, tmp_path, GSID_CYCLE_SWEEP_SECONDS="0.05") as server:
        assert scored(server, "n", 1)
        ending = threading.Event()

        def load() -> None:
            sequence = 1
            while not ending.is_set():
                sequence += 1
                post(server, "n", sequence)

        thread = threading.Thread(target=load)
        thread.start()
        for _ in range(30):
            cut()
            time.sleep(0.05)
        ending.set()
        thread.join()
        assert until(lambda: server.client.get("/-/ready").status_code == 200, 5), "not ready"
        assert scored(server, "n", 10**6), "nothing is scored any more"


def test_hangups_under_load_do_not_stop_it(tmp_path: Path) -> None:
    """A signal handler that logs must not wait for a lock that it interrupted."""
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    with running(url, tmp_path) as server:
        ending = threading.Event()

        def load() -> None:
            with httpx.Client(base_url=server.url, timeout=5) as client:
                while not ending.is_set():
                    client.get("/-/healthy")

        with ThreadPoolExecutor(4) as threads:
            loading = [threads.submit(load) for _ in range(4)]
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline:
                server.signal(signal.SIGHUP)
                time.sleep(0.0005)
            ending.set()
            failures = [each.exception() for each in loading]
        assert failures == [None] * 4
        assert server.client.get("/-/ready", timeout=5).status_code == 200
