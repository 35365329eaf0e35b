"""The simulator against the slow oracle: random networks, reflection by hand, and invariances."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gsid_service.records import Entity, Fact
from gsid_service.simulate.dispute import Outcome
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from tests.simulate import oracle
from tests.simulate.oracle import Domain, Hops, Rules

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
SHARED = Style((4, 6), (2, 2, 3), ((2, 2, 3),), (1, 2), (3, 4, 5), (1, 3), broken=0, uneven=0)
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


class Survey:
    """Holds the simulator's answers against search and messages, and counts what it saw."""

    def __init__(self, always_compare_med: bool) -> None:
        self.always_compare_med = always_compare_med
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []

    def visit(self, seed: int) -> None:
        case = random_case(seed)
        state = case.state(self.always_compare_med)
        domain = Domain(case.entities, case.facts)
        for k, network in enumerate(domain.networks):
            rules = Rules(domain, network, self.always_compare_med)
            points = oracle.fixed_points(rules)
            here = f"{network} of random network {seed}"
            self.compare(state.selection.outcome[k], hops_of(case, state, k), points, here)
            self.exchange(rules, points, here)

    def compare(self, outcome: Outcome, hops: Hops, points: list[Hops], here: str) -> None:
        expected = points[0] if len(points) == 1 else dict.fromkeys(hops, NOWHERE)
        self.seen[outcome_of(points).name] += 1
        if outcome is not outcome_of(points):
            self.wrong.append(f"{here}: {outcome.name} but {len(points)} fixed points")
        elif hops != expected:
            self.wrong.append(f"{here}: other next hops")

    def exchange(self, rules: Rules, points: list[Hops], here: str) -> None:
        for seed in range(SCHEDULES):
            ended = oracle.exchange(rules, seed)
            how = "moving" if ended is None else "settled"
            self.seen[f"{outcome_of(points).name} {how}"] += 1
            if ended is not None and ended not in points:
                self.wrong.append(f"{here}: schedule {seed} settled elsewhere")


def test_random_networks_agree_when_med_counts_within_one_as() -> None:
    survey = Survey(always_compare_med=False)
    for seed in range(1000):
        survey.visit(seed)
    seen = survey.seen
    assert min(seen["ONE"] / 50, seen["NONE"], seen["SEVERAL"] / 2) > 20, seen
    assert seen["ONE settled"] > 0.99 * SCHEDULES * seen["ONE"], seen
    assert seen["SEVERAL settled"] > 100, seen
    assert not survey.wrong, survey.wrong


def test_random_networks_agree_when_med_is_always_compared() -> None:
    survey = Survey(always_compare_med=True)
    for seed in range(10_000, 10_500):
        survey.visit(seed)
    seen = survey.seen
    assert min(seen["ONE"] / 50, seen["SEVERAL"]) > 10, seen
    assert seen["ONE settled"] > 0.99 * SCHEDULES * seen["ONE"], seen
    assert not survey.wrong, survey.wrong


def test_trying_the_choices_of_reflectors_finds_what_trying_all_choices_finds() -> None:
    tried = 0
    for seed in range(300):
        case = random_case(seed)
        rules = Rules(Domain(case.entities, case.facts), "n0", seed % 3 == 0)
        if oracle.combinations(rules) <= 2000:
            tried += 1
            assert by_router(oracle.fixed_points(rules)) == by_router(
                oracle.fixed_points(rules, everyone=True)
            ), seed
    assert tried > 50


def by_router(points: list[Hops]) -> Counter[frozenset[tuple[str, frozenset[str]]]]:
    return Counter(frozenset(point.items()) for point in points)


# Networks by hand


def lab(routers: str, links: str, ibgp: str, peers: str, **routes: Mapping[str, int]) -> Case:
    """A network in short: `A-B:3` links, `A>RR` is a client, `P@A/64500` peers at A with that ASN.

    Routers called RR... are reflectors. Every peer announces N; one at no router has no session.
    """
    parsed = [re.fullmatch(r"(\w+)@(\w*)(?:/(\d+))?", peer) for peer in peers.split()]
    found = [match.groups() for match in parsed if match]
    entities = [
        Entity(r, "route_reflector" if r[:2] == "RR" else "router") for r in routers.split()
    ]
    entities += [Entity(p, "external_as", int(asn) if asn else None) for p, _, asn in found]
    facts = [Fact("ibgp", tuple(session.split(">"))) for session in ibgp.split()]
    facts += [Fact("ebgp", (gateway, peer)) for peer, gateway, _ in found if gateway]
    facts += [
        Fact("bgp_route", (p, "N"), {"as_path_length": 1} | dict(routes.get(p, {})))
        for p, _, _ in found
    ]
    return Case((*entities, Entity("N", "network")), (*facts, *map(link, links.split())))


