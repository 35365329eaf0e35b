"""The browser, a server with receivers that the modules share, and pages that are watched."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.chromium import Watch
from tests.browser.chromium import chromium as launched
from tests.browser.networks import RIGHT, WRONG, Small
from tests.browser.server import telling
from tests.flow.server import Server
from tests.notify.listener import Listener, listening

Visit = Callable[..., Page]
_numbers = count(1)


# Of the package, not the session: while it is open, no other test of the process can run an event
# loop of its own.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def listener(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    with listening(tmp_path_factory.mktemp("listener")) as found:
        yield found


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory, listener: Listener) -> Iterator[Server]:
    with telling(tmp_path_factory.mktemp("console"), listener) as started:
        yield started


@pytest.fixture
def watches() -> list[Watch]:
    """The watch on each browser that the test opened."""
    return []


@pytest.fixture
def visit(chromium: Browser, watches: list[Watch]) -> Iterator[Visit]:
    """A page of a fresh browser on a server; what went wrong in it fails the test at its end."""
    contexts = []

    def opened(server: Server, **options: Any) -> Page:
        context = chromium.new_context(base_url=server.url, **options)
        contexts.append(context)
        watches.append(Watch(context, server.url))
        return context.new_page()

    yield opened
    for context in contexts:
        context.close()
    for watch in watches:
        watch.check()


@pytest.fixture
def page(visit: Visit, server: Server) -> Page:
    return visit(server)


@pytest.fixture
def watch(page: Page, watches: list[Watch]) -> Watch:  # noqa: ARG001
    """The watch on the one page of the test."""
    return watches[0]


@pytest.fixture
def net(server: Server) -> Small:
    """A network of the test's own, as it should be."""
    found = Small(server, f"net{next(_numbers):03d}")  # no name is part of another
    found.see(RIGHT)
    return found


@pytest.fixture
def wrong(net: Small) -> Small:
    """A network of the test's own, with an alert."""
    net.see(WRONG)
    return net
