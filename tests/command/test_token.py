"""`gsid token create`: a new secret is printed once, one from a file is taken as often as asked."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gsid_service.__main__ import app
from gsid_service.store import tokens
from gsid_service.store.database import connect

SECRET = "s" * tokens.SHORTEST


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'gsid.db'}"


def create(url: str, name: str, *more: str) -> Result:
    arguments = ["token", "create", name, "--role", "read", *more]
    return CliRunner().invoke(app, arguments, env={"GSID_DATABASE_URL": url})


def who(url: str, secret: str) -> str | None:
    database = connect(url, migrate=False)
    with database.read() as connection:
        found = tokens.find(connection, secret)
    database.close()
    return found.name if found else None


def test_a_new_secret_is_printed_once(url: str) -> None:
    done = create(url, "grafana")
    assert who(url, done.stdout.strip()) == "grafana"
    again = create(url, "grafana")
    assert again.exit_code == 2
    assert "revoke it first" in again.stderr


def test_a_secret_of_a_file_may_be_given_again_and_changed(url: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    for _ in range(2):
        done = create(url, "prometheus", "--secret-file", str(file))
        assert (done.exit_code, done.stdout) == (0, "")
    assert who(url, SECRET) == "prometheus"
    file.write_text("t" * tokens.SHORTEST)
    assert create(url, "prometheus", "--secret-file", str(file)).exit_code == 0
    assert who(url, SECRET) is None
    assert who(url, "t" * tokens.SHORTEST) == "prometheus"


@pytest.mark.parametrize("content", ["", "short\n"])
def test_a_secret_that_could_be_guessed_is_refused(url: str, content: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(content)
    done = create(url, "prometheus", "--secret-file", str(tmp_path / "secret"))
    assert done.exit_code == 2
    assert "less than 32 characters" in done.stderr


@pytest.mark.parametrize("content", ["ü" * 40, "s" * 40 + "\n" + "t" * 40, "s " * 40])
def test_a_secret_that_no_header_can_hold_is_refused(
    url: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(content.encode("latin-1"))
    done = create(url, "prometheus", "--secret-file", str(tmp_path / "secret"))
    assert done.exit_code == 2
    assert "--secret-file" in done.stderr


@pytest.mark.parametrize("name", ["no such/net", "..", ""])
def test_a_network_that_cannot_be_is_refused(url: str, name: str) -> None:
    done = create(url, "prometheus", "--network", name)
    assert (done.exit_code, "--network" in done.stderr) == (2, True)


def test_two_tokens_do_not_share_a_secret(url: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    assert create(url, "one", "--secret-file", str(tmp_path / "secret")).exit_code == 0
    done = create(url, "two", "--secret-file", str(tmp_path / "secret"))
    assert done.exit_code == 2
    assert "another token's" in done.stderr
    assert who(url, SECRET) == "one"


def test_who_revokes_the_last_token_is_told_what_that_means(url: str) -> None:
    for name in ("one", "two"):
        create(url, name)
    for name, last in (("one", False), ("two", True)):
        done = CliRunner().invoke(app, ["token", "revoke", name], env={"GSID_DATABASE_URL": url})
        assert (done.exit_code, "no token is left" in done.stderr) == (0, last), done.output


@pytest.mark.parametrize("command", [["list"], ["revoke", "one"]])
def test_where_there_is_no_database_none_is_made(
    url: str, command: list[str], tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, ["token", *command], env={"GSID_DATABASE_URL": url})
    assert done.exit_code == 2
    assert done.stderr.startswith("database.url: no service has used this database")
    assert list(tmp_path.iterdir()) == []
