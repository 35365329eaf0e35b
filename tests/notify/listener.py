"""A receiver in a process of its own: verifies signatures, and misbehaves as its path says.

Every request is a line of JSON in its log, written before the answer: what came, and what was
answered. `/ok` takes all; `/flaky` drops, delays, or answers 500 and 429 before it takes a message;
`/picky` refuses some messages for good; `/second` takes none at first; `/gone` answers 410 after
some, `/retired` always; `/slow` takes its time; `/refuse` takes nothing.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.postgres import free_port

SECRET = "whsec_" + "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY="
TROUBLE = 0.3
REFUSED_ONE_IN = 8
GONE_AFTER = 12
SLOW_SECONDS = 0.4
ANSWERS = {"/refuse": 404, "/retired": 410}


def is_refused(key: str) -> bool:
    """Whether `/picky` never takes a message."""
    return hashlib.sha256(key.encode()).digest()[0] % REFUSED_ONE_IN == 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    log: Path
    lock = threading.Lock()
    taken = 0
    refused: ClassVar[set[str]] = set()
    rng = random.Random()

    def do_GET(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("webhook-id", "")
        status = self._decide(key) if self._verified(body) else 401
        self._note(key, status, body)
        if status == 0:
            self.close_connection = True
            return
        self._answer(status)

    def _verified(self, body: bytes) -> bool:
        if "webhook-id" not in self.headers:
            return True  # another kind of receiver
        try:
            Webhook(SECRET).verify(body, dict(self.headers.items()))
        except WebhookVerificationError:
            return False
        return True

    def _decide(self, key: str) -> int:
        """The status to answer; 0 drops the connection."""
        if self.path == "/slow":
            time.sleep(SLOW_SECONDS)
        if self.path in ANSWERS:
            return ANSWERS[self.path]
        if self.path == "/picky" and is_refused(key):
            return 400
        if self.path == "/second" and key not in self.refused:
            self.refused.add(key)
            return 400
        if self.path == "/gone":
            with self.lock:
                Handler.taken += 1
                return 200 if Handler.taken <= GONE_AFTER else 410
        if self.path == "/flaky" and self.rng.random() < TROUBLE:
            time.sleep(self.rng.choice((0, 0, 0.05)))
            return self.rng.choice((0, 500, 503, 429))
        return 200

    def _note(self, key: str, status: int, body: bytes) -> None:
        line = {"path": self.path, "id": key, "status": status, "body": json.loads(body)}
        with self.lock, self.log.open("a") as log:
            log.write(json.dumps(line) + "\n")

    def _answer(self, status: int) -> None:
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        pass


class Listener:
    """The process, as often as it is started."""

    def __init__(self, folder: Path) -> None:
        self.port, self.log = free_port(), folder / "received.jsonl"
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.notify.listener", str(self.port), str(self.log)]
        root = Path(__file__).parents[2]
        self.process = subprocess.Popen(command, cwd=root, env={**os.environ, "PYTHONPATH": "."})
        for _ in range(400):
            try:
                httpx.get(self.url("/"))
                return
            except httpx.TransportError:
                time.sleep(0.025)
        raise AssertionError("the listener does not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(10)

    def received(self, path: str | None = None) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        text = self.log.read_text()
        lines = text[: text.rfind("\n") + 1].splitlines()
        found = [json.loads(line) for line in lines]
        return [line for line in found if path in {None, line["path"]}]

    def taken(self, path: str | None = None) -> list[dict[str, Any]]:
        """What it said that it took."""
        return [line for line in self.received(path) if line["status"] == 200]

    def wait(self, count: int, path: str | None = None, seconds: float = 15) -> list[Any]:
        """At least so many messages that it took."""
        deadline = time.monotonic() + seconds
        while len(found := self.taken(path)) < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(found)} of {count} messages on {path}")
            time.sleep(0.02)
        return found


@contextmanager
def listening(folder: Path) -> Iterator[Listener]:
    listener = Listener(folder)
    try:
        listener.start()
        yield listener
    finally:
        listener.kill()


def main() -> None:
    Handler.log = Path(sys.argv[2])
    if Handler.log.exists():  # as it was before it died
        Handler.taken = Handler.log.read_text().count('"path": "/gone"')
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()


if __name__ == "__main__":
    main()
