"""Faults: wrong values put into facts that were right, each with a label that says what it was."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gsid_service.records import Fact, FactKey
from gsid_service.schema import SCHEMA, Parameter
from gsid_service.simulate.chance import between, pick
from gsid_service.simulate.designs import draw_value

SLIPS_AT_MOST = 4
TRIES = 100  # draws before a kind of slip counts as not to be had in these facts


class Label(NamedTuple):
    """One value that is not what the design asks for."""

    fact: FactKey
    parameter: str
    observed: int
    expected: int
    kind: str


class Slot(NamedTuple):
    """A monitored parameter of the fact at a place in a list."""

    place: int
    parameter: Parameter


def slots(facts: Sequence[Fact]) -> dict[str, list[Slot]]:
    """Every place where a monitored value stands, by parameter."""
    found: dict[str, list[Slot]] = {p.name: [] for p in SCHEMA.monitored}
    for place, fact in enumerate(facts):
        for parameter in SCHEMA.fact[fact.predicate].parameters:
            if parameter.monitored and parameter.name in fact.params:
                found[parameter.name].append(Slot(place, parameter))
    return found


def inject(
    facts: Sequence[Fact], rate: float, rng: random.Random
) -> tuple[tuple[Fact, ...], tuple[Label, ...]]:
    """The paper's injection: replace a share of each parameter's values by other ones.

    The share of n values is n·rate rounded up or down by chance, so that the expected number is
    right for few values and small rates too.
    """
    changes: dict[Slot, tuple[int, str]] = {}
    for places in slots(facts).values():
        count = int(len(places) * rate + rng.random())
        for slot in rng.sample(places, min(count, len(places))):
            changes[slot] = another_value(slot.parameter, _value(facts, slot), rng), "replaced"
    return _apply(facts, changes)


def another_value(parameter: Parameter, value: int, rng: random.Random) -> int:
    """A different value, drawn uniformly from the paper's range."""
    while (drawn := draw_value(parameter, rng)) == value:
        pass
    return drawn


def slip(
    facts: Sequence[Fact], rng: random.Random, at_most: int = SLIPS_AT_MOST
) -> tuple[tuple[Fact, ...], tuple[Label, ...]]:
    """0 to `at_most` anomalies as people make them, each of a random kind."""
    places = {name: found for name, found in slots(facts).items() if found}
    changes: dict[Slot, tuple[int, str]] = {}
    for _ in range(between(rng, 0, at_most) if places else 0):
        kind = pick(rng, list(SLIPS))
        for _ in range(TRIES):
            slip = SLIPS[kind](facts, pick(rng, list(places.values())), rng)
            if slip and not slip.keys() & changes.keys():
                changes |= {slot: (value, kind) for slot, value in slip.items()}
                break
    return _apply(facts, changes)


Slip = Callable[[Sequence[Fact], list[Slot], random.Random], dict[Slot, int]]


def _redrawn(facts: Sequence[Fact], places: list[Slot], rng: random.Random) -> dict[Slot, int]:
    slot = pick(rng, places)
    return {slot: another_value(slot.parameter, _value(facts, slot), rng)}


def _off_by_one(facts: Sequence[Fact], places: list[Slot], rng: random.Random) -> dict[Slot, int]:
    slot = pick(rng, places)
    value = _value(facts, slot) + pick(rng, (-1, 1))
    return {slot: value} if _in_range(slot.parameter, value) else {}


def _copied(facts: Sequence[Fact], places: list[Slot], rng: random.Random) -> dict[Slot, int]:
    slot, source = pick(rng, places), pick(rng, places)
    value = _value(facts, source)
    return {slot: value} if value != _value(facts, slot) else {}


def _swapped(facts: Sequence[Fact], places: list[Slot], rng: random.Random) -> dict[Slot, int]:
    one, other = pick(rng, places), pick(rng, places)
    first, second = _value(facts, one), _value(facts, other)
    return {one: second, other: first} if first != second else {}


def _digit(facts: Sequence[Fact], places: list[Slot], rng: random.Random) -> dict[Slot, int]:
    """A digit lost or doubled, where that leaves another value inside the range."""
    slot = pick(rng, places)
    value = _value(facts, slot)
    digits = str(value)
    lost = [digits[:i] + digits[i + 1 :] for i in range(len(digits)) if len(digits) > 1]
    doubled = [digits[: i + 1] + digits[i:] for i in range(len(digits))]
    values = [int(text) for text in pick(rng, (lost, doubled))]
    fitting = [v for v in values if v != value and _in_range(slot.parameter, v)]
    return {slot: pick(rng, fitting)} if fitting else {}


SLIPS: dict[str, Slip] = {
    "redrawn": _redrawn,
    "off by one": _off_by_one,
    "copied": _copied,
    "swapped": _swapped,
    "digit": _digit,
}


def restored(facts: Sequence[Fact], labels: Sequence[Label]) -> tuple[Fact, ...]:
    """The facts with each label's expected value put back."""
    return with_values(facts, {(x.fact, x.parameter): x.expected for x in labels})


def with_values(facts: Sequence[Fact], values: dict[tuple[FactKey, str], int]) -> tuple[Fact, ...]:
    """The facts with other values for the (fact, parameter) named."""
    by_fact: dict[FactKey, dict[str, int]] = defaultdict(dict)
    for (key, parameter), value in values.items():
        by_fact[key][parameter] = value
    return tuple(
        fact._replace(params={**fact.params, **by_fact[fact.key]}) if fact.key in by_fact else fact
        for fact in facts
    )


def _value(facts: Sequence[Fact], slot: Slot) -> int:
    return facts[slot.place].params[slot.parameter.name]


def _in_range(parameter: Parameter, value: int) -> bool:
    low, high = parameter.paper or (parameter.low, parameter.high)
    return low <= value <= high


def _apply(
    facts: Sequence[Fact], changes: dict[Slot, tuple[int, str]]
) -> tuple[tuple[Fact, ...], tuple[Label, ...]]:
    labels = tuple(
        Label(facts[slot.place].key, slot.parameter.name, value, _value(facts, slot), kind)
        for slot, (value, kind) in sorted(changes.items(), key=lambda item: item[0].place)
    )
    return with_values(facts, {(x.fact, x.parameter): x.observed for x in labels}), labels
