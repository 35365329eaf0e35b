"""The lab's network on paper: routers, links, peerings, policies; and random variants of it.

Ten routers, two of them reflectors and three gateways, in AS 65000. Five external speakers, FRR and
BIRD, announce four IPv4 and two IPv6 prefixes. Names are those of the service's entities.
"""

import random
from dataclasses import dataclass, field, replace

AS = 65000
CLIENTS = tuple(f"R{n}" for n in range(1, 9))
REFLECTORS = ("RR1", "RR2")
ROUTERS = (*CLIENTS, *REFLECTORS)
# Costs by which every router has one shortest path to every other.
USUAL_COSTS = {
    ("RR1", "RR2"): 12,
    ("RR1", "R1"): 25,
    ("RR1", "R4"): 35,
    ("RR2", "R2"): 35,
    ("RR2", "R5"): 35,
    ("R1", "R2"): 10,
    ("R2", "R3"): 15,
    ("R3", "R4"): 10,
    ("R4", "R5"): 20,
    ("R5", "R6"): 35,
    ("R6", "R7"): 20,
    ("R7", "R8"): 20,
    ("R8", "R1"): 30,
    ("R3", "R7"): 20,
    ("R3", "R6"): 35,
}
LINKS = tuple(USUAL_COSTS)
# A network with a designated router in place of a link between two.
BROADCAST = ("RR1", "RR2")


@dataclass(frozen=True)
class Peer:
    """An external speaker: one AS at one gateway."""

    name: str
    asn: int
    gateway: str
    daemon: str = "frr"

    @property
    def entity(self) -> str:
        return f"AS{self.asn}@{self.gateway}"


PEERS = (
    Peer("X1", 65101, "R3"),
    Peer("X2", 65101, "R6"),
    Peer("X3", 65102, "R6", "bird"),
    Peer("X4", 65102, "R8", "bird"),
    Peer("X5", 65103, "R8"),
)
GATEWAYS = ("R3", "R6", "R8")
PREFIXES = (
    *("203.0.113.0/24", "198.51.100.0/24", "192.0.2.0/24", "100.64.0.0/20"),
    *("2001:db8:1::/48", "2001:db8:2::/48"),
)


@dataclass(frozen=True)
class Policy:
    """What a gateway makes of a route that it hears; None leaves the attribute as it is."""

    local_pref: int | None = None
    prepend: int = 0
    med: int | None = None


@dataclass(frozen=True)
class Design:
    """Costs by direction of link; policies by name of peer and prefix, for all that is heard."""

    costs: dict[tuple[str, str], int]
    policies: dict[tuple[str, str], Policy] = field(default_factory=dict)

    def with_cost(self, start: str, end: str, cost: int) -> "Design":
        return replace(self, costs=self.costs | {(start, end): cost})

    def with_policy(self, peer: str, prefix: str, policy: Policy) -> "Design":
        return replace(self, policies=self.policies | {(peer, prefix): policy})


def usual() -> Design:
    """As an operator would design it: of each prefix one way out is preferred, each by another
    attribute, and the others stand by."""
    costs = USUAL_COSTS | {(b, a): cost for (a, b), cost in USUAL_COSTS.items()}
    preferred, standby, last = Policy(200, 0, 10), Policy(100, 1, 20), Policy(None, 2, None)
    by_preference = {
        "203.0.113.0/24": ("X1", "X3", "X5"),
        "100.64.0.0/20": ("X5", "X2", "X3"),
        "2001:db8:1::/48": ("X1", "X4", "X2"),
        "2001:db8:2::/48": ("X3", "X5", "X1"),
    }
    policies = {
        (peer, prefix): policy
        for prefix, peers in by_preference.items()
        for peer, policy in zip(peers, (preferred, standby, last), strict=True)
    }
    # One AS at two gateways, which its med tells apart; and two ASes, by the length of the path.
    policies |= {
        ("X1", "198.51.100.0/24"): Policy(200, 0, 10),
        ("X2", "198.51.100.0/24"): Policy(200, 0, 20),
        ("X4", "198.51.100.0/24"): Policy(100, 0, None),
        ("X4", "192.0.2.0/24"): Policy(150, 0, None),
        ("X2", "192.0.2.0/24"): Policy(150, 1, None),
        ("X1", "192.0.2.0/24"): Policy(100, 0, None),
    }
    return Design(costs, policies)


def drawn(seed: int) -> Design:
    """Random weights and attributes; few values, so that ties of every kind happen."""
    rng = random.Random(seed)
    costs = {link: rng.choice((5, 10, 15, 20, 30)) for link in both_ways()}
    policies = {
        (peer.name, prefix): Policy(
            rng.choice((None, 100, 200)), rng.choice((0, 0, 1, 2)), rng.choice((None, 5, 10))
        )
        for prefix in PREFIXES
        for peer in rng.sample(PEERS, 3)
    }
    return Design(costs, policies)


def both_ways() -> list[tuple[str, str]]:
    return [*LINKS, *((b, a) for a, b in LINKS)]


def peer(name: str) -> Peer:
    return next(peer for peer in PEERS if peer.name == name)
