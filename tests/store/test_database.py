"""Both databases: tables come up to date, and what cannot be used is refused with one line."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from gsid_service.store import networks, snapshots
from gsid_service.store.database import BadDatabase, Database, connect, look, version
from gsid_service.store.tables import metadata
from tests.store.making import NOW

NEWER = r"at version f00d, .* it is of a newer release"


def test_migrations_make_the_tables(database_url: str) -> None:
    database = connect(database_url, migrate=True)
    assert set(metadata.tables) <= set(inspect(database.engine).get_table_names())
    database.close()
    connect(database_url, migrate=False).close()


def test_an_empty_database_is_not_used_unasked(database_url: str) -> None:
    with pytest.raises(BadDatabase, match="run gsid migrate"):
        connect(database_url, migrate=False)


def test_a_file_that_is_not_there_is_not_made_by_looking_at_it(tmp_path: Path) -> None:
    with pytest.raises(BadDatabase, match="no such file"):
        connect(f"sqlite:///{tmp_path / 'typo.db'}", migrate=False)
    assert not list(tmp_path.iterdir())


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadDatabase, match="unable to open database file"):
        connect(f"sqlite:///{tmp_path / 'no' / 'folder.db'}", migrate=True)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "gsid.db").write_text(
        "not a database at all, but long enough to be looked at\n" * 9
    )
    with pytest.raises(BadDatabase, match="file is not a database") as refused:
        connect(f"sqlite:///{tmp_path / 'gsid.db'}", migrate=True)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://gsid:hidden@127.0.0.1:1/gsid", "postgresql+psycopg://u@h:port/db"]
)
def test_a_server_that_cannot_be_reached_is_one_line_without_the_password(url: str) -> None:
    with pytest.raises(BadDatabase, match=r"database\.url") as refused:
        connect(url, migrate=True)
    assert "hidden" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_database_of_a_newer_release_is_refused_and_left_alone(database_url: str) -> None:
    database = connect(database_url, migrate=True)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'f00d'"))
        connection.execute(text("UPDATE compatible SET since = 'f00d'"))
    for migrate in (True, False):
        with pytest.raises(BadDatabase, match=NEWER):
            connect(database_url, migrate)
        with pytest.raises(BadDatabase, match=NEWER), look(database_url, migrate):
            pass
    database.close()


def test_a_newer_release_that_only_added_something_leaves_room_for_ours(database_url: str) -> None:
    database = connect(database_url, migrate=True)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'f00d'"))
    for migrate in (True, False):
        connect(database_url, migrate).close()
        with look(database_url, migrate) as seen:
            assert seen is not None
    with database.read() as connection:
        assert version(connection) == "f00d", "it is left as it is"
    database.close()


def test_a_look_makes_nothing(database_url: str, tmp_path: Path) -> None:
    with look(database_url, migrate=True) as connection:
        assert connection is None
    assert not list(tmp_path.iterdir())
    with (
        pytest.raises(BadDatabase, match="run gsid migrate"),
        look(database_url, migrate=False),
    ):
        pass
    with pytest.raises(BadDatabase, match="has no tables of ours"):
        connect(database_url, migrate=False)


def test_a_look_sees_what_is_there(database: Database) -> None:
    with database.write() as connection:
        snapshots.announce(connection, ["one"], NOW)
    url = database.engine.url.render_as_string(hide_password=False)
    for migrate in (True, False):
        with look(url, migrate) as seen:
            assert seen is not None
            assert networks.names(seen) == ["one"]


def test_a_look_leaves_the_file_of_another_program_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "others.db"
    with closing(sqlite3.connect(file)) as others:
        others.execute("CREATE TABLE theirs (number INTEGER)")
    before = file.read_bytes()
    with look(f"sqlite:///{file}", migrate=True) as connection:
        assert connection is None
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_read_is_one_consistent_look(database: Database) -> None:
    with database.write() as connection:
        snapshots.announce(connection, ["one"], NOW)
    with database.read() as reading:
        before = networks.names(reading)
        with database.write() as writing:
            snapshots.announce(writing, ["two"], NOW)
        assert networks.names(reading) == before == ["one"]
    with database.read() as reading:
        assert networks.names(reading) == ["one", "two"]


def test_writers_wait_for_each_other_and_lose_nothing(database: Database) -> None:
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)

    def write(_: int) -> None:
        with database.write() as connection:
            snapshots.touch(connection, ["net"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(24)))
    with database.read() as connection:
        found = networks.find(connection, "net")
    assert found is not None
    assert found.news == 24


def test_acknowledged_writes_to_sqlite_are_synced(tmp_path: Path) -> None:
    database = connect(f"sqlite:///{tmp_path / 'gsid.db'}", migrate=True)
    with database.read() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    database.close()
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_password_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    difficult = "p@ss:word/é"
    file.write_text(f"{difficult}\n")
    database = Database("postgresql+psycopg://gsid@127.0.0.1:1/gsid", file)
    assert database.engine.url.password == difficult
    assert "p@ss" not in database.shown
    database.close()
    with pytest.raises(BadDatabase, match=r"database\.password_file: cannot be read"):
        connect("postgresql+psycopg://gsid@127.0.0.1:1/gsid", True, tmp_path / "missing")
