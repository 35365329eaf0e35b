"""A database of each kind with empty tables; they are made once, as that is what takes long."""

from collections.abc import Iterator

import pytest

from gsid_service.store.database import Database, connect
from gsid_service.store.tables import metadata
from tests import postgres


@pytest.fixture(scope="package", params=["sqlite", "postgresql"])
def _tables(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('store') / 'gsid.db'}"
    else:
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
    opened = connect(url, migrate=True)
    yield opened
    opened.close()


@pytest.fixture
def database(_tables: Database) -> Iterator[Database]:
    yield _tables
    with _tables.write() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
