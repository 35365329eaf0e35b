"""A backup while collectors post and the service scores, restored elsewhere: nothing is missing.

The restored database is of the other kind, and a service goes on from it.
"""

import json
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from gsid_service.__main__ import app
from gsid_service.store.database import connect
from gsid_service.store.tables import metadata
from tests import postgres
from tests.api.conftest import add_token
from tests.flow.forking import Forked
from tests.flow.server import Server, need_model
from tests.flow.test_crash import (
    COLLECTORS,
    RIGHT,
    WRONG,
    Collector,
    assert_alerts,
    assert_whole,
)

LOAD_SECONDS = 2.0
Rows = dict[str, set[str]]


def every_row(database_url: str) -> Rows:
    """All there is, in a form that is the same for both kinds of database."""
    database = connect(database_url, migrate=False)
    try:
        with database.read() as connection:
            return {
                table.name: {repr(tuple(row)) for row in connection.execute(select(table))}
                for table in metadata.sorted_tables
            }
    finally:
        database.close()


def posting(server: Server, collector: Collector, ending: threading.Event) -> None:
    rng = random.Random(collector.name)
    while not ending.is_set():
        collector.send(server.client, rng.choice((WRONG, RIGHT)))


def back_up_under_load(
    server: Server, collectors: list[Collector], file: Path
) -> tuple[list[Collector], dict[str, int]]:
    """What each collector had been acknowledged before the backup began, and the rows in it."""
    ending = threading.Event()
    with ThreadPoolExecutor(COLLECTORS) as threads:
        load = [threads.submit(posting, server, each, ending) for each in collectors]
        time.sleep(LOAD_SECONDS)
        before = [replace(each, acknowledged=dict(each.acknowledged)) for each in collectors]
        counts = told("backup", file, server.settings["GSID_DATABASE_URL"])
        ending.set()
        for each in load:
            each.result()
    return before, counts


def command(name: str, file: Path, database_url: str) -> Result:
    """`gsid backup` or `restore`, within this process: there is nothing that it shares with it."""
    environment = {"GSID_DATABASE_URL": database_url}
    return CliRunner().invoke(app, [name, str(file), "--json"], env=environment)


def told(name: str, file: Path, database_url: str) -> dict[str, int]:
    """The rows of each table that it wrote."""
    done = command(name, file, database_url)
    assert done.exit_code == 0, done.output
    return {row["table"]: row["rows"] for row in json.loads(done.stdout)}


@contextmanager
def forked(database_url: str, folder: Path) -> Iterator[Server]:
    need_model()
    server = Forked(database_url, folder / "server.log", (), {})
    try:
        server.start()
        yield server
        assert server.stop() in {0, -signal.SIGTERM}
    finally:
        server.close()


def other_kind(request: pytest.FixtureRequest, database_url: str, folder: Path) -> str:
    if database_url.startswith("postgresql"):
        return f"sqlite:///{folder / 'restored.db'}"
    server: str = request.getfixturevalue("postgres_server")
    return postgres.new_database(server)


def test_a_backup_under_load_has_all_that_was_acknowledged(
    request: pytest.FixtureRequest, database_url: str, tmp_path: Path
) -> None:
    file, elsewhere = tmp_path / "gsid.backup", other_kind(request, database_url, tmp_path)
    collectors = [Collector(f"as{number}") for number in range(COLLECTORS)]
    with forked(database_url, tmp_path) as server:
        for collector in collectors:  # the approved state is the right one
            snapshot = collector.send(server.client, RIGHT)
            path = f"/api/v1/networks/{collector.name}/scores"
            server.client.get(path, params={"snapshot": snapshot, "wait": 30}).raise_for_status()
        before, counts = back_up_under_load(server, collectors, file)
    known = sum(len(each.acknowledged) for each in before)
    stored = sum(len(each.acknowledged) for each in collectors)
    assert COLLECTORS < known <= counts["snapshots"] < stored, "the load did not go on beside it"
    assert counts["alert_events"] > 0, "nothing was scored beside it"

    assert told("restore", file, elsewhere) == counts
    restored = every_row(elsewhere)
    assert restored == every_row(f"sqlite:///{file}")
    assert restored["snapshots"] <= every_row(database_url)["snapshots"]
    assert_whole(elsewhere, before)
    with forked(elsewhere, tmp_path) as server:
        assert_alerts(server, elsewhere)


def test_what_cannot_be_done_is_one_line(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path / 'gsid.db'}", tmp_path / "gsid.backup"
    connect(url, migrate=True).close()
    add_token(url, "noc", "operate")
    assert told("backup", file, url)["tokens"] == 1
    for name, reason in (("backup", "is there already"), ("restore", "is not empty")):
        refused = command(name, file, url)
        assert refused.exit_code == 2
        assert reason in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
