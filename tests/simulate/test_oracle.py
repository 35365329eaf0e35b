"""The simulator against the slow oracle: random networks, reflection by hand, and invariances."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from gsid_service.records import Entity, Fact
from gsid_service.simulate.bgp import Outcome
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from tests.simulate import oracle
from tests.simulate.oracle import Domain, Hops, Rules

NETWORKS = 600
SCHEDULES = 6
NOWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Case:
    entities: tuple[Entity, ...]
    facts: tuple[Fact, ...]

    def state(self, always_compare_med: bool = False) -> Forwarding:
        return forward(build(self.entities, self.facts), always_compare_med=always_compare_med)

    def names(self, *kinds: str) -> list[str]:
        return [e.id for e in self.entities if e.kind in kinds]

    @property
    def routers(self) -> list[str]:
        return self.names("router", "route_reflector")


def hops_of(case: Case, state: Forwarding, k: int) -> Hops:
    return {
        router: frozenset(state.hop_names[hop] for hop in state.next_hops(k, r))
        for r, router in enumerate(case.routers)
    }


def outcome_of(points: list[Hops]) -> Outcome:
    return (Outcome.NONE, Outcome.ONE, Outcome.SEVERAL)[min(len(points), 2)]


# Random networks


@dataclass(frozen=True)
class Style:
    """What a network is drawn from; the defaults give a bit of everything."""

    routers: tuple[int, int] = (4, 9)
    reflectors: tuple[int, ...] = (1, 2, 2, 3, 3, 4)
    degrees: tuple[tuple[int, ...], ...] = ((1,), (0, 1, 1, 2))  # reflectors of a router
    gateways: tuple[int, ...] = (1, 2, 4, 9)
    peers: tuple[int, ...] = (1, 2, 3, 4, 5)
    heaviest: tuple[int, ...] = (1, 3, 9)
    extra_links: int = 6
    broken: float = 0.15
    uneven: float = 0.3


MIXED = Style()
# Reflectors whose clients are each other's nearest exits.
DISPUTED = Style((6, 9), (2, 3), ((1,),), (4, 5, 6), (4, 5), (30,), 20, broken=0, uneven=0)
# Gateways with several peers that are clients of several reflectors.
SHARED = Style((4, 6), (2, 3, 4), ((2, 2, 3),), (1, 2), (3, 4, 5), (1, 3), broken=0, uneven=0)
STYLES = (MIXED, DISPUTED, SHARED, DISPUTED)


class Draw:
    """Draws one small network in which ties are frequent."""

    def __init__(self, rng: random.Random, style: Style) -> None:
        self.rng = rng
        self.style = style
        self.routers = [f"r{i}" for i in range(rng.randint(*style.routers))]
        rng.shuffle(self.routers)
        self.reflectors = self.routers[: rng.choice(style.reflectors)]
        self.plain = self.routers[len(self.reflectors) :]
        self.networks = [f"n{i}" for i in range(rng.randint(1, 3))]
        among = self.routers[-rng.choice(style.gateways) :]
        self.gateway = {f"p{i}": rng.choice(among) for i in range(max(style.peers) + 1)}
        ids = rng.sample(range(50), len(self.routers))
        self.router_id = dict(zip(self.routers, ids, strict=True))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def case(self) -> Case:
        facts = [*self.links(), *self.sessions(), *self.peerings()]
        for network in self.networks:
            facts += self.announcements(network)
        self.rng.shuffle(facts)
        return Case(tuple(self.entities()), tuple(facts))

    def entities(self) -> list[Entity]:
        asns = self.rng.choice([(1, 2), (1, 2), (1, 2, None), (1, None), (None,)])
        drawn = [Entity(name, "router") for name in self.plain]
        drawn += [Entity(name, "route_reflector") for name in self.reflectors]
        drawn += [Entity(name, "network") for name in self.networks]
        drawn += [Entity(name, "external_as", self.rng.choice(asns)) for name in self.gateway]
        self.rng.shuffle(drawn)
        return drawn

    def links(self) -> Iterator[Fact]:
        heaviest = self.rng.choice(self.style.heaviest)
        directed = self.rng.choice([0.0, 0.5, 1.0])
        for a, b in self.pairs():
            ways = [(a, b), (b, a)] if self.chance(directed) else [(a, b)]
            for way in ways:
                yield Fact("connected", way, {"ospf_weight": self.rng.randint(1, heaviest)})

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs to link: a tree and some more, or now and then too few to connect all."""
        order = self.rng.sample(self.routers, len(self.routers))
        if self.chance(self.style.broken):
            return self.rng.sample(list(combinations(order, 2)), len(order) - 2)
        tree = {(self.rng.choice(order[:i]), order[i]) for i in range(1, len(order))}
        other = [p for p in combinations(order, 2) if p not in tree]
        more = self.rng.randint(0, self.style.extra_links)
        return sorted(tree) + self.rng.sample(other, min(len(other), more))

    def sessions(self) -> Iterator[Fact]:
        density = self.rng.choice([1.0, 1.0, 0.5])
        for a, b in combinations(self.reflectors, 2):
            if self.chance(density):
                yield Fact("ibgp", (a, b) if self.chance(0.5) else (b, a))
        degrees = self.rng.choice(self.style.degrees)
        for router in self.plain:
            degree = min(self.rng.choice(degrees), len(self.reflectors))
            for reflector in self.rng.sample(self.reflectors, degree):
                yield Fact("ibgp", (router, reflector))

    def peerings(self) -> Iterator[Fact]:
        for peer, router in self.gateway.items():
            if self.chance(0.95):
                yield Fact("ebgp", (router, peer))

    def announcements(self, network: str) -> Iterator[Fact]:
        wide = 1 if self.chance(self.style.uneven) else 0
        reported = self.rng.choice([0.0, 0.7, 1.0])
        for peer in self.rng.sample(list(self.gateway), self.rng.choice(self.style.peers)):
            route = self.attributes(wide)
            if self.chance(reported):
                route["speaker"] = self.router_id[self.gateway[peer]]
            yield Fact("bgp_route", (peer, network), route)

    def attributes(self, wide: int) -> dict[str, int]:
        route = {"as_path_length": 1 + self.rng.randint(0, wide)}
        if self.chance(0.5):
            route["local_pref"] = 100 + 10 * self.rng.randint(-wide, wide)
        if self.chance(0.5):
            route["origin"] = self.rng.randint(0, wide)
        if self.chance(0.8):
            route["med"] = self.rng.randint(0, 2)
        return route


