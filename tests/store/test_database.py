"""Both databases: tables come up to date, and what cannot be used is refused with one line."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from gsid_service.store import networks, snapshots
from gsid_service.store.database import BadDatabase, Database, connect
from gsid_service.store.tables import metadata
from tests.store.making import NOW


def test_migrations_make_the_tables(database_url: str) -> None:
    database = connect(database_url, migrate=True)
    assert set(metadata.tables) <= set(inspect(database.engine).get_table_names())
    database.close()
    connect(database_url, migrate=False).close()


def test_an_empty_database_is_not_used_unasked(database_url: str) -> None:
    with pytest.raises(BadDatabase, match="run gsid migrate"):
        connect(database_url, migrate=False)


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
    for migrate in (True, False):
        with pytest.raises(BadDatabase, match=r"at version f00d, .* it is of a newer release"):
            connect(database_url, migrate)
    database.close()


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
