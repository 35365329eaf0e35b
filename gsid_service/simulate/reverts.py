"""Reverts and adoptions: what a changed value does to the intents and the traffic, told apart from
all others that changed.

A wrong value that breaks intents is recognised by its revert: with the approved value in its place
they hold again. A change that was meant repairs nothing, and its revert may break what it was made
for. Where intents speak of the traffic that a revert would move, and none turns, that speaks for
the value; where none does, it says nothing.

An adoption is the same the other way round: the observed value alone, put into the approved
network. Where much is wrong in what is observed, a single revert says little, but the approved
network still does what is wanted: there a wrong value breaks intents, and the right one in place of
a reference that is itself wrong repairs them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from gsid_service.records import Effect, Fact, FactKey, IntArray
from gsid_service.schema import SCHEMA
from gsid_service.simulate import intents
from gsid_service.simulate.faults import slots
from gsid_service.simulate.forwarding import Forwarding, moved
from gsid_service.simulate.plane import Plane
from gsid_service.simulate.revise import Revised, Rows, Value

AT_MOST = 64  # changed values, which bounds the work
STATES_BYTES = 256 << 20  # of states that were tried and are kept
LARGEST_SHARE = 0.3  # of all values; where more changed, each revert alone says little
WORK = 500_000  # pairs of a router and a network, over all adoptions; AT_MOST may always be tried

Slot = tuple[FactKey, str]


class Trial(NamedTuple):
    """Values put in place of those of a state: what that touches, and which intents turn."""

    values: frozenset[Value]
    networks: list[int]  # for which forwarding was worked out anew
    moves: int  # pairs of network and router whose next hops change
    asked: tuple[int, ...]  # intents about that traffic, as places in the bench's list
    repairs: tuple[int, ...]
    breaks: tuple[int, ...]


class Bench:
    """Tries values upon a forwarding state, and lets those stand that are kept.

    Of the intents the stated ones come first, then the derived ones.
    """

    def __init__(
        self,
        state: Forwarding,
        facts: Iterable[Fact],
        stated: Sequence[Fact] = (),
        derived: Sequence[Fact] = (),
    ) -> None:
        self.state = state
        self._tried: dict[frozenset[Value], Trial | None] = {}
        self._states: dict[frozenset[Value], Forwarding] = {}  # of these, as many as there is room
        self._rows = Rows.of(state, facts)
        self._ask(stated, derived)

    def _ask(self, stated: Sequence[Fact], derived: Sequence[Fact]) -> None:
        self.stated, self.wanted = len(stated), (*stated, *derived)
        self.held = [intents.satisfied(intent, self.state) for intent in self.wanted]
        self._traffic = [_by_index(intent, self.state.plane) for intent in self.wanted]
        self._about: dict[int, list[int]] = defaultdict(list)  # network: places of its intents
        for place, (_, networks) in enumerate(self._traffic):
            for network in networks:
                self._about[network].append(place)

    def after(self, values: Iterable[Value]) -> "Bench":
        """A bench in the state with other values, as far as forwarding depends on them."""
        other = self.copy()
        values = self._rows.known(values)
        trial = other._rows.revise(self.state, values) if values else None
        if trial is not None:
            other._stand(*trial)
        return other

    def about_others(self, stated: Sequence[Fact], derived: Sequence[Fact]) -> "Bench":
        """A bench in the same state, with other intents."""
        other = self.copy()
        other.forget()
        other._ask(stated, derived)
        return other

    def copy(self) -> "Bench":
        """Another bench in the same state."""
        other = copy(self)
        other.held = self.held.copy()
        other._tried, other._states = self._tried.copy(), self._states.copy()
        return other

    def forget(self) -> None:
        """Make room: what was tried is tried again where it is asked for."""
        self._tried, self._states = {}, {}

    def attempt(self, *values: Value) -> Trial | None:
        """What values would do together; None where forwarding does not depend on one of them."""
        together = frozenset(values)
        if together not in self._tried:
            revised = self._rows.revise(self.state, together)
            self._tried[together] = None if revised is None else self._compare(together, revised)
        return self._tried[together]

    def _compare(self, values: frozenset[Value], revised: Revised) -> Trial:
        self._remember(values, revised.state)
        moves = moved(self.state, revised.state)
        asked = self._asked(moves)
        unsettled = [k for k in revised.networks if not revised.state.is_stable(k)]
        repairs, breaks = [], []
        for place in sorted({*asked, *self.about(unsettled)}):
            holds = intents.satisfied(self.wanted[place], revised.state)
            if self.held[place] is False and holds is True:
                repairs.append(place)
            elif self.held[place] is True and holds is False:
                breaks.append(place)
        turning = tuple(repairs), tuple(breaks)
        return Trial(values, revised.networks, len(moves), tuple(asked), *turning)

    def _remember(self, values: frozenset[Value], state: Forwarding) -> None:
        """As many states as there is room for; the others are worked out again."""
        self._states[values] = state
        while len(self._states) > max(1, STATES_BYTES // state.size):
            del self._states[next(iter(self._states))]

    def state_of(self, trial: Trial) -> Forwarding:
        """Where values lead that were tried upon the present state."""
        if trial.values not in self._states:
            revised = self._rows.revise(self.state, trial.values)
            if revised is None:
                raise LookupError("values that were not tried upon this state")
            self._remember(trial.values, revised.state)
        return self._states[trial.values]

    def keep(self, trial: Trial) -> None:
        self._stand(self.state_of(trial), trial.networks)

    def _stand(self, state: Forwarding, networks: Iterable[int]) -> None:
        """Another state, which differs from the last one in the traffic to some networks."""
        self.state = state
        self.forget()
        for place in self.about(networks):
            self.held[place] = intents.satisfied(self.wanted[place], state)

    def about(self, networks: Iterable[int]) -> list[int]:
        """The places of the intents that speak of traffic to any of the networks."""
        return sorted({place for network in networks for place in self._about.get(network, ())})

    def _asked(self, moves: IntArray) -> list[int]:
        """The intents about traffic that passes a router where it would move; no other turns."""
        networks, first = np.unique(moves[:, 0], return_index=True)
        routers = np.split(moves[:, 1], first[1:])
        moved_at = {
            network: set(at.tolist())
            for network, at in zip(networks.tolist(), routers, strict=False)
            if network in self._about
        }
        return [place for place in self.about(moved_at) if self._passes(place, moved_at)]

    def _passes(self, place: int, moved_at: Mapping[int, set[int]]) -> bool:
        router, networks = self._traffic[place]
        return router is not None and any(
            not moved_at[k].isdisjoint(self.state.reached(k, router))
            for k in networks
            if k in moved_at
        )


def _by_index(intent: Fact, plane: Plane) -> tuple[int | None, list[int]]:
    """The router whose traffic an intent speaks of, and to which networks, as far as they exist."""
    source, networks = intents.traffic(intent)
    known = [plane.network_index[n] for n in networks if n in plane.network_index]
    return plane.router_index.get(source), known


def reverts(
    bench: Bench, facts: Sequence[Fact], baseline: Iterable[Fact], at_most: int = AT_MOST
) -> dict[Slot, Effect]:
    """For each value that changed since the baseline, if they are not too many."""
    values = sum(map(len, slots(facts).values()))
    return try_reverts(bench, list(changed(facts, baseline)), values, at_most)


def try_reverts(
    bench: Bench, different: Sequence[Value], values: int, at_most: int = AT_MOST
) -> dict[Slot, Effect]:
    """The same, where it is known which values changed, and how many there are."""
    return {} if len(different) > min(at_most, LARGEST_SHARE * values) else _try(bench, different)


def try_adoptions(bench: Bench, different: Sequence[Value]) -> dict[Slot, Effect]:
    """For each of the observed values, upon the approved state, if they are not too many."""
    plane = bench.state.plane
    pairs = len(plane.routers) * len(plane.networks)
    too_many = len(different) > AT_MOST and len(different) * pairs > WORK
    return {} if too_many else _try(bench, different)


def _try(bench: Bench, values: Iterable[Value]) -> dict[Slot, Effect]:
    """What each value alone would do to the stated intents."""
    trials = {(key, p): bench.attempt((key, p, value)) for key, p, value in values}
    turns = {slot: _turned(trial, bench.stated) for slot, trial in trials.items() if trial}
    repairing: dict[int, list[Slot]] = defaultdict(list)
    for slot, turn in turns.items():
        for place in turn.repairs:
            repairing[place].append(slot)
    found: dict[Slot, Effect] = {}
    for slot, turn in turns.items():
        rivals = {other for place in turn.repairs for other in repairing[place]} - {slot}
        ahead = sum(turns[other].gain >= turn.gain for other in rivals)
        sizes = len(turn.repairs), turn.breaks, turn.moves, turn.asked, len(rivals), ahead
        found[slot] = Effect(*sizes)
    return found


class _Turned(NamedTuple):
    """Of a trial, what concerns the stated intents."""

    repairs: tuple[int, ...]
    breaks: int
    moves: int
    asked: int

    @property
    def gain(self) -> int:
        return len(self.repairs) - self.breaks


def _turned(trial: Trial, stated: int) -> _Turned:
    repairs, breaks, asked = (
        tuple(place for place in places if place < stated)
        for places in (trial.repairs, trial.breaks, trial.asked)
    )
    return _Turned(repairs, len(breaks), trial.moves, len(asked))


def changed(facts: Iterable[Fact], baseline: Iterable[Fact]) -> Iterator[Value]:
    """Every monitored value that differs from the baseline's, with the baseline's."""
    approved = {fact.key: fact.params for fact in baseline}
    for fact in facts:
        before = approved.get(fact.key)
        if before is None or before == fact.params:
            continue
        for parameter in SCHEMA.fact[fact.predicate].parameters:
            now, then = (p.get(parameter.name, parameter.default) for p in (fact.params, before))
            if parameter.monitored and then is not None and now != then:
                yield fact.key, parameter.name, then
