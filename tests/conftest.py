"""Fixtures that tests of several rooms share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import postgres

# How long an example takes says more of the machine than of the code.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gsid.db'}"
    return postgres.new_database(request.getfixturevalue("postgres_server"))
