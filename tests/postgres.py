"""A real PostgreSQL server for tests: started once a session, an empty database a test.

Without its programs tests are skipped, and with CI=true they fail.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from gsid_service.bench import postgres
from gsid_service.bench.postgres import Cluster, create_database, free_port, programs

__all__ = ["Cluster", "cluster", "free_port", "missing", "new_database", "programs", "server"]
_numbers = count()


def missing(what: str) -> None:
    """Skip a test for want of a component; where everything must be there, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not installed, and CI=true")
    pytest.skip(f"{what} is not installed")


def new_database(server: str) -> str:
    """The URL of an empty database on the server, with a name that no other test has."""
    return create_database(server, f"test{next(_numbers)}")


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A running server, which may be stopped and started again."""
    if programs() is None:
        missing("PostgreSQL")
    with postgres.cluster() as made:
        yield made


@contextmanager
def server() -> Iterator[str]:
    """A running server; its URL without the name of a database."""
    with cluster() as made:
        yield made.url