def link(text: str) -> Fact:
    ends, weight = text.split(":")
    return Fact("connected", tuple(ends.split("-")), {"ospf_weight": int(weight)})


def settles(case: Case, always_compare_med: bool = False, **hops: str) -> None:
    """Simulator, search and messages all end in these next hops, and nowhere else."""
    expected = {r: frozenset(hops.get(r, "").split()) for r in case.routers}
    state = case.state(always_compare_med)
    rules = Rules(Domain(case.entities, case.facts), "N", always_compare_med)
    assert oracle.fixed_points(rules) == oracle.fixed_points(rules, everyone=True) == [expected]
    assert [oracle.exchange(rules, seed) for seed in range(SCHEDULES)] == [expected] * SCHEDULES
    assert state.selection.outcome == (Outcome.ONE,)
    assert hops_of(case, state, 0) == expected


def stays(case: Case, outcome: Outcome, always_compare_med: bool = False) -> None:
    """Simulator and search both say that the network has no single outcome."""
    state = case.state(always_compare_med)
    rules = Rules(Domain(case.entities, case.facts), "N", always_compare_med)
    assert outcome_of(oracle.fixed_points(rules)) is outcome
    assert outcome_of(oracle.fixed_points(rules, everyone=True)) is outcome
    assert state.selection.outcome == (outcome,)
    assert hops_of(case, state, 0) == dict.fromkeys(case.routers, NOWHERE)


def test_a_clients_route_reaches_the_other_clients() -> None:
    settles(lab("A B RR", "A-RR:1 RR-B:1", "A>RR B>RR", "P@A"), A="P", RR="A", B="RR")


def test_a_router_without_a_session_hears_nothing() -> None:
    settles(lab("A B RR", "A-RR:1 RR-B:1", "A>RR", "P@A"), A="P", RR="A")


def test_a_clients_route_reaches_the_mesh_and_its_clients() -> None:
    case = lab(
        "A B RR1 RR2 RR3",
        "A-RR1:1 RR1-RR2:1 RR2-B:1 RR1-RR3:1",
        "A>RR1 RR1>RR2 RR3>RR1 B>RR2",
        "P@A",
    )
    settles(case, A="P", RR1="A", RR2="RR1", RR3="RR1", B="RR2")


def test_a_non_clients_route_reaches_clients_alone() -> None:
    links = "RR1-RR2:1 RR2-RR3:1 RR2-A:1"
    case = lab("A RR1 RR2 RR3", links, "RR1>RR2 RR2>RR3 A>RR2", "P@RR1")
    settles(case, RR1="P", RR2="RR1", A="RR2")


def test_reflectors_without_clients_are_a_full_mesh() -> None:
    links = "RR1-RR2:1 RR2-RR3:1"
    settles(
        lab("RR1 RR2 RR3", links, "RR1>RR2 RR2>RR3 RR1>RR3", "P@RR1 Q@RR3"),
        RR1="P",
        RR2="RR1",
        RR3="Q",
    )


def test_a_reflector_is_a_gateway_itself() -> None:
    case = lab("A B RR", "A-RR:1 RR-B:1", "A>RR B>RR", "P@A Q@RR", Q={"local_pref": 200})
    settles(case, A="RR", RR="Q", B="RR")


def test_two_reflectors_that_prefer_the_others_client() -> None:
    links = "A-RR2:1 B-RR1:1 RR1-RR2:1"
    stays(lab("A B RR1 RR2", links, "A>RR1 B>RR2 RR1>RR2", "P@A Q@B"), Outcome.SEVERAL)


def test_three_reflectors_that_each_prefer_the_next_ones_client() -> None:
    links = "A-RR3:1 B-RR1:1 C-RR2:1 A-RR1:5 B-RR2:5 C-RR3:5"
    ibgp = "A>RR1 B>RR2 C>RR3 RR1>RR2 RR2>RR3 RR3>RR1"
    stays(lab("A B C RR1 RR2 RR3", links, ibgp, "P@A Q@B S@C"), Outcome.NONE)


