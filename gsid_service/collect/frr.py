"""FRRouting, read by `vtysh`: here, in a container, or over ssh. JSON in, a `Sight` out.

Only `show` commands are used, unprivileged. Values are those in operation: attributes after the
inbound policy, costs as the link states have them, next hops as they are in the forwarding table.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from typing import Any, Literal

from pydantic import Field

from gsid_service.collect.bgp import Session, path_length, peerings, sessions_as_facts
from gsid_service.collect.command import run
from gsid_service.collect.ospf import Link, connected
from gsid_service.collect.settings import Router, Settings, checked
from gsid_service.collect.source import Polled, Route, Sight, SourceError
from gsid_service.config import Seconds, Section
from gsid_service.records import Entity, Fact
from gsid_service.schema import LOCAL_PREF, ORIGIN, ROUTER

NEIGHBOURS = "show bgp neighbors json"
ROUTER_STATES = "show ip ospf database router json"
NETWORK_STATES = "show ip ospf database network json"
ADJACENT = "show ip ospf neighbor json"
ADJACENT6 = "show ipv6 ospf6 neighbor json"
STATES6 = "show ipv6 ospf6 database detail json"
BGP = {"ipv4": "show bgp ipv4 unicast json", "ipv6": "show bgp ipv6 unicast json"}
RIB = {"ipv4": "show ip route json", "ipv6": "show ipv6 route json"}

ESTABLISHED = "Established"
LINK_LOCAL = "fe80:"
FRR_ORIGIN = ORIGIN.name  # FRR has the same word for it
ORIGINS = {"IGP": 0, "EGP": 1, "incomplete": 2}

Outputs = Mapping[str, Any]


class Options(Section):
    """Keys of a router with `source = "frr"`."""

    command: tuple[str, ...] = Field(default=("vtysh",), min_length=1)
    ssh: str | None = None
    timeout_seconds: Seconds = 20
    families: tuple[Literal["ipv4", "ipv6"], ...] = Field(default=("ipv4",), min_length=1)
    ospf: Literal["area", "own", "off"] = "area"
    mesh: bool = False


class Frr(Polled):
    """One FRR router."""

    def __init__(self, router: Router, settings: Settings) -> None:
        self.options = checked(Options, router.options, f"routers.{router.name}: ")
        self.names = settings.names

    def read(self) -> Sight:
        outputs = self._ask(commands(self.options))
        try:
            return Reading(outputs, self.options, self.names).sight()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SourceError(f"not what FRR says: {type(error).__name__}: {error}") from error

    def _ask(self, wanted: list[str]) -> Outputs:
        asked = [part for command in wanted for part in ("-c", command)]
        command = [*self.options.command, "-u", "-E", *asked]
        if self.options.ssh is not None:
            command = ["ssh", "-oBatchMode=yes", self.options.ssh, shlex.join(command)]
        return split(run(command, self.options.timeout_seconds), wanted)


def commands(options: Options) -> list[str]:
    wanted = [NEIGHBOURS, *(BGP[f] for f in options.families), *(RIB[f] for f in options.families)]
    if options.ospf != "off":
        if "ipv4" in options.families:
            wanted += [ROUTER_STATES, NETWORK_STATES, ADJACENT]
        else:
            wanted += [STATES6]
        if "ipv6" in options.families:
            wanted += [ADJACENT6]
    return wanted


def split(text: str, wanted: list[str]) -> Outputs:
    """The JSON document of each command, from the output in which vtysh echoes them."""
    parts = re.split(r"^\S*[#>] (show .*)$", text, flags=re.MULTILINE)
    printed = dict(zip(parts[1::2], parts[2::2], strict=True))
    found = {}
    for command in wanted:
        try:
            found[command] = json.loads(printed[command])
        except KeyError:
            raise SourceError(f"no answer to {command!r}") from None
        except ValueError as error:
            raise SourceError(f"{command!r} did not print JSON: {error}") from None
    return found


@dataclass(frozen=True)
class Reading:
    """The outputs of one turn, as facts."""

    outputs: Outputs
    options: Options
    names: Mapping[str, str]

    def sight(self) -> Sight:
        role, entities, facts = sessions_as_facts(self.name, self._sessions, self.options.mesh)
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
        tables = (self.outputs[BGP[family]] for family in self.options.families)
        return next(str(table["routerId"]) for table in tables)

    @property
    def name(self) -> str:
        return self._named(self.router_id)

    def _named(self, router_id: str) -> str:
        return self.names.get(router_id, router_id)

    @cached_property
    def _sessions(self) -> list[Session]:
        """The sessions that are up; names are filled in from their router ids."""
        found = []
        for address, about in self.outputs[NEIGHBOURS].items():
            if about.get("bgpState") == ESTABLISHED:
                families = about.get("addressFamilyInfo", {}).values()
                found.append(
                    Session(
                        address=address,
                        asn=about["remoteAs"],
                        router=self._named(about["remoteRouterId"]),
                        internal=not about.get("nbrExternalLink", False),
                        confederate=about.get("nbrCommonAdmin", False),
                        client=any(f.get("routeReflectorClient") for f in families),
                    )
                )
        return found

    @cached_property
    def _peerings(self) -> dict[str, str]:
        return peerings(self.name, self._sessions)

    # Links

    def _links(self) -> tuple[tuple[Entity, ...], tuple[Fact, ...]]:
        if self.options.ospf == "off":
            return (), ()
        found, attached = (
            states4(self.outputs) if ROUTER_STATES in self.outputs else states6(self.outputs)
        )
        only = self.name if self.options.ospf == "own" else None
        return connected(found, attached, self.names, only)

    # Routes

    def _routes(self) -> dict[str, tuple[Route, ...]]:
        routes = {}
        for family in self.options.families:
            table = self.outputs[BGP[family]]
            unset = table["defaultLocPrf"] if table["defaultLocPrf"] != LOCAL_PREF.default else None
            for prefix, paths in table["routes"].items():
                heard = [self._route(path, unset) for path in paths if self._is_outside(path)]
                if heard:
                    routes[prefix] = tuple(sorted(heard))
        return routes

    def _is_outside(self, path: Mapping[str, Any]) -> bool:
        """FRR calls a path from elsewhere in the confederation external; its session tells."""
        return bool(path.get("valid")) and path.get("peerId") in self._peerings

    def _route(self, path: Mapping[str, Any], unset: int | None) -> Route:
        return Route(
            peering=self._peerings[path["peerId"]],
            as_path_length=path_length(path["path"]),
            origin=ORIGINS[path[FRR_ORIGIN]],
            local_pref=path.get("locPrf", unset),
            med=path.get("metric"),
            speaker=int(IPv4Address(self.router_id)),
        )

    # Next hops

    def _hops(self) -> dict[str, tuple[str, ...]]:
        """Of every prefix in BGP, whoever its route is from: a static one may be in the way."""
        hops = {}
        for family in self.options.families:
            forwarded = self.outputs[RIB[family]]
            for prefix in self.outputs[BGP[family]]["routes"]:
                found = {self._hop(hop) for hop in in_use(forwarded.get(prefix, []))}
                if found and None not in found:
                    hops[prefix] = tuple(sorted(name for name in found if name))
        return hops

    def _hop(self, hop: Mapping[str, Any]) -> str | None:
        """Whom a next hop leads to; None where it cannot be told, and then nothing is said."""
        address = hop.get("ip", "")
        if address in self._beyond:
            return self._beyond[address]
        if address.startswith(LINK_LOCAL):
            neighbour = self._only_at.get(hop.get("interfaceName"))
        else:
            neighbour = self._adjacent.get(address)
        return None if neighbour is None else self._named(neighbour)

    @cached_property
    def _beyond(self) -> dict[Any, str]:
        """The peering behind each address that external routes have as their next hop."""
        return {
            hop["ip"]: self._peerings[path["peerId"]]
            for family in self.options.families
            for paths in self.outputs[BGP[family]]["routes"].values()
            for path in paths
            if self._is_outside(path)
            for hop in path.get("nexthops", [])
        }

    @cached_property
    def _adjacent(self) -> dict[Any, str]:
        """The router id behind each address of an OSPF neighbour."""
        told = self.outputs.get(ADJACENT, {}).get("neighbors", {})
        return {near["ifaceAddress"]: router for router, all_of in told.items() for near in all_of}

    @cached_property
    def _only_at(self) -> dict[Any, str]:
        """The neighbour at each interface that has one only: IPv6's next hops are link-local."""
        at: dict[str, set[str]] = defaultdict(set)
        for near in self.outputs.get(ADJACENT6, {}).get("neighbors", []):
            at[near["interfaceName"]].add(near["neighborId"])
        return {interface: min(routers) for interface, routers in at.items() if len(routers) == 1}


