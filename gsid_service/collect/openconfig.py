"""OpenConfig state, by gNMI or from a file with the same JSON: a tree in, a `Sight` out.

Read are BGP sessions, the RIB after the inbound policy, and OSPF interfaces with their neighbours;
forwarding is not. OpenConfig tells no router id of a session's other end: those inside the network
are known by their address, so that `[names]` should have the loopback addresses.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from functools import cached_property
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from gsid_service.collect.bgp import Session, peerings, sessions_as_facts
from gsid_service.collect.gnmi import Gnmi
from gsid_service.collect.settings import Router, Settings, checked
from gsid_service.collect.source import Route, Sight, SourceError
from gsid_service.config import Seconds, Section
from gsid_service.records import Entity, Fact
from gsid_service.schema import CONNECTED, MED, ORIGIN, OSPF_WEIGHT, ROUTER

ORIGINS = {"IGP": 0, "EGP": 1, "INCOMPLETE": 2}
SEQUENCE, SET = "AS_SEQ", "AS_SET"
FULL, ESTABLISHED = "FULL", "ESTABLISHED"

Tree = Mapping[str, Any]


class Options(Section):
    """Keys of a router with `source = "openconfig"`: a file's `path`, or a `target` to ask."""

    path: Path | None = None
    target: str | None = Field(default=None, pattern=r"^\S+:\d+$")
    username: str = ""
    password_file: Path | None = None
    ca_file: Path | None = None
    insecure: bool = False  # without TLS
    on_change: bool = True
    instance: str = "default"
    mesh: bool = False
    timeout_seconds: Seconds = 20

    @model_validator(mode="after")
    def _complete(self) -> "Options":
        if (self.path is None) == (self.target is None):
            raise ValueError("either path or target")
        if self.target is not None and (self.ca_file is None) != self.insecure:
            raise ValueError("either ca_file or insecure = true")
        return self


class Openconfig:
    """One router that speaks OpenConfig."""

    def __init__(self, router: Router, settings: Settings) -> None:
        options = checked(Options, router.options, f"routers.{router.name}: ")
        self.options, self.names = options, settings.names
        self._news = threading.Event()
        self._gnmi: Gnmi | None = None
        if options.target is not None:
            self._gnmi = Gnmi(
                options.target,
                options.username,
                options.password_file,
                options.ca_file,
                options.timeout_seconds,
            )
            if options.on_change:
                self._gnmi.watch(options.instance, self._news.set)

    def wait(self, seconds: float) -> None:
        self._news.wait(seconds)

    def read(self) -> Sight:
        self._news.clear()
        try:
            return Reading(self._instance(), self.names).sight(self.options.mesh)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SourceError(f"not OpenConfig: {type(error).__name__}: {error}") from error

    def _instance(self) -> Tree:
        """The state of the network instance, wherever it is from."""
        if self._gnmi is not None:
            values = self._gnmi.state(self.options.instance)
        else:
            values = [_read(self.options.path or Path())]
        found: dict[str, Any] = {}
        for value in values:
            found |= instance_of(plain(value), self.options.instance)
        return found


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None


