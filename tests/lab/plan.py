"""Addresses and interface names of the lab, and the configuration files of its speakers."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network

from tests.lab.design import (
    AS,
    BROADCAST,
    CLIENTS,
    GATEWAYS,
    LINKS,
    PEERS,
    PREFIXES,
    REFLECTORS,
    ROUTERS,
    Design,
    Peer,
    Policy,
)

ORIGIN = 65200  # the AS behind all external ones, so that paths have a length
FAST = "ip ospf hello-interval 1", "ip ospf dead-interval 4"
FAST6 = "ipv6 ospf6 hello-interval 1", "ipv6 ospf6 dead-interval 4"


@dataclass(frozen=True)
class Plan:
    """All that is needed to build a lab: speakers with their files, and what connects them."""

    loopbacks: dict[str, list[str]]
    ends: list[tuple[str, ...]]  # a speaker, its neighbour, its addresses on that link
    files: dict[str, dict[str, str]]  # of each speaker, by the name of its daemon


def plan(design: Design) -> Plan:
    files = {
        name: {
            "zebra": zebra(name),
            "ospfd": ospfd(name, design),
            "ospf6d": ospf6d(name, design),
            "bgpd": bgpd(name, design),
            "staticd": "",
        }
        for name in ROUTERS
    }
    for peer in PEERS:
        if peer.daemon == "bird":
            files[peer.name] = {"bird": bird(peer)}
        else:
            files[peer.name] = {"zebra": zebra(peer.name), "bgpd": external_bgpd(peer)}
    loopbacks = {name: [f"{router_id(name)}/32", f"{loopback6(name)}/128"] for name in ROUTERS}
    return Plan(loopbacks, list(ends()), files)


def router_id(name: str) -> str:
    return f"10.0.0.{1 + ROUTERS.index(name)}"


def loopback6(name: str) -> str:
    return f"fd00::{1 + ROUTERS.index(name):x}"


def interface(there: str) -> str:
    """Every speaker's interface is named for the neighbour that it leads to."""
    return f"to-{there}"


def ends() -> Iterator[tuple[str, str, str, str]]:
    """Of every end of a link: the speaker, its neighbour, its IPv4 and its IPv6 address."""
    for k, (a, b) in enumerate(LINKS):
        yield a, b, f"10.1.{k}.1/30", f"fd01:{k:x}::1/64"
        yield b, a, f"10.1.{k}.2/30", f"fd01:{k:x}::2/64"
    for k, peer in enumerate(PEERS):
        yield peer.gateway, peer.name, f"172.16.{k}.1/30", f"fd02:{k:x}::1/64"
        yield peer.name, peer.gateway, f"172.16.{k}.2/30", f"fd02:{k:x}::2/64"


def addresses(here: str, there: str) -> tuple[str, str]:
    """The addresses of a speaker towards its neighbour, without their lengths."""
    found = next((v4, v6) for a, b, v4, v6 in ends() if (a, b) == (here, there))
    return found[0].partition("/")[0], found[1].partition("/")[0]


def is_v6(prefix: str) -> bool:
    return ip_network(prefix).version == 6


# The routers of the AS


def zebra(name: str) -> str:
    return f"hostname {name}\n"


def ospfd(name: str, design: Design) -> str:
    lines = [f"hostname {name}"]
    for here, there, _, _ in ends():
        if here == name and there in ROUTERS:
            lines += [f"interface {interface(there)}", *FAST]
            lines.append(f"ip ospf cost {design.costs[here, there]}")
            if {here, there} != set(BROADCAST):
                lines.append("ip ospf network point-to-point")
    lines += ["router ospf", f"ospf router-id {router_id(name)}", "timers throttle spf 0 50 200"]
    lines += ["timers throttle lsa all 0", "timers lsa min-arrival 0"]
    return _file([*lines, "network 10.0.0.0/15 area 0"])


def ospf6d(name: str, design: Design) -> str:
    lines = [f"hostname {name}", "interface lo", "ipv6 ospf6 area 0"]
    for here, there, _, _ in ends():
        if here == name and there in ROUTERS:
            lines += [f"interface {interface(there)}", "ipv6 ospf6 area 0", *FAST6]
            if {here, there} != set(BROADCAST):
                lines.append("ipv6 ospf6 network point-to-point")
            lines.append(f"ipv6 ospf6 cost {design.costs[here, there]}")
    lines += ["router ospf6", f"ospf6 router-id {router_id(name)}"]
    return _file([*lines, "timers throttle spf 0 50 200", "timers lsa min-arrival 0"])


