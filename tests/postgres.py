"""A real PostgreSQL server for tests: started once a session, an empty database a test.

Without its programs tests are skipped, and with CI=true they fail. It refuses to run as root, so
root starts it as the user `postgres` or `nobody`.
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
import pytest


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest version's where there are several."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    own = shutil.which("initdb")
    if found:
        return max(found, key=lambda path: int(path.parts[-3])).parent
    return Path(own).parent if own else None


def missing(what: str) -> None:
    """Skip a test for want of a component; where everything must be there, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is not installed, and CI=true")
    pytest.skip(f"{what} is not installed")


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


@contextmanager
def server() -> Iterator[str]:
    """A running server; its URL without the name of a database."""
    found = programs()
    if found is None:
        missing("PostgreSQL")
        raise AssertionError
    with tempfile.TemporaryDirectory(prefix="gsid-pg-") as folder:
        data, user, port = Path(folder) / "data", _user(), free_port()
        if user:
            shutil.chown(folder, user)
        os.environ.setdefault("LC_ALL", "C")
        run = {"user": user, "check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
        settings = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=on"
        subprocess.run(
            [found / "initdb", "-D", data, "-A", "trust", "-U", "gsid", "-N", "-E", "UTF8"], **run
        )  # type: ignore[call-overload]
        log = Path(folder) / "log"
        start = [found / "pg_ctl", "-D", data, "-w", "-l", log, "-o", settings, "start"]
        subprocess.run(start, **run)  # type: ignore[call-overload]
        try:
            yield f"postgresql+psycopg://gsid@127.0.0.1:{port}"
        finally:
            subprocess.run([found / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)  # type: ignore[call-overload]


def create_database(url: str, name: str) -> str:
    """An empty database on the server; its URL."""
    plain = url.replace("+psycopg", "") + "/postgres"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{url}/{name}"
