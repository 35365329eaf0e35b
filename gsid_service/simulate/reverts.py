"""Reverts: what putting approved values back would do to the intents and the traffic.

A wrong value that breaks intents is recognised by this: with the approved value in its place they
hold again. A change that was meant repairs nothing, and its revert may break what it was made for.
Where intents speak of the traffic that a revert would move, and none turns, that speaks for the
value; where none does, it says nothing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from gsid_service.records import Fact, FactKey, Revert
from gsid_service.schema import SCHEMA
from gsid_service.simulate import intents
from gsid_service.simulate.faults import slots
from gsid_service.simulate.forwarding import Forwarding, moved
from gsid_service.simulate.revise import Revised, Rows

AT_MOST = 64  # changed values, which bounds the work
LARGEST_SHARE = 0.3  # of all values; where more changed, each alone says little

Slot = tuple[FactKey, str]
Value = tuple[FactKey, str, int]


class Trial(NamedTuple):
    """Values put in place of those of a state: where that leads, and which intents turn."""

    revised: Revised
    moves: tuple[tuple[int, int], ...]  # network and router whose next hops change
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
        self.state, self.stated, self.wanted = state, len(stated), (*stated, *derived)
        self.held = [intents.satisfied(intent, state) for intent in self.wanted]
        self._tried: dict[Value, Trial | None] = {}
        self._rows = Rows.of(state, facts)
        self._about: dict[int, list[int]] = defaultdict(list)  # network: places of its intents
        index = state.plane.network_index
        for place, intent in enumerate(self.wanted):
            for network in intents.traffic(intent)[1]:
                if network in index:
                    self._about[index[network]].append(place)

    def copy(self) -> "Bench":
        """Another bench in the same state."""
        other = copy(self)
        other.held, other._tried = self.held.copy(), self._tried.copy()
        return other

    def attempt(self, value: Value) -> Trial | None:
        """What a value would do; None where forwarding does not depend on it."""
        if value not in self._tried:
            self._tried[value] = self.attempt_all([value])
        return self._tried[value]

    def attempt_all(self, values: Iterable[Value]) -> Trial | None:
        """What the values would do together; None where forwarding does not depend on one."""
        revised = Revised(self.state, [])
        for key, parameter, value in values:
            found = self._rows.revise(revised.state, key, parameter, value)
            if found is None:
                return None
            revised = Revised(found.state, sorted({*revised.networks, *found.networks}))
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
        return Trial(revised, tuple(moves), tuple(asked), tuple(repairs), tuple(breaks))

    def keep(self, trial: Trial) -> None:
        self.state, self._tried = trial.revised.state, {}
        for place in self.about(trial.revised.networks):
            self.held[place] = intents.satisfied(self.wanted[place], self.state)

    def about(self, networks: Iterable[int]) -> list[int]:
        """The places of the intents that speak of traffic to any of the networks."""
        return sorted({place for network in networks for place in self._about.get(network, ())})

    def _asked(self, moves: Iterable[tuple[int, int]]) -> list[int]:
        """The intents about traffic that passes a router where it would move; no other turns."""
        moved_at: dict[int, set[int]] = defaultdict(set)
        for network, router in moves:
            moved_at[network].add(router)
        return [place for place in self.about(moved_at) if self._passes(place, moved_at)]

    def _passes(self, place: int, moved_at: Mapping[int, set[int]]) -> bool:
        source, networks = intents.traffic(self.wanted[place])
        router, index = self.state.plane.router_index.get(source), self.state.plane.network_index
        return router is not None and any(
            not moved_at[k].isdisjoint(self.state.reached(k, router))
            for k in map(index.get, networks)
            if k is not None and k in moved_at
        )


def reverts(
    bench: Bench, facts: Sequence[Fact], baseline: Iterable[Fact], at_most: int = AT_MOST
) -> dict[Slot, Revert]:
    """For each value that changed since the baseline, if they are not too many."""
    different = list(changed(facts, baseline))
    values = sum(map(len, slots(facts).values()))
    if len(different) > min(at_most, LARGEST_SHARE * values):
        return {}
    found: dict[Slot, Revert] = {}
    for key, parameter, value in different:
        trial = bench.attempt((key, parameter, value))
        if trial is not None:
            found[key, parameter] = Revert(
                repairs=sum(place < bench.stated for place in trial.repairs),
                breaks=sum(place < bench.stated for place in trial.breaks),
                moves=len(trial.moves),
                asked=sum(place < bench.stated for place in trial.asked),
            )
    return found


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
