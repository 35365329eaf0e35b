"""A slow second reading of the routing contract: relaxation, real messages, exhaustive search."""

import math
import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from gsid_service.records import Entity, Fact

BUDGET = 500

Hops = dict[str, frozenset[str]]
Pair = tuple[str, str]


class Announcement(NamedTuple):
    """What one peer announces of one network, and the gateway that hears it."""

    peer: str
    gateway: str
    preference: tuple[int, int, int]
    med: int
    asn: int | None
    identity: tuple[int, int]


class Copy(NamedTuple):
    """An announcement as it lies in a speaker's Adj-RIB-In; no sender means learned by eBGP."""

    route: Announcement
    sender: str | None = None
    originator: str | None = None
    clusters: tuple[str, ...] = ()


Chosen = dict[str, Copy | None]
Heard = Mapping[str, Copy]


class Domain:
    """The AS as entities and facts describe it, by name."""

    def __init__(self, entities: Iterable[Entity], facts: Iterable[Fact]) -> None:
        self.entities = tuple(entities)
        self.facts = tuple(facts)
        self.position = {e.id: place for place, e in enumerate(self.entities)}
        self.asn = {e.id: e.asn for e in self.entities}
        self.networks = self._named("network")
        self.reflectors = self._named("route_reflector")
        self.routers = self._named("router", "route_reflector")
        self.gateway = {peer: router for router, peer in self._pairs("ebgp")}

    def _named(self, *kinds: str) -> tuple[str, ...]:
        return tuple(e.id for e in self.entities if e.kind in kinds)

    def _pairs(self, predicate: str) -> list[Pair]:
        return [(f.args[0], f.args[1]) for f in self.facts if f.predicate == predicate]

    @cached_property
    def weights(self) -> dict[Pair, int]:
        links = [f for f in self.facts if f.predicate == "connected"]
        given = {(f.args[0], f.args[1]): f.params["ospf_weight"] for f in links}
        return {(b, a): weight for (a, b), weight in given.items()} | given

    @cached_property
    def cost(self) -> dict[Pair, float]:
        """The cost from each router to each other, relaxed until nothing gets shorter."""
        cost = {(a, b): 0 if a == b else math.inf for a in self.routers for b in self.routers}
        while self._relax(cost):
            pass
        return cost

    def _relax(self, cost: dict[Pair, float]) -> bool:
        before = dict(cost)
        for (a, b), weight in self.weights.items():
            for target in self.routers:
                cost[a, target] = min(cost[a, target], weight + cost[b, target])
        return cost != before

    def first_hops(self, router: str, target: str) -> frozenset[str]:
        total = self.cost[router, target]
        links = ((b, weight) for (a, b), weight in self.weights.items() if a == router)
        return frozenset(b for b, weight in links if weight + self.cost[b, target] == total)

    @cached_property
    def clients(self) -> dict[str, frozenset[str]]:
        sessions = self._pairs("ibgp")
        return {
            reflector: frozenset(a for a, b in sessions if b == reflector) - {*self.reflectors}
            for reflector in self.reflectors
        }

    @cached_property
    def neighbours(self) -> dict[str, tuple[str, ...]]:
        """The iBGP sessions that are up: both ends reach each other."""
        sessions = {pair for a, b in self._pairs("ibgp") for pair in ((a, b), (b, a))}
        up = {(a, b) for a, b in sessions if self.cost[a, b] + self.cost[b, a] < math.inf}
        return {r: tuple(sorted(b for a, b in up if a == r)) for r in self.routers}

    def announcements(self, network: str) -> tuple[Announcement, ...]:
        facts = [
            f
            for f in self.facts
            if f.predicate == "bgp_route" and f.args[1] == network and f.args[0] in self.gateway
        ]
        reported = all("speaker" in f.params for f in facts)
        return tuple(self._announcement(f, reported) for f in facts)

    def _announcement(self, fact: Fact, reported: bool) -> Announcement:
        peer, values = fact.args[0], fact.params
        gateway = self.gateway[peer]
        speaker = values["speaker"] if reported else self.position[gateway]
        return Announcement(
            peer,
            gateway,
            (-values.get("local_pref", 100), values["as_path_length"], values.get("origin", 0)),
            values.get("med", 0),
            self.asn[peer],
            (speaker, self.position[peer]),
        )


@dataclass(frozen=True)
class Rules:
    """How the announcements of one network are chosen and passed on."""

    domain: Domain
    network: str
    always_compare_med: bool = False

    @cached_property
    def routes(self) -> tuple[Announcement, ...]:
        return self.domain.announcements(self.network)

    def comparable(self, one: Announcement, other: Announcement) -> bool:
        return self.always_compare_med or (one.asn is not None and one.asn == other.asn)

    def survivors(self, heard: Heard) -> list[Copy]:
        """The copies that are equal up to and including med and eBGP over iBGP."""
        top = min((c.route.preference for c in heard.values()), default=None)
        tied = [c for c in heard.values() if c.route.preference == top]
        left = [c for c in tied if not any(self._better_med(o.route, c.route) for o in tied)]
        return [c for c in left if c.sender is None] or left

    def _better_med(self, one: Announcement, other: Announcement) -> bool:
        return self.comparable(one, other) and one.med < other.med

    def choose(self, router: str, heard: Heard) -> Copy | None:
        cost, position = self.domain.cost, self.domain.position

        def rank(copy: Copy) -> tuple[float, tuple[int, int], int, int]:
            sender = -1 if copy.sender is None else position[copy.sender]
            route = copy.route
            return cost[router, route.gateway], route.identity, len(copy.clusters), sender

        return min(self.survivors(heard), key=rank, default=None)

    def export(self, router: str, copy: Copy | None, neighbour: str) -> Copy | None:
        """What a speaker tells an iBGP neighbour when this copy is its best."""
        if copy is None:
            return None
        if copy.sender is None:
            return Copy(copy.route, router)
        clients = self.domain.clients.get(router, frozenset())
        if copy.sender not in clients and neighbour not in clients:
            return None
        originator = copy.originator or copy.sender
        return Copy(copy.route, router, originator, (router, *copy.clusters))

    def accepts(self, router: str, copy: Copy) -> bool:
        return router != copy.originator and router not in copy.clusters

    def hops(self, router: str, best: Copy | None, heard: Heard) -> frozenset[str]:
        if best is None:
            return frozenset()
        if best.sender is None:
            return frozenset(c.route.peer for c in self.survivors(heard))
        return self.domain.first_hops(router, best.route.gateway)


