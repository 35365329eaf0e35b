"""Servers that the tests of the API share: each is started once, on a database of its own."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from gsid_service.store import tokens
from gsid_service.store.database import connect
from tests.api.inside import Inside, inside
from tests.flow.network import small
from tests.flow.server import Server, running

BODY_BYTES = 200_000
Caller = Callable[[str], httpx.Client]


def add_token(database_url: str, name: str, role: str, *networks: str) -> str:
    database = connect(database_url, migrate=False)
    with database.write() as connection:
        secret = tokens.create(connection, name, role, networks, datetime.now(UTC))
    database.close()
    return secret


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Open to everyone on this machine, with one network that has an alert, and small bodies."""
    folder = tmp_path_factory.mktemp("service")
    url = f"sqlite:///{folder / 'gsid.db'}"
    with running(url, folder, GSID_SERVER_BODY_BYTES=str(BODY_BYTES)) as server:
        watch(server.client)
        yield server


def watch(client: httpx.Client, name: str = "as65000") -> None:
    """A network, and a mistake in it."""
    for sequence, local_pref in ((1, 200), (2, 0)):
        answer = client.post("/ingest", json=small(name, "rr1", sequence, local_pref=local_pref))
        assert answer.status_code == 202, answer.text
        query = {"snapshot": answer.json()["snapshot_id"], "wait": 30}
        client.get(f"/api/v1/networks/{name}/scores", params=query).raise_for_status()


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Where a token is asked for, with the networks `mine` and `other`, each with an alert."""
    folder = tmp_path_factory.mktemp("guarded")
    with running(f"sqlite:///{folder / 'gsid.db'}", folder) as server:
        watch(server.client, "mine")
        watch(server.client, "other")
        add_token(server.settings["GSID_DATABASE_URL"], "first", tokens.OPERATE)
        yield server


@pytest.fixture
def watched(database_url: str) -> Iterator[Inside]:
    """The application with one network in it, on each database."""
    with inside(database_url) as opened:
        opened.see()
        yield opened


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Inside]:
    """The same on SQLite alone, where the database makes no difference."""
    with inside(f"sqlite:///{tmp_path / 'gsid.db'}") as opened:
        opened.see()
        yield opened


@pytest.fixture
def caller(guarded: Server) -> Iterator[Caller]:
    """A client with a fresh token of a role, bound to networks or not: `read`, `read mine`."""
    clients: list[httpx.Client] = []

    def make(wanted: str) -> httpx.Client:
        role, *networks = wanted.split()
        number = datetime.now(UTC).timestamp()
        secret = add_token(
            guarded.settings["GSID_DATABASE_URL"], f"{wanted} {number}", role, *networks
        )
        client = httpx.Client(
            base_url=guarded.url, headers={"Authorization": f"Bearer {secret}"}, timeout=30
        )
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
