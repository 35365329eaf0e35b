"""What tests of faults share."""

import pytest

from tests import postgres


@pytest.fixture
def postgres_database(postgres_server: str) -> str:
    return postgres.new_database(postgres_server)
