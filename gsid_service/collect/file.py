"""Snapshots from files, as other tools write them: the last of a folder, by name, is the view.

Read again as soon as there is a new one.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gsid_service.collect.settings import Router, Settings, checked
from gsid_service.collect.source import Sight, SourceError
from gsid_service.config import Section
from gsid_service.records import Entity, Fact
from gsid_service.schema import SCHEMA

LOOK_SECONDS = 0.5
ENTITY_FIELDS = frozenset(Entity._fields)


class Options(Section):
    """Keys of a router with `source = "file"`."""

    path: Path  # a snapshot, or a folder of them


class File:
    """A snapshot in a file, or the last of a folder."""

    def __init__(self, router: Router, settings: Settings) -> None:  # noqa: ARG002
        self.router = router.name
        self.path = checked(Options, router.options, f"routers.{router.name}: ").path
        self._stamp: object = None

    def read(self) -> Sight:
        file = newest(self.path)
        self._stamp = _stamp(file)
        role, entities, facts = read_file(file)
        return Sight(self.router, role, entities, facts)

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, LOOK_SECONDS))
            if self._has_news():
                return

    def _has_news(self) -> bool:
        try:
            return _stamp(newest(self.path)) != self._stamp
        except SourceError:
            return False  # and the next turn says why


def newest(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = max(path.glob("*.json"), default=None)
    if found is None:
        raise SourceError(f"{path}: no *.json in it")
    return found


def _stamp(file: Path) -> object:
    try:
        about = file.stat()
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}") from None
    return file, about.st_mtime_ns, about.st_size, about.st_ino


def read_file(file: Path) -> tuple[str, tuple[Entity, ...], tuple[Fact, ...]]:
    """The role, the entities and the facts of a complete snapshot."""
    try:
        document = json.loads(file.read_text())
        if not document["complete"]:
            raise SourceError(f"{file}: not a complete snapshot")
        entities = tuple(_entity(entity) for entity in document["entities"])
        facts = tuple(_fact(fact) for fact in document["facts"])
        return str(document["collector"]["role"]), entities, facts
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{file}: not a snapshot: {type(error).__name__}: {error}") from None


def _entity(about: Mapping[str, Any]) -> Entity:
    return Entity(**{name: about[name] for name in ENTITY_FIELDS & about.keys()})


def _fact(about: Mapping[str, Any]) -> Fact:
    kind = SCHEMA.fact[about["predicate"]]
    symbols = {parameter.name: parameter.symbols for parameter in kind.parameters}
    params = {
        name: symbols[name].index(value) if isinstance(value, str) else int(value)
        for name, value in about.get("params", {}).items()
    }
    return Fact(kind.name, tuple(about["args"]), params)


SOURCE = File