def rfc_3345() -> Case:
    return lab(
        "A B C RR1 RR2",
        "A-RR1:5 B-RR1:4 RR1-RR2:1 RR2-C:12",
        "A>RR1 B>RR1 C>RR2 RR1>RR2",
        "P@A/6 Q@B/10 S@C/10",
        P={"med": 1},
        Q={"med": 1},
        S={"med": 0},
    )


def test_med_oscillates_as_in_rfc_3345() -> None:
    stays(rfc_3345(), Outcome.NONE)


def test_no_med_oscillation_where_med_is_always_compared() -> None:
    settles(rfc_3345(), True, A="RR1", B="RR1", RR1="RR2", RR2="C", C="S")


def test_a_gateway_keeps_equal_peers() -> None:
    peers = "P@A/1 Q@A/2 S@A/2 T@A/3"
    case = lab("A RR", "A-RR:1", "A>RR", peers, S={"med": 1}, T={"origin": 1})
    settles(case, A="P Q", RR="A")


def test_a_redundant_client_takes_the_nearer_exit() -> None:
    links = "A-RR1:1 RR1-C:1 C-RR2:2 RR2-B:1"
    case = lab("A B C RR1 RR2", links, "A>RR1 B>RR2 C>RR1 C>RR2", "P@A Q@B")
    settles(case, A="P", B="Q", C="RR1", RR1="A", RR2="B")


def test_a_redundant_client_compares_med_between_its_reflectors() -> None:
    links = "A-RR1:1 RR1-C:1 C-RR2:2 RR2-B:1"
    ibgp = "A>RR1 B>RR2 C>RR1 C>RR2"
    case = lab("A B C RR1 RR2", links, ibgp, "P@A/1 Q@B/1", P={"med": 1})
    settles(case, A="P", B="Q", C="RR2", RR1="A", RR2="B")


def test_a_redundant_gateway_is_heard_once_by_each_reflector() -> None:
    links = "A-RR1:1 A-RR2:1 RR1-B:1 RR2-B:1"
    case = lab("A B RR1 RR2", links, "A>RR1 A>RR2 B>RR1 B>RR2 RR1>RR2", "P@A")
    settles(case, A="P", RR1="A", RR2="A", B="RR1 RR2")


def test_a_route_that_its_gateway_withdrew_does_not_live_on_between_reflectors() -> None:
    case = lab(
        "A RR1 RR2 RR3",
        "A-RR1:1 A-RR2:1 A-RR3:1",
        "A>RR1 A>RR2 A>RR3 RR1>RR2",
        "P@A Q@RR3",
        Q={"local_pref": 200},
    )
    settles(case, A="RR3", RR3="Q")


def test_a_peer_that_its_gateway_does_not_choose_does_not_live_on_between_reflectors() -> None:
    links, ibgp = "A-RR1:1 A-RR2:1", "A>RR1 A>RR2 RR1>RR2"
    case = lab("A RR1 RR2", links, ibgp, "P@A/1 Q@A/2 S@A/1", P={"med": 1})
    settles(case, A="Q S", RR1="A", RR2="A")


def test_a_redundant_gateway_that_changes_its_mind_by_what_it_causes() -> None:
    links, ibgp = "A-RR1:1 A-RR2:1 RR1-RR3:2", "A>RR1 A>RR2 RR1>RR2 RR2>RR3 RR1>RR3"
    case = lab("A RR1 RR2 RR3", links, ibgp, "P@A/1 Q@A/2 S@RR3/1", P={"med": 1})
    stays(case, Outcome.NONE)


def test_a_partition_is_not_crossed() -> None:
    case = lab("A B C RR", "A-RR:1 B-C:1", "A>RR B>RR C>RR", "P@A")
    settles(case, A="P", RR="A")


def test_a_peering_without_a_session_is_not_used() -> None:
    case = lab("A B RR", "A-RR:1 RR-B:1", "A>RR B>RR", "P@A Q@", Q={"local_pref": 200})
    settles(case, A="P", RR="A", B="RR")
    settles(lab("A RR", "A-RR:1", "A>RR", "P@"))


def test_a_weight_given_one_way_counts_both_ways_unless_the_other_is_given() -> None:
    links = "A-B:1 B-RR:1 A-RR:5 RR-A:2"
    settles(lab("A B RR", links, "A>RR B>RR", "P@RR"), A="B", B="RR", RR="P")
    settles(lab("A B RR", links, "A>RR B>RR", "P@A"), A="P", B="A", RR="A B")