def plain(tree: Any) -> Any:
    """Without the modules before names and identities, as in `openconfig-bgp-types:IGP`."""
    if isinstance(tree, dict):
        return {key.rpartition(":")[2]: plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    if isinstance(tree, str) and tree.startswith("openconfig-"):
        return tree.rpartition(":")[2]
    return tree


def instance_of(tree: Tree, name: str) -> Tree:
    """The network instance in a tree, which may begin with it or above it."""
    if "network-instances" in tree:
        tree = tree["network-instances"]
    if "network-instance" not in tree:
        return tree
    for instance in tree["network-instance"]:
        if instance["name"] == name:
            found: Tree = instance
            return found
    raise KeyError(f"network-instance {name}")


def listed(tree: Tree, *path: str) -> list[Any]:
    """The list at the end of a path, empty where there is none."""
    for part in path[:-1]:
        tree = tree.get(part, {})
    found: list[Any] = tree.get(path[-1], [])
    return found


class Reading:
    """A network instance, as facts."""

    def __init__(self, instance: Tree, names: Mapping[str, str]) -> None:
        self.names = names
        protocols = listed(instance, "protocols", "protocol")
        self.bgp: Tree = next((p["bgp"] for p in protocols if "bgp" in p), {})
        self.ospf = [p["ospfv2"] for p in protocols if "ospfv2" in p]

    def sight(self, mesh: bool) -> Sight:
        role, entities, facts = sessions_as_facts(self.name, self._sessions, mesh)
        links = list(self._links())
        nearby = [Entity(link.args[1], ROUTER.name) for link in links]
        known = {entity.id: entity for entity in (*nearby, *entities)}
        return Sight(
            router=self.name,
            role=role,
            entities=tuple(known.values()),
            facts=(*links, *facts),
            routes=self._routes(),
        )

    @cached_property
    def router_id(self) -> str:
        for protocol in (self.bgp, *self.ospf):
            found = protocol.get("global", {}).get("state", {}).get("router-id")
            if found is not None:
                return str(found)
        raise KeyError("router-id")

    @property
    def name(self) -> str:
        return self._named(self.router_id)

    def _named(self, router: str) -> str:
        return self.names.get(router, router)

    @cached_property
    def _sessions(self) -> list[Session]:
        about = self.bgp.get("global", {})
        members = about.get("confederation", {}).get("state", {}).get("member-as", [])
        return [
            self._session(neighbour, int(about["state"]["as"]), members)
            for neighbour in listed(self.bgp, "neighbors", "neighbor")
            if neighbour["state"].get("session-state") == ESTABLISHED
        ]

    def _session(self, neighbour: Tree, own_as: int, members: list[int]) -> Session:
        asn = int(neighbour["state"]["peer-as"])
        reflection = neighbour.get("route-reflector", {}).get("state", {})
        return Session(
            address=neighbour["neighbor-address"],
            asn=asn,
            router=self._named(neighbour["neighbor-address"]),
            internal=asn == own_as or asn in members,
            confederate=asn != own_as and asn in members,
            client=bool(reflection.get("route-reflector-client")),
        )

    def _links(self) -> Iterator[Fact]:
        """Own interfaces, with the neighbours that are adjacent over each."""
        for protocol in self.ospf:
            for area in listed(protocol, "areas", "area"):
                for interface in listed(area, "interfaces", "interface"):
                    cost = int(interface["state"]["metric"])
                    for near in listed(interface, "neighbors", "neighbor"):
                        if near["state"].get("adjacency-state") == FULL:
                            ends = self.name, self._named(near["router-id"])
                            yield Fact(CONNECTED.name, ends, {OSPF_WEIGHT.name: cost})

    def _routes(self) -> dict[str, tuple[Route, ...]]:
        rib, outside = self.bgp.get("rib", {}), peerings(self.name, self._sessions)
        attributes = {int(a["index"]): a for a in listed(rib, "attr-sets", "attr-set")}
        heard: dict[str, list[Route]] = {}
        for address, prefix, index in _heard(rib):
            if address in outside:
                route = self._route(outside[address], attributes[index])
                heard.setdefault(prefix, []).append(route)
        return {prefix: tuple(sorted(routes)) for prefix, routes in heard.items()}

    def _route(self, peering: str, attributes: Tree) -> Route:
        state = attributes["state"]
        return Route(
            peering=peering,
            as_path_length=path_length(attributes),
            # For these OpenConfig has the same words.
            origin=ORIGINS[state.get(ORIGIN.name, "IGP")],
            local_pref=state.get("local-pref"),
            med=state.get(MED.name),
            speaker=int(IPv4Address(self.router_id)),
        )


def _heard(rib: Tree) -> Iterator[tuple[str, str, int]]:
    """Neighbour, prefix and set of attributes of all that is taken from each neighbour."""
    for family in listed(rib, "afi-safis", "afi-safi"):
        for unicast in ("ipv4-unicast", "ipv6-unicast"):
            for neighbour in listed(family, unicast, "neighbors", "neighbor"):
                for route in listed(neighbour, "adj-rib-in-post", "routes", "route"):
                    index = int(route["state"]["attr-index"])
                    yield neighbour["neighbor-address"], route["prefix"], index


def path_length(attributes: Tree) -> int:
    """A set counts once; segments of a confederation count nothing."""
    length = 0
    for segment in listed(attributes, "as-path", "as-segment"):
        kind, members = segment["state"].get("type", SEQUENCE), segment["state"]["member"]
        length += {SEQUENCE: len(members), SET: 1}.get(kind, 0)
    return max(1, length)


SOURCE = Openconfig
