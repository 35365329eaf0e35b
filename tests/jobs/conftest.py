"""An empty database on a real PostgreSQL, with the tables of the store and of the queue."""

from collections.abc import Iterator

import pytest

from gsid_service.store.database import Database, connect
from tests import postgres


@pytest.fixture
def database(postgres_server: str) -> Iterator[Database]:
    opened = connect(postgres.new_database(postgres_server), migrate=True)
    yield opened
    opened.close()
