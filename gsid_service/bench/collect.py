"""`gsid bench collect`: a collector process, from its start to the first snapshot acknowledged."""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from gsid_service.bench.figure import Figure
from gsid_service.evaluate.documents import write_folder
from gsid_service.evaluate.splits import SPLITS
from gsid_service.schema import ROUTERS

STARTS = 5
ALLOWED_SECONDS, ALLOWED_BYTES = 1.0, 80e6
WITHIN = 60.0


def measure() -> Iterator[Figure]:
    """The start-up, and the memory once every router of a network has been told."""
    with tempfile.TemporaryDirectory() as folder, _service() as service:
        settings, routers = _site(Path(folder), service.server_port)
        started = []
        for _ in range(STARTS):
            begun = time.perf_counter()
            with _collector(settings, service):
                service.wait_for(1)
                started.append(time.perf_counter() - begun)
        seconds = median(started)
        against = f"{ALLOWED_SECONDS:g} s allowed"
        yield Figure("start to first snapshot", seconds, "s", against, ALLOWED_SECONDS / seconds)
        with _collector(settings, service) as process:
            service.wait_for(routers)
            used = _memory(process.pid)
        against = f"{ALLOWED_BYTES / 1e6:.0f} MB allowed"
        name = f"memory with {routers} routers"
        yield Figure(name, used / 1e6, "MB", against, ALLOWED_BYTES / used)


class _Service(ThreadingHTTPServer):
    """Takes every snapshot, and counts them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken = 0
        self.news = threading.Condition()

    def wait_for(self, count: int) -> None:
        with self.news:
            if not self.news.wait_for(lambda: self.taken >= count, WITHIN):
                raise TimeoutError(f"{self.taken} of {count} snapshots within {WITHIN:g} seconds")


class _Handler(BaseHTTPRequestHandler):
    server: _Service

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        with self.server.news:
            self.server.taken += 1
            self.server.news.notify_all()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def _service() -> Iterator[_Service]:
    service = _Service()
    threading.Thread(target=service.serve_forever, daemon=True).start()
    yield service
    service.shutdown()
    service.server_close()


def _site(folder: Path, port: int) -> tuple[Path, int]:
    """Settings for all routers of a simulated network of 23, and how many they are."""
    kinds = {kind.name for kind in ROUTERS}
    cases = (SPLITS["standard"].case("collect", index) for index in range(100))
    case = next(c for c in cases if sum(e.kind in kinds for e in c.entities) == 23)
    write_folder(case, folder / "case", "bench")
    routers = [entity.id for entity in case.entities if entity.kind in kinds]
    path = json.dumps(str(folder / "case" / "snapshot.json"))
    tables = [
        f'[[routers]]\nname = "{name}"\nsource = "simulated"\npath = {path}\n' for name in routers
    ]
    settings = folder / "collect.toml"
    settings.write_text(
        f'network = "bench"\n[service]\nurl = "http://127.0.0.1:{port}"\n[collector]\n'
        f"state = {json.dumps(str(folder / 'state'))}\nmetrics_port = 0\njitter = 0\n"
        + "".join(tables)
    )
    return settings, len(routers)


@contextmanager
def _collector(settings: Path, service: _Service) -> Iterator["subprocess.Popen[bytes]"]:
    service.taken = 0
    command = [sys.executable, "-m", "gsid_service", "collect", "--config", str(settings)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603 (our own)
        try:
            yield process
        finally:
            process.terminate()


def _memory(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return 1024 * int(found[1]) if found else 0