class Message(NamedTuple):
    """An update, or a withdrawal where there is no copy."""

    sender: str
    receiver: str
    copy: Copy | None


class Speaker:
    """A router's BGP process: what it heard, and what it last told each neighbour."""

    def __init__(self, name: str, rules: Rules) -> None:
        self.name = name
        self.rules = rules
        self.heard: dict[str, Copy] = {}
        self.told: dict[str, Copy | None] = {}

    @property
    def best(self) -> Copy | None:
        return self.rules.choose(self.name, self.heard)

    def receive(self, message: Message) -> Iterator[Message]:
        if message.copy is None or not self.rules.accepts(self.name, message.copy):
            self.heard.pop(message.sender, None)
        else:
            self.heard[message.sender] = message.copy
        return self._updates()

    def _updates(self) -> Iterator[Message]:
        best = self.best
        for neighbour in self.rules.domain.neighbours[self.name]:
            copy = self.rules.export(self.name, best, neighbour)
            if copy != self.told.get(neighbour):
                self.told[neighbour] = copy
                yield Message(self.name, neighbour, copy)


class Wire:
    """Messages in flight: in order within a session, in random order between sessions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.queues: dict[Pair, deque[Message]] = {}

    def send(self, message: Message) -> None:
        self.queues.setdefault((message.sender, message.receiver), deque()).append(message)

    def deliver(self) -> Message:
        session = self.rng.choice(list(self.queues))
        queue = self.queues[session]
        message = queue.popleft()
        if not queue:
            del self.queues[session]
        return message


def exchange(rules: Rules, seed: int, budget: int = BUDGET) -> Hops | None:
    """The next hops after one random schedule of messages; None where it did not settle."""
    speakers = {r: Speaker(r, rules) for r in rules.domain.routers}
    wire = Wire(random.Random(seed))
    for route in rules.routes:
        wire.send(Message(route.peer, route.gateway, Copy(route)))
    for _ in range(budget):
        if not wire.queues:
            return {r: rules.hops(r, s.best, s.heard) for r, s in speakers.items()}
        message = wire.deliver()
        for answer in speakers[message.receiver].receive(message):
            wire.send(answer)
    return None


def fixed_points(rules: Rules, everyone: bool = False) -> list[Hops]:
    """The next hops of every stable choice, by trying all choices that reflectors could make.

    Who is no reflector hears reflectors only, so its choice follows from theirs; with `everyone`
    all choices of all routers are tried instead.
    """
    domain = rules.domain
    tried = domain.routers if everyone else domain.reflectors
    options = possible(rules)
    points: dict[tuple[Announcement | None, ...], Hops] = {}
    for guess in product(*(options[r] for r in tried)):
        chosen = completed(rules, dict(zip(tried, guess, strict=True)))
        if chosen is not None:
            key = tuple(c and c.route for c in (chosen[r] for r in domain.routers))
            points[key] = settled(rules, chosen)
    return list(points.values())


def possible(rules: Rules) -> dict[str, list[Copy | None]]:
    """Every copy that each router could come to choose, whatever the others choose."""
    options: dict[str, list[Copy | None]] = {r: [None] for r in rules.domain.routers}
    todo = [(route.gateway, Copy(route)) for route in rules.routes]
    while todo:
        router, copy = todo.pop()
        if copy not in options[router] and rules.accepts(router, copy):
            options[router].append(copy)
            todo += [(n, told) for n, told in exports(rules, router, copy) if told is not None]
    return options


def exports(rules: Rules, router: str, copy: Copy) -> list[tuple[str, Copy | None]]:
    return [(n, rules.export(router, copy, n)) for n in rules.domain.neighbours[router]]


def combinations(rules: Rules) -> int:
    """How many guesses `fixed_points` with `everyone` would try."""
    return math.prod(len(choices) for choices in possible(rules).values())


def heard_by(rules: Rules, router: str, chosen: Chosen) -> Heard:
    heard = {r.peer: Copy(r) for r in rules.routes if r.gateway == router}
    for neighbour in rules.domain.neighbours[router]:
        copy = rules.export(neighbour, chosen[neighbour], router)
        if copy is not None and rules.accepts(router, copy):
            heard[neighbour] = copy
    return heard


def completed(rules: Rules, guess: Chosen) -> Chosen | None:
    """The guess with the choices that follow from it, or None where it contradicts itself."""
    chosen = dict(guess)
    for router in rules.domain.routers:
        if router not in guess:
            chosen[router] = rules.choose(router, heard_by(rules, router, chosen))
    for router, copy in guess.items():
        if rules.choose(router, heard_by(rules, router, chosen)) != copy:
            return None
    return chosen


def settled(rules: Rules, chosen: Chosen) -> Hops:
    return {r: rules.hops(r, c, heard_by(rules, r, chosen)) for r, c in chosen.items()}
