"""A real server to be measured, in a process of its own: started, asked, and its memory."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from gsid_service.bench.postgres import free_port
from gsid_service.config import Model

MODEL = Model().place
JSON = {"Content-Type": "application/json"}
READY_WITHIN = 300.0  # seconds, where other work has the machine


@contextmanager
def running(
    folder: Path, url: str | None = None, **settings: str
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A server that is ready, on a free port, with its database in a folder or elsewhere."""
    port = free_port()
    environment = {
        **os.environ,
        "GSID_DATABASE_URL": url or f"sqlite:///{folder / 'bench.db'}",
        "GSID_MODEL_FOLDER": str(MODEL.absolute()),
        "GSID_LOG_LEVEL": "warning",
        **settings,
    }
    command = [sys.executable, "-m", "gsid_service", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environment)  # noqa: S603 (our own program)
    try:
        wait_until(lambda: _is_ready(port), READY_WITHIN, "the server is not ready")
        yield port, process
    finally:
        process.terminate()
        process.wait(30)


def _is_ready(port: int) -> bool:
    try:
        return ask(HTTPConnection("127.0.0.1", port, timeout=5), "GET", "/-/ready")[0] == 200
    except OSError:
        return False


def wait_until(
    is_true: Callable[[], bool], seconds: float, problem: str, every: float = 0.005
) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError(problem)
        time.sleep(every)


def ask(
    connection: HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    token: str | None = None,
) -> tuple[int, Any]:
    """The status of an answer, and the document in it."""
    headers = (JSON if body else {}) | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    return answer.status, json.loads(content) if content.startswith((b"{", b"[")) else None


def memory(pid: int) -> int:
    """Bytes of a process and of those that it started: what is their own, shared parts of it
    counted once, and the files that the largest has mapped, which others may have as well."""
    every = list(_smaps(pid))
    own = sum(fields["Pss_Anon"] for fields in every)
    return own + max((fields["Rss"] - fields["Anonymous"] for fields in every), default=0)


def _smaps(pid: int) -> Iterator[dict[str, int]]:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended meanwhile
    yield {name.rstrip(":"): int(kilobytes) << 10 for name, kilobytes, _ in map(str.split, lines)}
    for child in children:
        yield from _smaps(child)


def processor_seconds(pid: int) -> float:
    """What a process and those that it started, and that are there, have computed so far."""
    try:
        # The name in parentheses may hold spaces; user and system time are the 12th and 13th after.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(processor_seconds, children))
