"""The station that the tests of deploy/ share: started once."""

from collections.abc import Iterator

import pytest

from tests.deploy.stack import Stack, stack


@pytest.fixture(scope="package")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("station")) as started:
        yield started
