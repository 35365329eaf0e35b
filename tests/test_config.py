"""Settings: file, then variables, then flags; what is wrong is named with its key and source."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gsid_service.config import RELOADABLE, BadSettings, Receiver, Server, Settings, ignored, load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gsid.toml"


def written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def refusal(
    file: Path | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, Any] | None = None,
) -> str:
    with pytest.raises(BadSettings) as refused:
        load(file, environment or {}, flags)
    return str(refused.value)


def test_nothing_given_is_the_defaults() -> None:
    assert load(None, {}) == Settings()


def test_the_model_is_found_beside_the_package_wherever_the_service_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (load(None, {}).model.place / "config.json").is_file()
    own = tmp_path / "models" / "gsid-1"
    own.mkdir(parents=True)
    assert load(None, {}).model.place.samefile(own)


def test_a_model_that_is_nowhere_is_named_as_it_was_given() -> None:
    assert load(None, {"GSID_MODEL_FOLDER": "models/none"}).model.place == Path("models/none")


def test_variables_override_the_file_and_flags_override_both(file: Path) -> None:
    written(
        file, "[server]\nhost = '127.0.0.2'\nport = 1\nbody_bytes = 10\n[log]\nlevel = 'debug'\n"
    )
    environment = {"GSID_SERVER_PORT": "2", "GSID_SERVER_BODY_BYTES": "20"}
    found = load(file, environment, {"server.port": 3, "server.host": None})
    assert (found.server.host, found.server.port, found.server.body_bytes) == ("127.0.0.2", 3, 20)
    assert found.log.level == "debug"
    assert found.alerts == Settings().alerts


def test_a_variable_names_a_section_and_a_key_with_an_underscore(tmp_path: Path) -> None:
    environment = {
        "GSID_SERVER_TLS_CERTIFICATE": str(tmp_path / "c"),
        "GSID_SERVER_TLS_KEY": str(tmp_path / "k"),
        "GSID_SERVER_INSECURE": "true",
        "GSID_CYCLE_STALE_SECONDS": "1.5",
    }
    found = load(None, environment)
    assert found.server.tls_key == tmp_path / "k"
    assert found.server.insecure is True
    assert found.cycle.stale_seconds == 1.5


def test_variables_of_other_programs_are_left_alone() -> None:
    others = {
        "GSID_URL": "http://x",
        "GSID_TOKEN": "gsid_secret",
        "GSID_CACHE": "/tmp/x",  # noqa: S108
        "GSID_": "",
        "GSID_SERVER": "x",
        "SERVER_PORT": "x",
        "gsid_server_port": "x",
    }
    assert load(None, others) == Settings()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[server]\nport = 70000", ["server.port", "70000"]),
        ("[server]\nport = 'http'", ["server.port", "'http'"]),
        ("[server]\nprot = 1", ["server.prot", "no such setting", "tls_key"]),
        ("[sever]\nport = 1", ["sever", "no such setting", "server, database"]),
        ("[sever]\n", ["sever", "no such setting"]),
        ("port = 1", ["port", "not a section"]),
        ("[[server]]\nport = 1", ["server", "not a section"]),
        ("[database]\nurl = 'mysql://x'", ["database.url: must begin with sqlite:///"]),
        ("[cycle]\nstale_seconds = 0", ["cycle.stale_seconds", "0"]),
        ("[cycle]\nstale_seconds = inf", ["cycle.stale_seconds", "inf"]),
        ("[cycle]\nsweep_seconds = 1e300", ["cycle.sweep_seconds", "1e+300"]),
        ("[alerts]\nflap_seconds = inf", ["alerts.flap_seconds", "inf"]),
        ("[alerts]\nopen_score = nan", ["alerts.open_score", "nan"]),
        ("[alerts]\nopen_score = 1.1", ["alerts.open_score", "1.1"]),
        ("[alerts]\nopen_score = 0.3", ["alerts", "close_score 0.35", "open_score 0.3"]),
        ("[log]\nformat = 'xml'", ["log.format", "'xml'", "json"]),
        ("[ingest]\nqueue = 0", ["ingest.queue", "0"]),
        ("[server]\ntls_key = 'k'", ["server", "tls_certificate and tls_key come together"]),
        ("[server", ["not TOML"]),
        ("[server]\nport = 1\nport = 2", ["not TOML"]),
    ],
)
def test_an_error_names_the_file_the_key_and_the_value(
    file: Path, text: str, parts: list[str]
) -> None:
    message = refusal(written(file, text))
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    assert [part for part in parts if part not in message] == []


def test_an_error_names_the_variable_or_the_flag_that_it_came_from(file: Path) -> None:
    written(file, "[server]\nport = 1\n")
    from_variable = refusal(file, {"GSID_SERVER_PORT": "x"})
    assert from_variable.startswith("GSID_SERVER_PORT: server.port: ")
    assert "'x'" in from_variable
    from_flag = refusal(file, {"GSID_SERVER_PORT": "2"}, {"server.port": -1})
    assert from_flag.startswith("--port: server.port: ")
    assert "-1" in from_flag
    assert "no such setting" in refusal(None, {"GSID_SERVER_PROT": "1"})


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("[server]\nport = 1", {"GSID_SERVER_TLS_KEY": "k"}),
        ("[alerts]\nflap_changes = 9", {"GSID_ALERTS_OPEN_SCORE": "0.3"}),
    ],
)
def test_what_does_not_go_together_is_blamed_on_what_took_part(
    file: Path, text: str, environment: dict[str, str]
) -> None:
    assert next(iter(environment)) in refusal(written(file, text), environment)


def test_a_variable_that_is_no_setting_is_told_with_the_nearest(file: Path) -> None:
    written(file, "[[receivers]]\nname = 'noc'\ntype = 'stdout'\nsecret_env = 'GSID_SECRET'\n")
    environment = {
        "GSID_DATABSE_URL": "postgresql+psycopg://db/gsid",
        "GSID_DATABASE_URL": "sqlite:///gsid.db",
        "GSID_TOKEN": "t",
        "GSID_SECRET": "s",
        "HOME": "/",
    }
    (line,) = ignored(environment, load(file, environment))
    assert line.startswith("GSID_DATABSE_URL: ")
    assert line.endswith("the nearest is GSID_DATABASE_URL")
    assert "psycopg" not in line


def test_every_problem_has_its_line(file: Path) -> None:
    written(file, "[server]\nport = -1\n[log]\nlevel = 'loud'\n")
    lines = refusal(file, {"GSID_MODEL_THREADS": "0"}).splitlines()
    assert len(lines) == 3
    assert [line for line in lines if line.startswith("GSID_MODEL_THREADS: model.threads")]


def test_an_error_does_not_tell_a_password() -> None:
    """It goes to the log, and to whoever asks for a reload."""
    message = refusal(None, {"GSID_DATABASE_URL": "postgres://gsid:hidden@db/gsid"})
    assert "database.url" in message
    assert "hidden" not in message


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    assert "cannot be read" in refusal(tmp_path / name)


def test_a_file_that_is_not_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe[server]")
    assert f"{file}: cannot be read" in refusal(file)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().server.port = 1


def test_what_can_be_reloaded_exists() -> None:
    assert set(RELOADABLE) < set(Settings.model_fields)
    assert not {"server", "database"} & set(RELOADABLE)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_loopback_is_told_from_the_world(host: str, loopback: bool) -> None:
    assert Server(host=host).on_loopback is loopback


def test_every_setting_says_what_it_is() -> None:
    sections = {name: about.annotation for name, about in Settings.model_fields.items()}
    for name, section in (sections | {"receivers": Receiver}).items():
        assert isinstance(section, type)
        for key, field in section.model_fields.items():
            assert field.description, f"{name}.{key}"


RECEIVER = "[[receivers]]\nname = 'noc'\ntype = 'stdout'\n"


def test_receivers_are_a_list_of_tables(file: Path) -> None:
    found = load(
        written(file, f"{RECEIVER}min_severity = 'minor'\n{RECEIVER.replace('noc', 'b')}"), {}
    )
    assert [(r.name, r.min_severity) for r in found.receivers] == [("noc", "minor"), ("b", "major")]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"{RECEIVER}{RECEIVER}", "receivers: the name 'noc' is there twice"),
        (f"{RECEIVER}hots = 1", "receivers[0].hots: no such setting; known: name, type, url"),
        (f"{RECEIVER}{RECEIVER.replace('noc', 'a b')}", "receivers[1].name"),
        (f"{RECEIVER}secret_env = 'a'\nsecret_file = 'b'", "either secret_env or secret_file"),
        (f"{RECEIVER}group_wait_seconds = -1", "receivers[0].group_wait_seconds"),
        ("receivers = 3", "receivers"),
        ("[receivers]\nname = 'noc'", "receivers: each is a table of its own, [[receivers]]"),
    ],
)
def test_a_bad_receiver_is_named(file: Path, text: str, named: str) -> None:
    line = refusal(written(file, text))
    assert named in line
    assert str(file) in line


def test_a_receiver_s_url_is_not_repeated(file: Path) -> None:
    assert "token" not in refusal(written(file, f"{RECEIVER}url = ['https://h/?token']"))


def test_receivers_come_from_the_file_only() -> None:
    assert "[[receivers]]" in refusal(None, {"GSID_RECEIVERS_NAME": "noc"})


def test_hosts_are_a_list_or_have_commas(file: Path) -> None:
    assert load(written(file, "[notify]\nhosts = ['a', 'b']"), {}).notify.hosts == ("a", "b")
    assert load(None, {"GSID_NOTIFY_HOSTS": "a,b"}).notify.hosts == ("a", "b")
