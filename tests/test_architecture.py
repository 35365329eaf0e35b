"""Who may import whom: the one table, and the words that only the schema may spell."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsid_service.schema import SCHEMA

PACKAGE = Path(__file__).parent.parent / "gsid_service"
ANYTHING = {"*"}

# Each room of the package, and the rooms that it may import beside itself.
ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "schema": set(),
    "terminal": set(),
    "config": set(),
    "records": {"schema"},
    "notices": {"records"},
    "memory": set(),
    "metrics": set(),
    "drift": set(),
    "collect": {"schema", "records", "config"},
    "store": {"schema", "records", "notices"},
    "jobs": {"store"},
    "ingest": {"schema", "records", "store"},
    "simulate": {"schema", "records"},
    "assemble": {"schema", "records"},
    "score": {"schema", "records", "assemble"},
    "verify": {"schema", "records", "simulate"},
    "recent": set(),
    "diagnose": {
        *("schema", "records", "memory", "recent", "simulate", "assemble", "score", "verify"),
    },
    "alert": {"schema", "records"},
    "notify": {"schema", "records", "notices", "alert"},
    "api": {
        *("schema", "records", "notices", "store", "ingest", "assemble", "alert", "notify", "app"),
        "check",
    },
    "console": {"schema", "records", "store", "ingest", "assemble", "alert", "api", "app"},
    "cycle": {
        *("schema", "records", "config", "metrics", "drift", "recent", "store", "ingest"),
        *("simulate", "assemble", "verify", "diagnose", "alert"),
    },
    "check": {
        *("records", "ingest", "store", "simulate", "assemble", "verify", "diagnose", "alert"),
        *("cycle", "app"),
    },
    "app": ANYTHING,
    "notifier": ANYTHING,  # wires notify to the store, as app does for the stages before
    "serve": ANYTHING,
    "command": {
        "config",
        "drift",
        "collect",
        "store",
        "serve",
        "notifier",
        "terminal",
        "ingest",
        "score",
        "train",
        "evaluate",
        "bench",
        "demo",
        "simulate",
    },
    # Beside the daemon.
    "demo": {
        *("schema", "records", "config", "store", "ingest", "simulate", "alert", "serve"),
    },
    "evaluate": {
        *("schema", "records", "ingest", "simulate", "assemble", "score", "diagnose"),
    },
    "train": {"schema", "records", "drift", "simulate", "score", "evaluate"},
    "bench": {
        "collect",
        *("schema", "records", "notices", "config", "metrics", "store", "ingest", "simulate"),
        *("assemble", "score", "verify", "diagnose", "evaluate", "notify", "notifier", "jobs"),
    },
    "__main__": ANYTHING,
}
MAY_IMPORT_TORCH = {"score", "train", "evaluate", "bench"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules(), ids=str)
def test_imports_stay_inside_the_table(path: Path) -> None:
    allowed = ALLOWED[room(path)] | {room(path)}
    own = [name.split(".")[1] for name in imported(path) if name.startswith("gsid_service.")]
    assert allowed == ANYTHING | {room(path)} or set(own) <= allowed


@pytest.mark.parametrize("path", modules(), ids=str)
def test_only_the_model_s_rooms_import_torch(path: Path) -> None:
    heavy = any(name.split(".")[0].startswith("torch") for name in imported(path))
    assert not heavy or room(path) in MAY_IMPORT_TORCH


@pytest.mark.parametrize("path", modules(), ids=str)
def test_only_the_schema_spells_predicates_and_parameters(path: Path) -> None:
    words = {fact.name for fact in SCHEMA.facts} | {p.name for p in SCHEMA.parameters}
    spelled = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert room(path) == "schema" or not words & spelled


def test_the_table_names_only_rooms_that_exist() -> None:
    rooms = {room(path) for path in modules()}
    named = set(ALLOWED).union(*ALLOWED.values()) - ANYTHING
    assert named == rooms


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys, gsid_service.__main__; print('torch' in sys.modules, 'scipy' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["False", "False"]
