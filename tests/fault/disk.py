"""Disks for tests: a small one that a process sees alone, and one that takes no writes."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.flow.server import Server
from tests.postgres import missing

CAP_SYS_ADMIN = 21


def need_mounts() -> None:
    """Skip where a process may not have mounts of its own; fail with CI=true where it should."""
    if shutil.which("unshare") is None:
        missing("unshare")
    tried = subprocess.run([*_apart("mount -t tmpfs none /mnt"), "true"], capture_output=True)
    if tried.returncode != 0:
        reason = f"mounting is refused: {tried.stderr.decode().strip()}"
        if os.environ.get("CI") == "true" and _may_mount():
            pytest.fail(f"{reason}, and CI=true")
        pytest.skip(reason)


def _may_mount() -> bool:
    status = Path("/proc/self/status").read_text()
    rights = next(line for line in status.splitlines() if line.startswith("CapEff"))
    return bool(int(rights.split()[1], 16) >> CAP_SYS_ADMIN & 1)


def _apart(mounts: str) -> tuple[str, ...]:
    """How to run a command that sees mounts which nobody else sees, and which end with it."""
    own = ("--mount",) if os.getuid() == 0 else ("--mount", "--map-root-user")
    return ("unshare", *own, "sh", "-c", f'{mounts} && exec "$@"', "sh")


def on_small_disk(folder: Path, size: str) -> tuple[str, ...]:
    """How to run a command that has a disk of its own, and of that size, in place of a folder."""
    return _apart(f"mount -t tmpfs -o size={size} none '{folder}'")


def on_read_only_disk(folder: Path) -> tuple[str, ...]:
    """How to run a command that cannot write to a folder."""
    bind = f"mount --bind '{folder}' '{folder}'"
    return _apart(f"{bind} && mount -o remount,bind,ro '{folder}'")


def seen_by(server: Server, folder: Path) -> Path:
    """A folder as the server's process sees it."""
    if server.process is None:
        raise AssertionError("it is not started")
    return Path(f"/proc/{server.process.pid}/root{folder}")


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Nothing more fits on the disk of a folder."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def unwritable(server: Server) -> Iterator[None]:
    """The process can write to no file, neither its database nor its log, as on a disk that the
    system made read-only after an error."""
    if server.process is None:
        raise AssertionError("it is not started")
    limit = resource.RLIMIT_FSIZE
    before = resource.prlimit(server.process.pid, limit)
    resource.prlimit(server.process.pid, limit, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, limit, before)
