"""BIRD 2, read by `birdc`: here, in a container, or over ssh. Text in, a `Sight` out.

BIRD shows a local preference on every route, 100 where nobody set one: it cannot be told as unset.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from typing import Literal, NamedTuple

from pydantic import Field

from gsid_service.collect.bgp import Session, path_length, peerings, sessions_as_facts
from gsid_service.collect.command import run
from gsid_service.collect.ospf import Link, connected
from gsid_service.collect.settings import Router, Settings, checked
from gsid_service.collect.source import Polled, Route, Sight, SourceError
from gsid_service.config import Seconds, Section
from gsid_service.records import Entity, Fact
from gsid_service.schema import LOCAL_PREF, MED, ORIGIN, ROUTER

STATUS, PROTOCOLS, ROUTES = "show status", "show protocols all", "show route all"
STATE, NEIGHBOURS = "show ospf state", "show ospf neighbors"

ORIGINS = {"IGP": 0, "EGP": 1, "Incomplete": 2}
PROTOCOL = re.compile(r"^(\S+)\s+BGP\s.*\bEstablished\b")
FIELD = re.compile(r"^\s+([A-Z][A-Za-z .]*[A-Za-z]):\s+(.*?)\s*$")
# A route has its prefix in the first column, or stands below another to the same prefix.
HEADER = re.compile(r"^(\S+/\d+)?\s+unicast \[(\S+)[^]]*\] (\*?)")
VIA = re.compile(r"^\s+via (\S+) on (\S+)")
ATTRIBUTE = re.compile(r"^\s+BGP\.(\w+): (.*)$")
NEAR = re.compile(r"^(\d+\.\d+\.\d+\.\d+)\s+\d+\s+Full/\S+\s+\S+\s+(\S+)\s+(\S+)$", re.MULTILINE)


class Options(Section):
    """Keys of a router with `source = "bird"`."""

    command: tuple[str, ...] = Field(default=("birdc",), min_length=1)
    ssh: str | None = None
    timeout_seconds: Seconds = 20
    ospf: Literal["area", "own", "off"] = "area"
    mesh: bool = False


class Bird(Polled):
    """One BIRD router."""

    def __init__(self, router: Router, settings: Settings) -> None:
        self.options = checked(Options, router.options, f"routers.{router.name}: ")
        self.names = settings.names

    def read(self) -> Sight:
        wanted = [STATUS, PROTOCOLS, ROUTES]
        if self.options.ospf != "off":
            wanted += [STATE, NEIGHBOURS]
        printed = {command: self._ask(command) for command in wanted}
        try:
            return Reading(printed, self.options, self.names).sight()
        except (KeyError, ValueError) as error:
            raise SourceError(f"not what BIRD says: {type(error).__name__}: {error}") from error

    def _ask(self, wanted: str) -> str:
        command = [*self.options.command, "-r", *wanted.split()]
        if self.options.ssh is not None:
            command = ["ssh", "-oBatchMode=yes", self.options.ssh, shlex.join(command)]
        printed = run(command, self.options.timeout_seconds)
        if "ready." not in printed:
            raise SourceError(f"no answer to {wanted!r}: {printed.strip()[:200]}")
        return printed


class Path(NamedTuple):
    """One route to a prefix."""

    prefix: str
    protocol: str
    used: bool
    via: list[tuple[str, str]]  # address and interface
    attributes: dict[str, str]


@dataclass(frozen=True)
class Reading:
    """What was printed in one turn, as facts."""

    printed: Mapping[str, str]
    options: Options
    names: Mapping[str, str]

    def sight(self) -> Sight:
        role, entities, facts = sessions_as_facts(
            self.name, [*self._sessions.values()], self.options.mesh
        )
        routers, links = self._links()
        nearby = [Entity(self._named(r), ROUTER.name) for r in self._adjacent.values()]
        known = {e.id: e for e in (*nearby, *routers, *entities)}
        return Sight(
            router=self.name,
            role=role,
            entities=tuple(known.values()),
            facts=(*links, *facts),
            routes=self._routes(),
            hops=self._hops(),
        )

    @cached_property
    def router_id(self) -> str:
        found = re.search(r"^Router ID is (\S+)$", self.printed[STATUS], re.MULTILINE)
        if found is None:
            raise ValueError("no router id in the status")
        return found[1]

    @property
    def name(self) -> str:
        return self._named(self.router_id)

    def _named(self, router_id: str) -> str:
        return self.names.get(router_id, router_id)

    @cached_property
    def _sessions(self) -> dict[str, Session]:
        """The sessions that are up, by the name of their protocol."""
        found = {}
        for name, about in established(self.printed[PROTOCOLS]):
            kind = about["Session"].split()
            found[name] = Session(
                address=about["Neighbor address"].partition("%")[0],
                asn=int(about["Neighbor AS"]),
                router=self._named(about["Neighbor ID"]),
                internal="internal" in kind or "confederation" in kind,
                confederate="confederation" in kind,
                client="route-reflector" in kind,
            )
        return found

    @cached_property
    def _peerings(self) -> dict[str, str]:
        """The peering of each external protocol."""
        by_address = peerings(self.name, self._sessions.values())
        return {
            name: by_address[session.address]
            for name, session in self._sessions.items()
            if session.address in by_address
        }

    def _links(self) -> tuple[tuple[Entity, ...], tuple[Fact, ...]]:
        if self.options.ospf == "off":
            return (), ()
        only = self.name if self.options.ospf == "own" else None
        return connected(*states(self.printed[STATE]), self.names, only)

    @cached_property
    def _paths(self) -> list[Path]:
        """The routes of BGP; what else there is is of no concern."""
        return [path for path in paths(self.printed[ROUTES]) if path.protocol in self._sessions]

    def _routes(self) -> dict[str, tuple[Route, ...]]:
        heard: dict[str, list[Route]] = {}
        for path in self._paths:
            if path.protocol in self._peerings:
                heard.setdefault(path.prefix, []).append(self._route(path))
        return {prefix: tuple(sorted(routes)) for prefix, routes in heard.items()}

    def _route(self, path: Path) -> Route:
        said = path.attributes
        return Route(
            peering=self._peerings[path.protocol],
            as_path_length=path_length(said["as_path"]),
            # For these BIRD has the same words.
            origin=ORIGINS[said[ORIGIN.name]],
            local_pref=int(said[LOCAL_PREF.name]),
            med=int(said[MED.name]) if MED.name in said else None,
            speaker=int(IPv4Address(self.router_id)),
        )

    def _hops(self) -> dict[str, tuple[str, ...]]:
        """Of prefixes in BGP, as the table has them that BIRD exports to the kernel."""
        wanted, hops = {path.prefix for path in self._paths}, {}
        for path in paths(self.printed[ROUTES]):
            if path.used and path.prefix in wanted:
                found = [self._hop(path, *via) for via in path.via]
                if found and None not in found:
                    hops[path.prefix] = tuple(sorted({hop for hop in found if hop}))
        return hops

    def _hop(self, path: Path, address: str, interface: str) -> str | None:
        if path.protocol in self._peerings:
            return self._peerings[path.protocol]
        neighbour = self._adjacent.get((address, interface))
        return None if neighbour is None else self._named(neighbour)

    @cached_property
    def _adjacent(self) -> dict[tuple[str, str], str]:
        """The router id of each OSPF neighbour, by its address and our interface."""
        told = self.printed.get(NEIGHBOURS, "")
        return {(found[3], found[2]): found[1] for found in NEAR.finditer(told)}


def established(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The BGP protocols that are up, with what is said of each."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        for at, line in enumerate(lines):
            found = PROTOCOL.match(line)
            if found:
                fields = (FIELD.match(below) for below in lines[at + 1 :])
                yield found[1], {f[1]: f[2] for f in reversed([f for f in fields if f])}


def paths(text: str) -> Iterator[Path]:
    """Every unicast route of every table."""
    prefix, path = "", None
    for line in text.splitlines():
        if not line.startswith("\t"):
            if path is not None:
                yield path
            found = HEADER.match(line)
            prefix = line.split()[0] if line[:1].isalnum() and "/" in line else prefix
            path = Path(prefix, found[2], bool(found[3]), [], {}) if found else None
        elif path is not None:
            if via := VIA.match(line):
                path.via.append((via[1], via[2]))
            elif said := ATTRIBUTE.match(line):
                path.attributes[said[1]] = said[2]
    if path is not None:
        yield path


def states(text: str) -> tuple[list[Link], dict[str, list[str]]]:
    """The links of all routers, and the routers on each shared network."""
    links: list[Link] = []
    attached: dict[str, list[str]] = {}
    router = network = ""
    for line in text.splitlines():
        words = line.split()
        if line.startswith("\trouter "):
            router, network = words[1], ""
        elif line.startswith("\tnetwork "):
            router, network = "", words[1]
            attached[network] = []
        elif line.startswith("\t\t") and len(words) >= 2:
            if network and words[0] == "router":
                attached[network].append(words[1])
            elif router and words[0] in {"router", "network"} and words[2:3] == ["metric"]:
                links.append(Link(router, words[1], int(words[3])))
    return links, attached


SOURCE = Bird
