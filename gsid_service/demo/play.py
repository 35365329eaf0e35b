"""What happens to the network: from its first state and a seed to a script of acts, without end.

Each round has a mistake that does harm, its repair, and a change that was meant: costs re-tuned
without a word, or two values exchanged as announced. What each of them does is simulated before.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import chain, combinations, count
from types import MappingProxyType
from typing import NamedTuple

from gsid_service.alert.sentence import place
from gsid_service.records import Fact, FactKey, Snapshot
from gsid_service.schema import AS_PATH_LENGTH, LOCAL_PREF, MED, OSPF_WEIGHT, Parameter
from gsid_service.simulate import intents
from gsid_service.simulate.chance import between, pick
from gsid_service.simulate.faults import with_values
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.intents import Amounts
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, Trial

WANTED = Amounts(fwd_per_network=(6, 8), reachable_per_network=(15, 20), isolation=(10, 30))
DERIVED_AT_MOST = 2000
BROKEN_AT_LEAST = 6  # stated intents, by a mistake that is worth showing
RETUNED_LINKS, RETUNED_BY, LEAST_COST = (4, 6), (10, 20, 30), 10
TRIES = 300  # of re-tuned costs, before there is nothing to re-tune
FIRST_TICKET = 1042

Slot = tuple[FactKey, str]
Values = Mapping[Slot, int]
Candidates = Callable[[Snapshot], Iterator[Values]]
Ends = tuple[int | str, ...]  # of a fact: routers, networks, and of a peering its AS
NOTHING: Values = MappingProxyType({})


class Kind(Enum):
    RETUNED = "re-tuned"
    ANNOUNCED = "announced"
    OVER = "over"  # the window of what was announced
    MISTAKE = "mistake"
    REPAIRED = "repaired"
    APPROVED = "approved"


class Act(NamedTuple):
    """Something that happens, so many seconds after the beginning."""

    at: float
    kind: Kind
    told: str
    values: Values = NOTHING  # that are configured with it
    ticket: str = ""  # of what is announced, with when its window ends
    until: float = 0
    wanted: tuple[Fact, ...] = ()  # and the intents that hold after it


def sampled(whole: Snapshot, seed: int) -> tuple[Fact, ...]:
    """Intents that hold in a network, for its operator to state."""
    return intents.sample(_forwarding(whole), WANTED, random.Random(f"gsid demo {seed}"))


def configured(whole: Snapshot, values: Values) -> Snapshot:
    return replace(whole, facts=with_values(whole.facts, dict(values)))


class NothingToShow(ValueError):
    """No mistake would do enough harm in this network."""


class Script:
    """Makes up the acts one after another, each upon the network as the last one left it."""

    def __init__(self, whole: Snapshot, wanted: tuple[Fact, ...], seed: int) -> None:
        self.wanted, self.rng = wanted, random.Random(f"gsid demo script {seed}")
        self.scene = Scene(whole, wanted)
        self.slips = list(SLIPS)
        self.made: set[Slot] = set()
        self.tickets = count(FIRST_TICKET)

    def acts(self, mistake_after: float, every: float) -> Iterator[Act]:
        """The first mistake comes after some seconds, and from then on one every so many."""
        yield from self._retuned(mistake_after / 2, mistake_after * 3 / 4)
        for number in count():
            at = mistake_after + number * every
            yield from self._mistaken(at, at + 0.4 * every)
            meant = self._retuned if number % 2 else self._announced
            yield from meant(at + 0.6 * every, at + 0.8 * every)

    def _mistaken(self, at: float, until: float) -> Iterator[Act]:
        name, wrong = self._mistake()
        right = {slot: self.scene.value(slot) for slot in wrong}
        self.made |= wrong.keys()
        yield Act(at, Kind.MISTAKE, f"{name}: {_told(right, wrong)}", wrong)
        yield Act(until, Kind.REPAIRED, f"repaired: {_told(wrong, right)}", right)

    def _mistake(self) -> tuple[str, Values]:
        """Of the kind whose turn it is, or of the first after it that would do harm."""
        for fresh in (True, False):
            for name, candidates in list(self.slips):
                self.slips.append(self.slips.pop(0))
                found = [v for v in candidates(self.scene.whole) if self._is_new(v) or not fresh]
                self.rng.shuffle(found)
                wrong = self.scene.first(found, self.scene.is_harmful)
                if wrong is not None:
                    return name, wrong
        raise NothingToShow("no mistake in this network would break enough; try another topology")

    def _is_new(self, values: Values) -> bool:
        return self.made.isdisjoint(values)

    def _retuned(self, at: float, until: float) -> Iterator[Act]:
        """Costs that move traffic and break nothing; told to nobody, and approved later."""
        drawn = (_retune(self.scene.facts, self.rng) for _ in range(TRIES))
        values = self.scene.first(drawn, self.scene.is_harmless)
        if values is not None:
            yield self._meant(at, Kind.RETUNED, values)
            yield Act(until, Kind.APPROVED, "approved: the network as it is")

    def _announced(self, at: float, until: float) -> Iterator[Act]:
        """Primary and backup change places; what is wanted of them follows."""
        pairs = list(chain.from_iterable(swap(self.scene.whole) for swap in EXCHANGES))
        self.rng.shuffle(pairs)
        values = self.scene.first(pairs, self.scene.is_moving)
        if values is not None:
            act = self._meant(at, Kind.ANNOUNCED, values)
            self.made |= values.keys()
            state = self.scene.bench.state
            kept = tuple(i for i in self.wanted if intents.satisfied(i, state))
            self.scene = replace(self.scene, wanted=kept)
            ticket = f"CHG-{next(self.tickets)}"
            told = f"{act.told}, as {ticket} says"
            yield act._replace(told=told, ticket=ticket, until=until, wanted=kept)
            yield Act(until, Kind.OVER, f"the window of {ticket} is over", ticket=ticket)

    def _meant(self, at: float, kind: Kind, values: Values) -> Act:
        before = {slot: self.scene.value(slot) for slot in values}
        self.scene = self.scene.after(values)
        return Act(at, kind, f"{kind.value}: {_told(before, values)}", values)


@dataclass(frozen=True)
class Scene:
    """A network, and the intents that hold in it."""

    whole: Snapshot
    wanted: tuple[Fact, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        return self.whole.facts

    @cached_property
    def bench(self) -> Bench:
        state = _forwarding(self.whole)
        return Bench(state, self.facts, self.wanted, intents.derive(state, DERIVED_AT_MOST))

    def after(self, values: Values) -> "Scene":
        return replace(self, whole=configured(self.whole, values))

    def value(self, slot: Slot) -> int:
        return next(f.params[slot[1]] for f in self.facts if f.key == slot[0])

    def is_harmful(self, trial: Trial) -> bool:
        """Whether enough breaks of what the operator stated; what is derived is weaker evidence."""
        return sum(place < self.bench.stated for place in trial.breaks) >= BROKEN_AT_LEAST

    def is_harmless(self, trial: Trial) -> bool:
        return bool(trial.moves) and not trial.breaks

    def is_moving(self, trial: Trial) -> bool:
        return bool(trial.moves)

    def first(self, found: Iterable[Values], fits: Callable[[Trial], bool]) -> Values | None:
        """The first that does what is asked for, and leaves every destination one outcome."""
        for values in found:
            trial = self.bench.attempt(*((*slot, value) for slot, value in values.items()))
            if trial and fits(trial) and not self.bench.state_of(trial).unsettled():
                return values
        return None


def _forwarding(whole: Snapshot) -> Forwarding:
    return forward(build(whole.entities, whole.facts))


def _each(parameter: Parameter, wrong: Callable[[int], int]) -> Candidates:
    """Another value in one place."""

    def candidates(whole: Snapshot) -> Iterator[Values]:
        for fact in whole.facts:
            if parameter.name in fact.params:
                yield {(fact.key, parameter.name): wrong(fact.params[parameter.name])}

    return candidates


def _exchanged(parameter: Parameter, belong: Callable[[Ends, Ends], bool]) -> Candidates:
    """Two values change places, of facts that belong together."""

    def candidates(whole: Snapshot) -> Iterator[Values]:
        asn, name = {entity.id: entity.asn for entity in whole.entities}, parameter.name
        having = [fact for fact in whole.facts if name in fact.params]
        for one, other in combinations(having, 2):
            here, there = (tuple(asn[arg] or arg for arg in fact.args) for fact in (one, other))
            if belong(here, there) and one.params[name] != other.params[name]:
                yield {(one.key, name): other.params[name], (other.key, name): one.params[name]}

    return candidates


def _at_one_router(here: Ends, there: Ends) -> bool:
    return not set(here).isdisjoint(there)


def _of_one_customer(here: Ends, there: Ends) -> bool:
    """The same AS and the same destination, at two gateways."""
    return here == there


# In this order, so that the first mistakes are as different as they can be.
SLIPS: tuple[tuple[str, Candidates], ...] = (
    ("typo", _each(LOCAL_PREF, lambda value: value * 2 // 5)),  # 200, 80
    ("a digit lost", _each(OSPF_WEIGHT, lambda value: value // 10)),
    ("prepended too often", _each(AS_PATH_LENGTH, lambda value: value + 3)),
    ("a digit too many", _each(LOCAL_PREF, lambda value: value * 10)),
    ("swapped", _exchanged(OSPF_WEIGHT, _at_one_router)),
    ("typo", _each(MED, lambda _: 500)),
    ("back to its default", _each(OSPF_WEIGHT, lambda _: 1)),
    ("back to its default", _each(LOCAL_PREF, lambda _: 100)),
)
EXCHANGES = tuple(_exchanged(parameter, _of_one_customer) for parameter in (LOCAL_PREF, MED))


def _retune(facts: Iterable[Fact], rng: random.Random) -> Values:
    """Some link costs, all raised or all lowered: one up and one down may look like swapped."""
    costs = {f.key: f.params[OSPF_WEIGHT.name] for f in facts if OSPF_WEIGHT.name in f.params}
    sign = pick(rng, (-1, 1))
    free = [link for link, cost in costs.items() if cost + sign * max(RETUNED_BY) >= LEAST_COST]
    number = between(rng, *RETUNED_LINKS)
    links = rng.sample(free, number) if number <= len(free) else []
    return {(link, OSPF_WEIGHT.name): costs[link] + sign * pick(rng, RETUNED_BY) for link in links}


def _told(before: Values, after: Values) -> str:
    """Such as `local_pref 200 -> 80 on AS65101@Denver → 203.0.113.0/24`."""
    (parameter,) = {parameter for _, parameter in after}
    changes = (f"{before[slot]} -> {after[slot]} on {place(slot[0])}" for slot in after)
    return f"{parameter} {', '.join(changes)}"