def random_case(seed: int) -> Case:
    return Draw(random.Random(seed), STYLES[seed % len(STYLES)]).case()


def compare(case: Case, always_compare_med: bool, where: str) -> Counter[str]:
    """Hold the simulator's answer for each network against search and against messages."""
    seen: Counter[str] = Counter()
    state = case.state(always_compare_med)
    domain = Domain(case.entities, case.facts)
    for k, network in enumerate(domain.networks):
        rules = Rules(domain, network, always_compare_med)
        points = oracle.fixed_points(rules)
        outcome = Outcome(state.selection.outcome[k])
        hops = hops_of(case, state, k)
        assert outcome is outcome_of(points), f"{where}, {network}: {len(points)} fixed points"
        expected = points[0] if len(points) == 1 else dict.fromkeys(domain.routers, NOWHERE)
        assert hops == expected, f"{where}, {network}"
        seen[outcome.name] += 1
        seen.update(messages(rules, points, f"{where}, {network}"))
    return seen


def messages(rules: Rules, points: list[Hops], where: str) -> Iterator[str]:
    """Whatever messages settle to is a fixed point; yields how each schedule ended."""
    for seed in range(SCHEDULES):
        ended = oracle.exchange(rules, seed)
        assert ended is None or ended in points, f"{where}, schedule {seed}"
        yield f"{outcome_of(points).name} {'moving' if ended is None else 'settled'}"


def survey(always_compare_med: bool) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in range(NETWORKS):
        seed += NETWORKS * always_compare_med
        seen += compare(Draw(random.Random(seed)).case(), always_compare_med, f"network {seed}")
    return seen
