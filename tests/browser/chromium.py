"""Debian's real Chromium for tests, and a watch that notes whatever a page must never do.

Without Chromium tests are skipped, and with CI=true they fail.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Request,
    WebError,
    expect,
    sync_playwright,
)

from tests.postgres import missing

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE_MS = 20_000  # tests share the machine with others
WRONG = {"error", "warning"}


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        missing("chromium")
        raise AssertionError
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Watch:
    """Notes errors in the console, errors of scripts, and requests to any other host."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.host = urlsplit(url).netloc
        self.troubles: list[str] = []
        self.expected: list[str] = []
        context.on("console", self._on_message)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def _on_message(self, message: ConsoleMessage) -> None:
        if message.type in WRONG:
            self.troubles.append(f"console {message.type}: {message.text}")

    def _on_error(self, error: WebError) -> None:
        self.troubles.append(f"script: {error.error}")

    def _on_request(self, request: Request) -> None:
        if urlsplit(request.url).netloc not in {self.host, ""}:  # data: has no host
            self.troubles.append(f"request to {request.url}")

    def expect(self, pattern: str) -> None:
        """A test brings this about; it must happen, and may."""
        self.expected.append(pattern)

    def check(self) -> None:
        surprises = [t for t in self.troubles if not any(re.search(p, t) for p in self.expected)]
        assert not surprises, surprises
        for pattern in self.expected:
            assert any(re.search(pattern, trouble) for trouble in self.troubles), pattern
