"""Disputes: what the gateways and reflectors of one network can agree on.

Their selections are narrowed down until nothing changes (`Dispute.settle`): a speaker has decided
once its choice is the same whatever the undecided ones do. Where some stay open, the outcomes that
they could agree on are searched, so that a network with none or with several is recognised.
"""

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from gsid_service.records import IntArray
from gsid_service.simulate.ospf import Paths
from gsid_service.simulate.plane import UNKNOWN

SEARCH_LIMIT = 2_000  # settlings tried before a dispute counts as undecided


class Outcome(Enum):
    """How many stable states the routers can settle in for a network."""

    ONE = "one stable outcome"
    NONE = "no stable outcome"
    SEVERAL = "two or more stable outcomes"
    UNDECIDED = "more possible outcomes than can be searched"


@dataclass(frozen=True)
class Sessions:
    """The iBGP sessions whose two ends reach each other."""

    reflectors_of: dict[int, list[int]]  # client: its reflectors
    mesh: dict[int, list[int]]  # reflector: its non-client peers
    reflectors: list[int]

    @cached_property
    def is_full_mesh(self) -> bool:
        others = len(self.reflectors) - 1
        return all(len(self.mesh.get(r, ())) == others for r in self.reflectors)

    @cached_property
    def speakers(self) -> set[int]:
        """Everyone who has a session."""
        return {*self.reflectors, *self.reflectors_of}

    @cached_property
    def clients(self) -> IntArray:
        return np.array(list(self.reflectors_of), dtype=np.int64)

    @cached_property
    def heard(self) -> IntArray:
        """[clients, reflectors]: whom each hears; with fewer reflectors, its first one again."""
        most = max(map(len, self.reflectors_of.values()), default=0)
        return np.array([(rs + rs[:1] * most)[:most] for rs in self.reflectors_of.values()])


@dataclass(frozen=True)
class Views:
    """What speakers compare by, as lists (they are asked one by one), one entry an announcement."""

    gateway: list[int]
    row: list[int]  # of the gateway in `paths`
    rank: list[int]
    tie: list[int]
    asn: list[int]
    med: list[int]
    paths: Paths

    def cost(self, routes: list[int], speakers: list[int]) -> list[list[float]]:
        """For each speaker, the cost to the gateway of each route."""
        rows = [self.row[route] for route in routes]
        costs: list[list[float]] = self.paths.cost[np.ix_(rows, speakers)].T.tolist()
        return costs


def worth_hearing(views: Views, sessions: Sessions, routes: list[int]) -> list[int]:
    """Drop the routes that nobody can select in a stable state.

    Where all reflectors peer with each other, a route of the best rank reaches every speaker that
    has a session: its gateway announces it, or one that beats it, and so does the reflector. Routes
    of gateways without any session concern these gateways alone.
    """
    if not sessions.is_full_mesh:
        return routes
    heard = [r for r in routes if views.gateway[r] in sessions.speakers]
    best = min((views.rank[r] for r in heard), default=0)
    hopeless = {r for r in heard if views.rank[r] > best}
    return [r for r in routes if r not in hopeless]


