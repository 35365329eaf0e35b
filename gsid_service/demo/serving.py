"""The real service in a process of its own, for as long as the demo lasts.

It ends with the demo, however that ends; what it logs goes to a file, whose end is shown where it
does not start.
"""

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from gsid_service import config
from gsid_service.config import BadSettings, Settings
from gsid_service.demo.remote import Unwilling

HOST, PORT = "127.0.0.1", 8080
READY_WITHIN_SECONDS, ENDING_SECONDS = 120.0, 20.0
LOG_SHOWN = 2_000
MODEL_SETTINGS = "GSID_MODEL_"


@contextmanager
def serving(port: int | None, database: str | None) -> Iterator[str]:
    """The address of a service that is ready; its database goes with it, unless one is given."""
    with TemporaryDirectory(prefix="gsid-demo-") as folder:
        log = Path(folder, "gsid.log")
        with _listen(port) as listening:
            number = listening.getsockname()[1]
            settings = _settings(number, database or f"sqlite:///{folder}/gsid.db")
            process = _start(settings, listening, log)
        try:
            _until_ready(process, settings.notify.external_url, log)
            yield settings.notify.external_url
        finally:
            _end(process)


def _settings(port: int, database: str) -> Settings:
    """The defaults; of the variables those of the model alone: a demo is nobody's real service."""
    own = {name: text for name, text in os.environ.items() if name.startswith(MODEL_SETTINGS)}
    flags = {
        "server.host": HOST,
        "server.port": port,
        "database.url": database,
        "notify.external_url": f"http://{HOST}:{port}",
    }
    return config.load(None, own, flags)


def _listen(port: int | None) -> socket.socket:
    """The port that is asked for, or the usual one, or any that is free. Taken here already: what
    answers on it is our own service and no other."""
    reason = ""
    for number in [PORT, 0] if port is None else [port]:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, number))
            listening.listen()
        except OSError as error:
            listening.close()
            reason = f"cannot listen on {HOST} port {number}: {error.strerror}"
        else:
            return listening
    raise Unwilling(reason)


def _start(settings: Settings, listening: socket.socket, log: Path) -> BaseProcess:
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_serve, args=(settings, listening, log))
    # A terminal's Ctrl-C goes to both: the other process is born deaf to it, and told to end.
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, heard)
    return process


def _serve(settings: Settings, listening: socket.socket, log: Path) -> None:
    """The life of the other process; told to end, it cleans up as at any end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with log.open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Here alone, for the demo itself need not wait until all of it is loaded.
    from gsid_service.serve import Refused, serve
    from gsid_service.store.database import BadDatabase

    try:
        serve(settings, lambda: settings, version("gsid-service"), listening)
    except (BadSettings, BadDatabase, Refused) as error:
        sys.exit(str(error))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _until_ready(process: BaseProcess, url: str, log: Path) -> None:
    until = time.monotonic() + READY_WITHIN_SECONDS
    while time.monotonic() < until and process.is_alive():
        try:
            if httpx.get(f"{url}/-/ready").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    said = log.read_text(errors="replace")[-LOG_SHOWN:] if log.exists() else ""
    raise Unwilling(f"the service did not start\n{said}".rstrip())


def _end(process: BaseProcess) -> None:
    process.terminate()
    process.join(ENDING_SECONDS)
    process.kill()
    process.join()
