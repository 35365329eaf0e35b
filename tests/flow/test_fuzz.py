"""schemathesis over the whole OpenAPI of the running server: no 500, no undocumented answer."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gsid_service.store import tokens
from gsid_service.store.database import connect
from tests import postgres
from tests.flow.network import small
from tests.flow.server import Server, running

NAME = "as65000"  # as the examples of the OpenAPI have it
EXAMPLES = 5  # drawn for each operation, beside the edges of every field
# A snapshot may fit its schema and still name entities that it does not declare.
LEFT_OUT = "positive_data_acceptance"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """With a network and an alert."""
    folder = tmp_path_factory.mktemp("fuzz")
    url = f"sqlite:///{folder / 'gsid.db'}"
    if request.param == "postgresql":
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
    with running(url, folder) as started:
        for sequence, local_pref in ((1, 200), (2, 0)):
            body = small(NAME, "rr1", sequence, local_pref=local_pref)
            answer = started.client.post("/ingest", json=body).raise_for_status()
            query = {"snapshot": answer.json()["snapshot_id"], "wait": 30}
            started.client.get(f"/api/v1/networks/{NAME}/scores", params=query).raise_for_status()
        yield started


def authorization(server: Server, role: str) -> dict[str, str]:
    """The header with a new token."""
    database = connect(server.settings["GSID_DATABASE_URL"], migrate=False)
    with database.write() as connection:
        now = datetime.now(UTC)
        secret = tokens.create(connection, f"fuzz {now.isoformat()}", role, (), now)
    database.close()
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    ("role", "which"), [("ingest", "--include-path"), ("operate", "--exclude-path")]
)
def test_every_answer_is_documented(server: Server, role: str, which: str, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("st")
    if not program.exists():
        postgres.missing("schemathesis")
    done = subprocess.run(
        [
            *(program, "run", f"{server.url}/openapi.json"),
            *("--header", f"Authorization: {authorization(server, role)['Authorization']}"),
            *(which, "/ingest"),
            *("--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES)),
            *("--exclude-checks", LEFT_OUT, "--seed", "1", "--continue-on-failure"),
            *("--generation-database", "none", "--request-timeout", "35", "--no-color"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert "Unresolvable references" not in done.stdout, "a part of the OpenAPI cannot be read"
    assert server.client.get("/-/ready").status_code == 200


ODD = ("%00", "a%00b", "%F0%9F%9B%B0", "%ED%A0%80", "..%2F..", "%20", "'%20OR%201=1", "x" * 200)


@pytest.mark.parametrize("odd", ODD)
def test_odd_names_are_no_error_of_the_service(server: Server, odd: str) -> None:
    """What one database takes, and the other refuses, must not be seen from outside."""
    headers = authorization(server, tokens.OPERATE)
    for path in (
        f"/api/v1/networks/{odd}",
        f"/api/v1/networks/{odd}/scores",
        f"/api/v1/alerts?network={odd}",
        f"/api/v1/alerts/{odd}",
        f"/api/v1/networks/{NAME}/changes/{odd}",
        f"/api/v1/networks/{NAME}/scores/history?predicate={odd}&arg={odd}&parameter={odd}",
    ):
        answer = server.client.get(path, headers=headers)
        assert answer.status_code in {200, 404, 422}, path
    note = {"note": "a\0b"}
    answer = server.client.post("/api/v1/alerts/a1/ack", json=note, headers=headers)
    assert answer.status_code in {200, 409, 422}, answer.text