class Dispute:
    """The gateways and reflectors of one network, and what each may still select.

    Sets of routes are bit masks over `routes`. `options[s]` is what speaker s may select, bit
    `len(routes)` standing for nothing; `chosen[s]` is what it surely selects.
    """

    def __init__(self, views: Views, sessions: Sessions, routes: list[int]) -> None:
        self.routes = routes
        self.nothing = 1 << len(routes)
        # Gateways first: most of them decide at once, and what they decide decides the rest.
        self.own: dict[int, int] = {}
        for bit, route in enumerate(routes):
            gateway = views.gateway[route]
            self.own[gateway] = self.own.get(gateway, 0) | 1 << bit
        for reflector in sessions.reflectors:
            self.own.setdefault(reflector, 0)
        self.rank = [views.rank[route] for route in routes]
        self.worse_med_than = _med_rivals(views, routes)
        self._hear(sessions)
        costs = zip(self.own, views.cost(routes, list(self.own)), strict=True)
        self.order = {speaker: _order(views, routes, speaker, cost) for speaker, cost in costs}
        self.options = dict.fromkeys(self.own, self.nothing * 2 - 1)
        self.chosen = dict.fromkeys(self.own, 0)

    def _hear(self, sessions: Sessions) -> None:
        """For each speaker: its client gateways, its reflectors, its non-client peers."""
        self.clients: dict[int, list[int]] = {speaker: [] for speaker in self.own}
        self.reflectors = {s: sessions.reflectors_of.get(s, []) for s in self.own}
        self.mesh = {s: sessions.mesh.get(s, []) for s in self.own}
        for gateway, reflectors in self.reflectors.items():
            for reflector in reflectors:
                self.clients[reflector].append(gateway)

    def resolve(self) -> Outcome:
        """Settle, and where speakers stay open, look for the states that they could agree on."""
        self.settle()
        if not self.open():
            return Outcome.ONE
        found: list[dict[int, int]] = []
        budget = SEARCH_LIMIT
        pending = [(self.options, self.chosen, frozenset[int]())]
        while pending and len(found) < 2:
            if budget == 0:
                return Outcome.UNDECIDED
            budget -= 1
            options, chosen, assumed = pending.pop()
            self.options, self.chosen = dict(options), dict(chosen)
            self.settle()
            undecided = self.open()
            if undecided:
                pending += self._suppose(undecided[0], assumed)
            elif all(self._decide(s)[1] == self.chosen[s] for s in assumed):
                found.append(self.chosen)
        if len(found) == 1:
            self.chosen = found[0]
            return Outcome.ONE
        return Outcome.SEVERAL if found else Outcome.NONE

    def _suppose(
        self, speaker: int, assumed: frozenset[int]
    ) -> list[tuple[dict[int, int], dict[int, int], frozenset[int]]]:
        """One branch for each thing that the undecided speaker may select."""
        bits = [1 << b for b in range(len(self.routes) + 1) if self.options[speaker] >> b & 1]
        return [
            (self.options | {speaker: bit}, self.chosen | {speaker: bit}, assumed | {speaker})
            for bit in bits
        ]

    def open(self) -> list[int]:
        return [speaker for speaker, chosen in self.chosen.items() if not chosen]

    def settle(self) -> None:
        """Narrow down what each open speaker may select until nothing changes."""
        changed = True
        while changed:
            changed = False
            for speaker in self.open():
                options, chosen = self._decide(speaker)
                if (options, chosen) != (self.options[speaker], self.chosen[speaker]):
                    self.options[speaker], self.chosen[speaker] = options, chosen
                    changed = True

    def _decide(self, speaker: int) -> tuple[int, int]:
        """What the speaker may select, and what it surely does (0 while that is open)."""
        possible, certain = self._heard(speaker)
        options = 0
        for route in self.order[speaker]:
            bit, rivals = 1 << route, self.worse_med_than[route]
            if not possible & bit or rivals & certain:
                continue
            options |= bit
            if certain & bit and not rivals & possible:
                return options, bit if options == bit else 0
        if not certain:
            options |= self.nothing
        return options, options if options == self.nothing else 0

    def _heard(self, speaker: int) -> tuple[int, int]:
        """The routes that may reach the speaker, and those that surely do."""
        return self._reach(speaker, self.options), self._reach(speaker, self.chosen)

    def _reach(self, speaker: int, state: dict[int, int]) -> int:
        """What reaches a speaker if the others select what `state` says."""
        heard = self._first_hand(speaker, state)
        for reflector in self.reflectors[speaker]:
            heard |= state[reflector]
        for peer in self.mesh[speaker]:
            heard |= state[peer] & self._first_hand(peer, state)
        return heard & ~self.nothing

    def _first_hand(self, speaker: int, state: dict[int, int]) -> int:
        """What a speaker has from outside and from its clients, and may tell other reflectors."""
        own = self.own
        known = own[speaker]
        for gateway in self.clients[speaker]:
            known |= state[gateway] & own[gateway]
        return known

    def choices(self) -> list[tuple[int, int]]:
        """(speaker, row of the announcement) for all that select one."""
        return [
            (speaker, self.routes[chosen.bit_length() - 1])
            for speaker, chosen in self.chosen.items()
            if chosen != self.nothing
        ]

    def equal_peers(self) -> list[tuple[int, tuple[int, ...]]]:
        """(gateway, its routes) where a gateway's own routes are equal up to IGP cost."""
        sets = []
        for gateway, chosen in self.chosen.items():
            if chosen & self.own[gateway]:
                best = self.rank[chosen.bit_length() - 1]
                heard = self._heard(gateway)[1]
                equal = tuple(
                    route
                    for bit, route in enumerate(self.routes)
                    if self.own[gateway] >> bit & 1
                    and self.rank[bit] == best
                    and not self.worse_med_than[bit] & heard
                )
                if len(equal) > 1:
                    sets.append((gateway, equal))
        return sets


def _order(views: Views, routes: list[int], speaker: int, cost: list[float]) -> list[int]:
    """The routes (as bits) from the speaker's best to its worst, med within one AS aside."""
    gateway, rank, tie = views.gateway, views.rank, views.tie
    keys = [
        (rank[route], gateway[route] != speaker, cost[bit], tie[route], bit)
        for bit, route in enumerate(routes)
    ]
    return [key[-1] for key in sorted(keys)]


def _med_rivals(views: Views, routes: list[int]) -> list[int]:
    """For each route, the routes that beat it by med alone, being of the same neighbouring AS."""
    groups = defaultdict(list)
    for bit, route in enumerate(routes):
        if views.asn[route] != UNKNOWN:
            groups[views.asn[route], views.rank[route]].append((views.med[route], bit))
    rivals = [0] * len(routes)
    for group in groups.values():
        for med, bit in group:
            rivals[bit] = sum(1 << other for lower, other in group if lower < med)
    return rivals