@pytest.mark.parametrize(
    ("routes", "via"),
    [
        ({}, "A"),
        ({"P": {"speaker": 9}, "Q": {"speaker": 1}}, "B"),
        ({"P": {"speaker": 9}}, "A"),
        ({"P": {"speaker": 9}, "Q": {"speaker": 1}, "S": {}}, "A"),
        ({"P": {"local_pref": 99}}, "B"),
        ({"P": {"local_pref": 100}}, "A"),
        ({"P": {"as_path_length": 2}}, "B"),
        ({"P": {"origin": 1}}, "B"),
        ({"P": {"origin": 0, "med": 0}}, "A"),
        ({"P": {"med": 7}}, "A"),
    ],
)
def test_the_decision_between_two_exits(routes: Mapping[str, Mapping[str, int]], via: str) -> None:
    peers = "P@A/1 Q@B/2 S@C" if "S" in routes else "P@A/1 Q@B/2"
    worst = {"S": {"local_pref": 1}} if "S" in routes else {}
    links = "A-RR:1 B-RR:1 C-RR:1"
    case = lab("A B C RR", links, "A>RR B>RR C>RR", peers, **{**routes, **worst})
    state = case.state()
    (hop,) = state.next_hops(0, case.routers.index("RR"))
    assert state.hop_names[hop] == via


@pytest.mark.parametrize(
    ("asns", "via"), [(("/1", "/1"), "B"), (("/1", "/2"), "A"), (("", ""), "A")]
)
def test_med_counts_between_routes_of_one_known_as(asns: tuple[str, str], via: str) -> None:
    peers = "P@A{} Q@B{}".format(*asns)
    case = lab("A B C RR", "A-RR:1 B-RR:2 C-RR:1", "A>RR B>RR C>RR", peers, P={"med": 1})
    settles(case, A="RR" if via == "B" else "P", B="Q", C="RR", RR=via)
    settles(case, True, A="RR", B="Q", C="RR", RR="B")


# Invariances

cases = st.builds(random_case, st.integers(0, 10**9))
invariance = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[*HealthCheck],
)


def answers(case: Case, always_compare_med: bool) -> list[tuple[Outcome, Hops]]:
    state = case.state(always_compare_med)
    outcomes = enumerate(state.selection.outcome)
    return [(outcome, hops_of(case, state, k)) for k, outcome in outcomes]


@invariance
@given(cases, st.booleans(), st.randoms(use_true_random=False))
def test_renaming_renames_the_answer(case: Case, med: bool, rng: random.Random) -> None:
    ids = [e.id for e in case.entities]
    name = dict(zip(ids, rng.sample([f"x{i}" for i in range(len(ids))], len(ids)), strict=True))
    entities = tuple(e._replace(id=name[e.id]) for e in case.entities)
    facts = tuple(f._replace(args=tuple(name[a] for a in f.args)) for f in case.facts)
    expected = [
        (outcome, {name[r]: frozenset(name[h] for h in hops) for r, hops in answer.items()})
        for outcome, answer in answers(case, med)
    ]
    assert answers(Case(entities, facts), med) == expected


@invariance
@given(cases, st.booleans(), st.integers(2, 2000))
def test_scaling_all_weights_changes_nothing(case: Case, med: bool, factor: int) -> None:
    scaled = tuple(scale(f, factor) if f.predicate == "connected" else f for f in case.facts)
    assert answers(Case(case.entities, scaled), med) == answers(case, med)


def scale(fact: Fact, factor: int) -> Fact:
    return fact._replace(params={"ospf_weight": fact.params["ospf_weight"] * factor})


@invariance
@given(cases, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_facts_does_not_matter(case: Case, med: bool, rng: random.Random) -> None:
    shuffled = tuple(rng.sample(case.facts, len(case.facts)))
    assert answers(Case(case.entities, shuffled), med) == answers(case, med)


@invariance
@given(cases, st.booleans())
def test_the_next_hop_is_the_first_of_the_next_hops(case: Case, med: bool) -> None:
    state = case.state(med)
    peers = case.names("external_as")
    for k in range(len(state.selection.outcome)):
        for r in range(len(case.routers)):
            hops = state.next_hops(k, r)
            names = [state.hop_names[hop] for hop in hops]
            first = min(hops, key=lambda h: place(state.hop_names[h], peers, h), default=-1)
            assert state.next_hop(k, r) == state.hops([k])[0, r] == first, (case.routers[r], names)


def place(name: str, peers: list[str], number: int) -> int:
    """Where a hop stands among its like: peers in entity order, routers by number."""
    return peers.index(name) if name in peers else number