def in_use(entries: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The next hops that are in the forwarding table."""
    for entry in entries:
        if entry.get("selected"):
            yield from (hop for hop in entry["nexthops"] if hop.get("fib"))


def states4(outputs: Outputs) -> tuple[list[Link], dict[str, list[str]]]:
    """The links of all router LSAs, and the routers on each network by its designated router."""
    links = []
    for area in outputs[ROUTER_STATES].get("routerLinkStates", {}).get("areas", {}).values():
        for state in area:
            for link in state["routerLinks"].values():
                end = link.get("neighborRouterId") or link.get("designatedRouterAddress")
                if end is not None:
                    links.append(Link(state["advertisingRouter"], end, link["tos0Metric"]))
    attached = {
        state["linkStateId"]: list(state["attchedRouters"])  # as FRR spells it
        for area in outputs[NETWORK_STATES].get("networkLinkStates", {}).get("areas", {}).values()
        for state in area
    }
    return links, attached


def states6(outputs: Outputs) -> tuple[list[Link], dict[str, list[str]]]:
    """The same of OSPFv3, whose networks are known by designated router and its interface."""
    links, attached = [], {}
    for area in outputs[STATES6]["areaScopedLinkStateDb"]:
        for state in area["lsa"]:
            if state["type"] == "Router":
                for link in state["lsaDescription"]:
                    end = link["neighborRouterId"]
                    if link["type"] == "Transit-Network":
                        end += f" {link['neighborInterfaceId']}"
                    links.append(Link(state["advertisingRouter"], end, link["metric"]))
            elif state["type"] == "Network":
                end = f"{state['advertisingRouter']} {state['linkStateId']}"
                attached[end] = [str(router) for router in state["attachedRouter"]]
    return links, attached


SOURCE = Frr
