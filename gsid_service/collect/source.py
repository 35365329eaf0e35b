"""What a source of router state is, and the form in which it tells what its router sees."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import NamedTuple, Protocol

from gsid_service.collect.settings import Router, Settings
from gsid_service.config import BadSettings
from gsid_service.records import Entity, Fact

KNOWN = ("frr", "bird", "openconfig", "bmp", "file", "simulated")


class SourceError(Exception):
    """A router could not be read; it is tried again at its next turn."""


class Route(NamedTuple):
    """A prefix as a gateway hears it from one peering, after the gateway's own policy.

    What is None is not set: the protocol's default holds, and the parameter is left out.
    """

    peering: str
    as_path_length: int
    origin: int = 0
    local_pref: int | None = None
    med: int | None = None
    speaker: int | None = None


@dataclass(frozen=True)
class Sight:
    """What one router sees: links and sessions as facts, routes and next hops by prefix."""

    router: str  # its own entity
    role: str
    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]
    routes: Mapping[str, tuple[Route, ...]] = field(default_factory=dict)
    hops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Source(Protocol):
    """One router, however it is read."""

    def read(self) -> Sight:
        """What the router sees now; raises `SourceError` where it cannot be told."""

    def wait(self, seconds: float) -> None:
        """Wait so long, or until there is something new to read."""


class Polled:
    """A source that only its next turn can tell of changes."""

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


def open_source(router: Router, settings: Settings) -> Source:
    """The source that a router's settings name: a module here, or `module:Class` elsewhere."""
    module, _, name = router.source.partition(":")
    place = f"routers.{router.name}"
    if not name and module not in KNOWN:
        raise BadSettings(
            f"{place}.source: {module!r} is none of {', '.join(KNOWN)}, nor module:Class"
        )
    try:
        found = import_module(module if name else f"gsid_service.collect.{module}")
    except ModuleNotFoundError as error:
        raise BadSettings(f"{place}.source: {error}") from None
    maker = getattr(found, name or "SOURCE", None)
    if maker is None:
        raise BadSettings(f"{place}.source: {router.source!r} is no source")
    try:
        source: Source = maker(router, settings)
    except KeyError as error:  # of an option that it takes for given
        raise BadSettings(f"{place}: {error.args[0]}: must be given") from None
    return source
