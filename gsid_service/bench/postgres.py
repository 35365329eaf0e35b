"""A real PostgreSQL of one's own, in a folder and on a free port of loopback.

It refuses to run as root, so root starts it as the user `postgres` or `nobody`.
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


class Missing(RuntimeError):
    """Its programs are not installed."""


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest version's where there are several."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    own = shutil.which("initdb")
    if found:
        return max(found, key=lambda path: int(path.parts[-3])).parent
    return Path(own).parent if own else None


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _user() -> str | None:
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Cluster:
    """A PostgreSQL in a folder, as often as it is started."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder, self.port = programs, folder, free_port()
        self.url = f"postgresql+psycopg://gsid@127.0.0.1:{self.port}"  # without a database's name
        self.data, self._user = folder / "data", _user()
        if self._user:
            shutil.chown(folder, self._user)
        os.environ.setdefault("LC_ALL", "C")
        self._run("initdb", "-D", self.data, "-A", "trust", "-U", "gsid", "-N", "-E", "UTF8")

    def start(self) -> None:
        settings = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -c fsync=on"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-w", "-l", log, "-o", settings, "start")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is as a crash, `fast` as an operator does it."""
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(  # noqa: S603 (PostgreSQL's own)
            [self.programs / program, *arguments],
            user=self._user,
            check=True,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A running server, which may be stopped and started again."""
    found = programs()
    if found is None:
        raise Missing("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(prefix="gsid-pg-") as folder:
        made = Cluster(found, Path(folder))
        made.start()
        try:
            yield made
        finally:
            made.stop()


def create_database(url: str, name: str) -> str:
    """An empty database on the server; its URL."""
    plain = url.replace("+psycopg", "") + "/postgres"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{url}/{name}"
