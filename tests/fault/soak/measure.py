"""What a server takes: memory, processor, its database's rows and bytes, its rounds."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from gsid_service.bench.server import memory
from tests.flow.server import Server

TICKS = os.sysconf("SC_CLK_TCK")
STAGE = re.compile(r'^gsid_cycle_seconds_(sum|count)\{stage="(\w+)"\} (\S+)$', re.MULTILINE)
FAILED = re.compile(r"^gsid_cycle_failures_total\{.*\} (\S+)$", re.MULTILINE)


def sample(server: Server, database: Path) -> dict[str, float | dict[str, int]]:
    if server.process is None:
        raise AssertionError("the server is not there")
    pid = server.process.pid
    files = [Path(f"{database}{suffix}") for suffix in ("", "-wal")]
    rounds, seconds, failed = _rounds(server)
    return {
        "memory": memory(pid),
        "processor": sum(_processor(pid)),
        "threads": len(list(Path(f"/proc/{pid}/task").iterdir())),
        "descriptors": len(list(Path(f"/proc/{pid}/fd").iterdir())),
        "database": sum(file.stat().st_size for file in files if file.exists()),
        "in_use": _in_use(database),
        "rows": _rows(database),
        "rounds": rounds,
        "round_seconds": seconds,
        "failed_rounds": failed,
    }


def _rounds(server: Server) -> tuple[float, float, float]:
    """How many rounds there were, how long they took together, and how many failed."""
    text = server.client.get("/metrics").raise_for_status().text
    found = {(what, stage): float(value) for what, stage, value in STAGE.findall(text)}
    parts = (stage for what, stage in found if what == "sum" and stage != "diagnose")
    seconds = sum(found["sum", stage] for stage in parts)
    return found["count", "save"], round(seconds, 3), sum(map(float, FAILED.findall(text)))


def _processor(pid: int) -> Iterator[float]:
    """Seconds of a process and of those that it started."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(c) for task in tasks for c in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return
    yield (int(fields[11]) + int(fields[12])) / TICKS
    for child in children:
        yield from _processor(child)


def _rows(database: Path) -> dict[str, int]:
    with _open(database) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]  # noqa: S608
            for (name,) in names
            if not name.startswith(("sqlite_", "alembic"))
        }


def _in_use(database: Path) -> int:
    """Bytes of pages that hold something."""
    with _open(database) as connection:
        size, pages, free = (
            connection.execute(f"PRAGMA {what}").fetchone()[0]
            for what in ("page_size", "page_count", "freelist_count")
        )
    return int(size * (pages - free))


def _open(database: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True))
