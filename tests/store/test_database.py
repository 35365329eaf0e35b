"""Both databases: tables come up to date, and what cannot be used is refused with one line."""

from pathlib import Path

import pytest
from sqlalchemy import inspect

from gsid_service.store.database import BadDatabase, connect
from gsid_service.store.tables import metadata


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
