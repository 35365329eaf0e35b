"""A small lab, for what the large one does not have: BIRD as a reflector and gateway, and BMP.

B1 is BIRD, F1 and F2 are FRR. B1 and F1 reflect to F2 and peer with each other; X1 (AS 65101) peers
with B1, X2 (AS 65102) and X3 (AS 65103) with F1, which sends what it hears by BMP to port 11019 of
its own loopback.
"""

from tests.lab.plan import Plan

AS = 65000
ROUTERS = {"B1": "10.0.0.1", "F1": "10.0.0.2", "F2": "10.0.0.3"}
COSTS = {
    ("B1", "F1"): 15,
    ("F1", "B1"): 16,
    ("B1", "F2"): 25,
    ("F2", "B1"): 26,
    ("F1", "F2"): 35,
    ("F2", "F1"): 36,
}
PREFIXES = ("203.0.113.0/24", "198.51.100.0/24")
PREFIX6 = "2001:db8:1::/48"
BMP_PORT = 11019

ENDS = (
    *(("B1", "F1", "10.1.0.1/30"), ("F1", "B1", "10.1.0.2/30")),
    *(("B1", "F2", "10.1.1.1/30"), ("F2", "B1", "10.1.1.2/30")),
    *(("F1", "F2", "10.1.2.1/30"), ("F2", "F1", "10.1.2.2/30")),
    *(("B1", "X1", "172.16.0.1/30", "fd02::1/64"), ("X1", "B1", "172.16.0.2/30", "fd02::2/64")),
    *(("F1", "X2", "172.16.1.1/30", "fd02:1::1/64"), ("X2", "F1", "172.16.1.2/30", "fd02:1::2/64")),
    *(("F1", "X3", "172.16.2.1/30"), ("X3", "F1", "172.16.2.2/30")),
)


def plan() -> Plan:
    return Plan(
        loopbacks={name: [f"{address}/32"] for name, address in ROUTERS.items()},
        ends=[tuple(end) for end in ENDS],
        files={
            "B1": {"bird": BIRD},
            "F1": {"zebra": "", "ospfd": ospfd("F1"), "bgpd": F1},
            "F2": {"zebra": "", "ospfd": ospfd("F2"), "bgpd": F2},
            "X1": {"zebra": "", "bgpd": external(65101, 0, v6=True)},
            "X2": {"zebra": "", "bgpd": external(65102, 1, v6=True)},
            "X3": {"zebra": "", "bgpd": external(65103, 2, v6=False)},
        },
    )


BIRD = f"""
router id 10.0.0.1;
protocol device {{}}
protocol kernel {{ ipv4 {{ export all; }}; merge paths on; }}
protocol kernel {{ ipv6 {{ export all; }}; }}
protocol ospf v2 inside {{
  ipv4 {{ import all; export none; }};
  area 0 {{
    interface "lo" {{ stub yes; }};
    interface "to-F1" {{ type ptp; cost {COSTS["B1", "F1"]}; hello 1; dead 4; }};
    interface "to-F2" {{ type ptp; cost {COSTS["B1", "F2"]}; hello 1; dead 4; }};
  }};
}}
filter heard {{
  if net = {PREFIXES[0]} then {{ bgp_local_pref = 200; bgp_med = 7; bgp_path.prepend(65101); }}
  accept;
}}
protocol bgp x1 {{
  local as {AS}; neighbor 172.16.0.2 as 65101; connect retry time 1; connect delay time 1;
  ipv4 {{ import filter heard; export all; }};
}}
protocol bgp x1_v6 {{
  local as {AS}; neighbor fd02::2 as 65101; connect retry time 1; connect delay time 1;
  ipv6 {{ import all; export all; }};
}}
template bgp within {{
  local 10.0.0.1 as {AS}; connect retry time 1; connect delay time 1;
  ipv4 {{ import all; export where source = RTS_BGP; next hop self ebgp; }};
}}
protocol bgp f1 from within {{ neighbor 10.0.0.2 as {AS}; }}
protocol bgp f2 from within {{ neighbor 10.0.0.3 as {AS}; rr client; }}
"""

HEAD = "no bgp default ipv4-unicast\nno bgp ebgp-requires-policy\nno bgp network import-check\n"


def ospfd(name: str) -> str:
    lines = []
    for (start, end), cost in COSTS.items():
        if start == name:
            lines += [f"interface to-{end}", f"ip ospf cost {cost}", "ip ospf hello-interval 1"]
            lines += ["ip ospf dead-interval 4", "ip ospf network point-to-point"]
    lines += ["router ospf", f"ospf router-id {ROUTERS[name]}", "network 10.0.0.0/15 area 0"]
    return "\n".join(lines) + "\n"


def _inside(address: str, *more: str) -> str:
    at = f"neighbor {address}"
    lines = [f"{at} remote-as {AS}", f"{at} update-source lo", f"{at} timers connect 1"]
    lines += ["address-family ipv4 unicast", f"{at} activate", f"{at} next-hop-self"]
    return "\n".join([*lines, *(f"{at} {line}" for line in more), "exit-address-family"]) + "\n"


def _outside(address: str, asn: int, family: str, policy: str = "") -> str:
    at = f"neighbor {address}"
    lines = [f"{at} remote-as {asn}", f"{at} timers connect 1"]
    lines += [f"address-family {family} unicast", f"{at} activate"]
    lines += [f"{at} {policy}"] if policy else []
    return "\n".join([*lines, "exit-address-family"]) + "\n"


F1 = (
    f"ip prefix-list P0 permit {PREFIXES[0]}\n"
    "route-map IN permit 10\nmatch ip address prefix-list P0\nset local-preference 150\n"
    "set metric 40\nset as-path prepend 65102 65102\nexit\nroute-map IN permit 20\nexit\n"
    f"router bgp {AS}\nbgp router-id 10.0.0.2\n{HEAD}"
    + _inside("10.0.0.1")
    + _inside("10.0.0.3", "route-reflector-client")
    + _outside("172.16.1.2", 65102, "ipv4", "route-map IN in")
    + _outside("172.16.2.2", 65103, "ipv4")
    + _outside("fd02:1::2", 65102, "ipv6")
    + "bmp targets gsid\n"
    "bmp monitor ipv4 unicast post-policy\nbmp monitor ipv6 unicast post-policy\n"
    f"bmp connect 127.0.0.1 port {BMP_PORT} min-retry 100 max-retry 500\nexit\n"
)
F2 = f"router bgp {AS}\nbgp router-id 10.0.0.3\n{HEAD}" + _inside("10.0.0.1") + _inside("10.0.0.2")


def external(asn: int, number: int, v6: bool) -> str:
    networks = "\n".join(f"network {prefix}" for prefix in PREFIXES)
    text = (
        f"router bgp {asn}\nbgp router-id 10.9.0.{1 + number}\n{HEAD}"
        f"address-family ipv4 unicast\n{networks}\nexit-address-family\n"
        + _outside(f"172.16.{number}.1", AS, "ipv4")
    )
    if v6:
        gateway = "fd02::1" if number == 0 else f"fd02:{number}::1"
        text += f"address-family ipv6 unicast\nnetwork {PREFIX6}\nexit-address-family\n"
        text += _outside(gateway, AS, "ipv6")
    return text