def bgpd(name: str, design: Design) -> str:
    lines = [f"hostname {name}", "bgp route-map delay-timer 1"]
    lines += [_prefix_list(prefix) for prefix in PREFIXES if name in GATEWAYS]
    for peer in (p for p in PEERS if p.gateway == name):
        lines += policies(peer, design)
    lines += [f"router bgp {AS}", f"bgp router-id {router_id(name)}"]
    lines += ["no bgp default ipv4-unicast", "no bgp ebgp-requires-policy"]
    inside = (*CLIENTS, *REFLECTORS) if name in REFLECTORS else REFLECTORS
    neighbours = [other for other in inside if other != name]
    for other in neighbours:
        at = f"neighbor {router_id(other)}"
        lines += [f"{at} remote-as {AS}", f"{at} update-source lo", f"{at} timers connect 1"]
        lines += [f"{at} advertisement-interval 0"]
    for family in ("ipv4", "ipv6"):
        # The simulator knows no multipath between gateways, which FRR has on by default; and FRR
        # puts paths into it that lost to a third one by med.
        lines += [f"address-family {family} unicast", "maximum-paths ibgp 1", "maximum-paths 1"]
        for other in neighbours:
            lines += _inside(name, other)
        lines.append("exit-address-family")
    for peer in (p for p in PEERS if p.gateway == name):
        lines += _outside(peer)
    return _file(lines)


def _inside(name: str, other: str) -> list[str]:
    at = f"neighbor {router_id(other)}"
    lines = [f"{at} activate"]
    if name in GATEWAYS:
        lines.append(f"{at} next-hop-self")
    if name in REFLECTORS and other in CLIENTS:
        lines.append(f"{at} route-reflector-client")
    return lines


def _outside(peer: Peer) -> list[str]:
    lines = []
    for family, address in zip(("ipv4", "ipv6"), addresses(peer.name, peer.gateway), strict=True):
        at = f"neighbor {address}"
        lines += [f"{at} remote-as {peer.asn}", f"{at} timers connect 1"]
        lines += [f"{at} advertisement-interval 0", f"address-family {family} unicast"]
        lines += [f"{at} activate", f"{at} route-map {peer.name}-{family} in"]
        lines.append("exit-address-family")
    return lines


def _prefix_list(prefix: str) -> str:
    return f"{'ipv6' if is_v6(prefix) else 'ip'} prefix-list {_list(prefix)} permit {prefix}"


def _list(prefix: str) -> str:
    return f"P{PREFIXES.index(prefix)}"


def policies(peer: Peer, design: Design) -> list[str]:
    """The route maps of a gateway for what it hears from a peer."""
    return [
        line
        for prefix in PREFIXES
        for line in _entry(peer, prefix, design.policies.get((peer.name, prefix)))
    ]


def _entry(peer: Peer, prefix: str, policy: Policy | None) -> list[str]:
    """The entry for one prefix; without a policy it is not taken."""
    action, number = "deny" if policy is None else "permit", entry_number(prefix)
    lines = [f"route-map {map_name(peer, prefix)} {action} {number}"]
    lines.append(f"match {'ipv6' if is_v6(prefix) else 'ip'} address prefix-list {_list(prefix)}")
    if policy is not None:
        lines += _sets(peer, policy)
    return [*lines, "exit"]


def _sets(peer: Peer, policy: Policy) -> list[str]:
    sets = {
        f"set local-preference {policy.local_pref}": policy.local_pref,
        f"set metric {policy.med}": policy.med,
        f"set as-path prepend{f' {peer.asn}' * policy.prepend}": policy.prepend or None,
    }
    return [line for line, value in sets.items() if value is not None]


def map_name(peer: Peer, prefix: str) -> str:
    return f"{peer.name}-{'ipv6' if is_v6(prefix) else 'ipv4'}"


def entry_number(prefix: str) -> int:
    return 10 * (1 + PREFIXES.index(prefix))


# The external speakers


def external_bgpd(peer: Peer) -> str:
    lines = [f"hostname {peer.name}", f"route-map OUT permit 10\nset as-path prepend {ORIGIN}"]
    lines += ["exit", f"router bgp {peer.asn}", f"bgp router-id 10.9.0.{1 + PEERS.index(peer)}"]
    lines += ["no bgp default ipv4-unicast", "no bgp ebgp-requires-policy"]
    lines.append("no bgp network import-check")
    for family, address in zip(("ipv4", "ipv6"), addresses(peer.gateway, peer.name), strict=True):
        at = f"neighbor {address}"
        lines += [f"{at} remote-as {AS}", f"{at} timers connect 1"]
        lines += [f"{at} advertisement-interval 0", f"address-family {family} unicast"]
        lines += [f"network {p}" for p in PREFIXES if is_v6(p) == (family == "ipv6")]
        lines += [f"{at} activate", f"{at} route-map OUT out", "exit-address-family"]
    return _file(lines)


def bird(peer: Peer) -> str:
    parts = [f"router id 10.9.0.{1 + PEERS.index(peer)};", "protocol device {}"]
    for family, address in zip(("ipv4", "ipv6"), addresses(peer.gateway, peer.name), strict=True):
        routes = " ".join(
            f"route {p} blackhole;" for p in PREFIXES if is_v6(p) == (family == "ipv6")
        )
        export = f"export filter {{ bgp_path.prepend({ORIGIN}); accept; }};"
        parts.append(f"protocol static static_{family} {{ {family}; {routes} }}")
        parts.append(
            f"protocol bgp up_{family} {{ local as {peer.asn}; neighbor {address} as {AS}; "
            f"connect retry time 1; connect delay time 1; "
            f"{family} {{ import all; {export} }}; }}"
        )
    return "\n".join(parts) + "\n"


def _file(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
