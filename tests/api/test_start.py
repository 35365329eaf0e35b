"""Starting, or refusing to with one clear line and exit code 2; reading the settings again."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gsid_service.__main__ import app
from gsid_service.store.database import connect
from tests.api.conftest import add_token
from tests.flow.network import small
from tests.flow.server import MODEL, Server, gsid, running
from tests.postgres import free_port
from tests.waiting import until


def assert_refused(done: "subprocess.CompletedProcess[str]", *named: str) -> None:
    """One clear line on stderr, and the exit code of bad input."""
    assert done.returncode == 2, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    for name in named:
        assert name in lines[0]


def refused(arguments: Sequence[str], **settings: str) -> str:
    """What a command on bad settings says: found before anything is loaded, so run in here."""
    environment = {"GSID_MODEL_FOLDER": str(MODEL)} | settings
    done = CliRunner().invoke(app, arguments, env=environment)
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("GSID_SERVER_PORT", "http", "server.port"),
        ("GSID_SERVER_PORT", "70000", "server.port"),
        ("GSID_SERVER_PRT", "80", "server.prt"),
        ("GSID_SERVER_TLS_KEY", "key.pem", "tls_certificate and tls_key"),
        ("GSID_INGEST_QUEUE", "0", "ingest.queue"),
        ("GSID_ALERTS_OPEN_SCORE", "1.5", "alerts.open_score"),
        ("GSID_ALERTS_OPEN_SCORE", "0.3", "close_score"),
        ("GSID_DATABASE_URL", "mysql://host/name", "database.url"),
        ("GSID_LOG_LEVEL", "loud", "log.level"),
        ("GSID_CYCLE_SWEEP_SECONDS", "nan", "cycle.sweep_seconds"),
        ("GSID_CYCLE_SWEEP_SECONDS", "inf", "cycle.sweep_seconds"),
        ("GSID_CYCLE_STALE_SECONDS", "1e300", "cycle.stale_seconds"),
        ("GSID_RETENTION_DAYS", "1e300", "retention.days"),
    ],
)
def test_a_bad_setting_is_named(variable: str, value: str, named: str) -> None:
    line = refused(["serve", "--check-config"], **{variable: value})
    assert named in line
    assert variable in line


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[server\n", "not TOML"),
        ("[servers]\nport = 1", "servers"),
        ("port = 1", "port"),
        ("[server]\nprot = 1", "server.prot"),
        ("[server]\nport = true", "server.port"),
        ("[server]\nport = [1]", "server.port"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "gsid.toml"
    file.write_text(text)
    line = refused(["serve", "--check-config", "--config", str(file)])
    assert named in line
    assert str(file) in line


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "gone.toml" in refused(["serve", "--config", str(tmp_path / "gone.toml")])


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    """Neither where the URL is wrong, nor where the settings are printed."""
    wrong = refused(["serve"], GSID_DATABASE_URL="postgresql://gsid:hunter2@db/gsid")
    assert "database.url" in wrong
    assert "hunter2" not in wrong
    away = f"postgresql+psycopg://gsid:hunter2@127.0.0.1:{free_port()}/gsid"
    refusal = refused(["serve", "--check-config"], GSID_DATABASE_URL=away)
    assert "database.url" in refusal
    assert "hunter2" not in refusal
    file = tmp_path / "gsid.toml"
    file.write_text('[database]\nurl = "postgresql://gsid:hunter2@db/gsid"')
    assert "hunter2" not in refused(["serve", "--config", str(file)])


def test_check_config_prints_what_counts_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "gsid.toml"
    file.write_text("[server]\nport = 1\n[alerts]\nopen_score = 0.9\n[ingest]\nqueue = 7")
    done = gsid(
        *("serve", "--check-config", "--config", str(file), "--port", "3"),
        GSID_SERVER_PORT="2",
        GSID_INGEST_QUEUE="8",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["server"]["port"] == 3
    assert found["ingest"]["queue"] == 8
    assert found["alerts"]["open_score"] == 0.9


@pytest.mark.parametrize("broken", ["absent", "a pickle"])
def test_a_bad_model_stops_the_start(tmp_path: Path, broken: str) -> None:
    folder = tmp_path / "model"
    if broken == "a pickle":
        folder.mkdir()
        (folder / "config.json").write_bytes((MODEL / "config.json").read_bytes())
        (folder / "weights.safetensors").write_bytes(b"\x80\x04K\x01.")
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    done = gsid("serve", "--port", "0", GSID_DATABASE_URL=url, GSID_MODEL_FOLDER=str(folder))
    assert_refused(done, "model", str(folder))
    assert not (tmp_path / "gsid.db").exists()


def test_a_damaged_model_is_found_when_settings_are_checked(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((MODEL / "config.json").read_bytes())
    (tmp_path / "weights.safetensors").write_bytes(
        (MODEL / "weights.safetensors").read_bytes()[:99]
    )
    line = refused(["serve", "--check-config"], GSID_MODEL_FOLDER=str(tmp_path))
    assert f"model.folder: {tmp_path}: cannot be read" in line


def test_a_model_that_is_not_there_is_named_when_settings_are_checked(tmp_path: Path) -> None:
    line = refused(["serve", "--check-config"], GSID_MODEL_FOLDER=str(tmp_path))
    assert f"model.folder: {tmp_path / 'config.json'} cannot be read" in line


def bad_url(folder: Path, broken: str) -> str:
    (folder / "text.db").write_text("this is not a database, and never was one " * 100)
    return {
        "no folder": f"sqlite:///{folder / 'none' / 'gsid.db'}",
        "not a database": f"sqlite:///{folder / 'text.db'}",
        "no server": f"postgresql+psycopg://gsid:hunter2@127.0.0.1:{free_port()}/gsid",
    }[broken]


def test_a_bad_database_stops_the_start(tmp_path: Path) -> None:
    url = bad_url(tmp_path, "not a database")
    assert_refused(gsid("serve", GSID_DATABASE_URL=url), "database.url: ", "text.db")


@pytest.mark.parametrize("command", [("serve", "--check-config"), ("migrate",)])
@pytest.mark.parametrize("broken", ["not a database", "no folder", "no server"])
def test_a_bad_database_is_named(tmp_path: Path, command: tuple[str, ...], broken: str) -> None:
    line = refused(command, GSID_DATABASE_URL=bad_url(tmp_path, broken))
    assert line.startswith("database.url: ")
    assert "hunter2" not in line


OFF = ("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104


def test_off_loopback_it_wants_tokens_then_tls_unless_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    assert_refused(gsid(*OFF, GSID_DATABASE_URL=url), "server.host: 0.0.0.0", "no tokens")
    assert "no tokens" in refused([*OFF, "--check-config"], GSID_DATABASE_URL=url)
    assert not list(tmp_path.iterdir()), "something is left behind"
    connect(url, migrate=True).close()
    add_token(url, "noc", "operate")
    assert_refused(gsid(*OFF, GSID_DATABASE_URL=url), "server.host: 0.0.0.0", "no TLS")
    assert "no TLS" in refused([*OFF, "--check-config"], GSID_DATABASE_URL=url)
    with running(url, tmp_path, "--host", "0.0.0.0", "--insecure") as server:  # noqa: S104
        assert gsid(*OFF, "--insecure", "--check-config", GSID_DATABASE_URL=url).returncode == 0
        assert server.client.get("/api/v1/networks").status_code == 401


def test_a_port_in_use_stops_the_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        url = f"sqlite:///{tmp_path / 'gsid.db'}"
        done = gsid("serve", "--port", str(port), GSID_DATABASE_URL=url)
    assert_refused(done, str(port))


def test_bad_certificates_stop_the_start(tmp_path: Path) -> None:
    pem = tmp_path / "bad.pem"
    pem.write_text("not a certificate")
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    tls = {"GSID_SERVER_TLS_CERTIFICATE": str(pem), "GSID_SERVER_TLS_KEY": str(pem)}
    assert_refused(gsid("serve", GSID_DATABASE_URL=url, **tls), "tls_certificate")


def test_settings_are_read_again(tmp_path: Path) -> None:
    file = tmp_path / "gsid.toml"
    file.write_text("[alerts]\nopen_score = 0.8")
    url = f"sqlite:///{tmp_path / 'gsid.db'}"
    with running(url, tmp_path, "--config", str(file)) as server:
        assert reloaded(server) == {"changed": [], "restart": []}
        file.write_text("[alerts]\nopen_score = 1.0\n[ingest]\nqueue = 5")
        assert reloaded(server) == {"changed": ["alerts"], "restart": ["ingest"]}
        server.client.post("/ingest", json=small("n"))
        answer = server.client.post("/ingest", json=small("n", sequence=2, local_pref=0))
        query = {"snapshot": answer.json()["snapshot_id"], "wait": 30}
        server.client.get("/api/v1/networks/n/scores", params=query).raise_for_status()
        assert server.client.get("/api/v1/alerts").json()["items"] == []

        # What was seen before is judged anew, without another snapshot.
        file.write_text("[alerts]\nopen_score = 0.8")
        assert reloaded(server) == {"changed": ["alerts"], "restart": []}
        until(lambda: bool(server.client.get("/api/v1/alerts").json()["items"]))

        file.write_text("[alerts]\nopen_score = 2")
        answer = server.client.post("/-/reload")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert "alerts.open_score" in answer.json()["detail"]
        server.signal(signal.SIGHUP)
        until_logged(server, "alerts.open_score")

        file.write_text("[alerts]\nopen_score = 0.7")
        server.signal(signal.SIGHUP)
        until_logged(server, "changed=['alerts']")
        assert server.client.get("/-/ready").status_code == 200


def reloaded(server: Server) -> object:
    return server.client.post("/-/reload").raise_for_status().json()


def until_logged(server: Server, text: str) -> None:
    for _ in range(100):
        if text in server.logged:
            return
        time.sleep(0.05)
    raise AssertionError(f"the log never said {text}")
