"""What the process that scores is told of a network that it knows, and what it says: only what it
takes, since most of a network stays as it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from gsid_service.diagnose.diagnosis import Diagnosis
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.records import FactKey, Intents

FORGOTTEN = "forgotten"  # the answer to what differs from what is not remembered


class Said(NamedTuple):
    """The answer without the names of facts, which who asked knows: they are most of it."""

    found: Diagnosis
    as_before: bool  # whether the facts are those of the last time


def named(found: Diagnosis, facts: tuple[FactKey, ...]) -> Diagnosis:
    """With these as the facts that its rows are about."""
    return replace(found, values=replace(found.values, facts=facts))


class Changed(NamedTuple):
    """Other items at some places of a sequence."""

    items: Mapping[int, Any]


class Spliced(NamedTuple):
    """Other items between those at the start and those at the end that stay."""

    start: int
    end: int
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """What differs from an observation that whoever is told this knows."""

    rest: Observation  # without the parts below
    parts: tuple[Changed | Spliced, ...]


def difference(before: Observation, after: Observation) -> Update:
    parts = zip(_parts(before), _parts(after), strict=True)
    return Update(_rest(after), tuple(_difference(*part) for part in parts))


def updated(before: Observation, update: Update) -> Observation:
    """The observation that differs from another by this."""
    pairs = zip(_parts(before), update.parts, strict=True)
    entities, facts, stated, derived, approved, approved_facts = (_put(*pair) for pair in pairs)
    rest, reference = update.rest, update.rest.reference
    if reference is not None:
        reference = Reference(approved, approved_facts, reference.exact)
    wanted = Intents(stated, derived)
    return replace(rest, entities=entities, facts=facts, wanted=wanted, reference=reference)


def _parts(seen: Observation) -> tuple[Sequence[Any], ...]:
    entities, facts, _ = seen.reference or Reference((), ())
    return seen.entities, seen.facts, seen.wanted.stated, seen.wanted.derived, entities, facts


def _rest(seen: Observation) -> Observation:
    reference = seen.reference and Reference((), (), seen.reference.exact)
    return replace(seen, entities=(), facts=(), wanted=Intents(), reference=reference)


def _difference(before: Sequence[Any], after: Sequence[Any]) -> Changed | Spliced:
    if before is after:
        return Changed({})
    if len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return Changed({i: new for i, (old, new) in pairs if old is not new and old != new})
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return Spliced(start, end, tuple(after[start : len(after) - end]))


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many items at their start are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a is not b and a != b), min(len(one), len(other)))


def _put(before: Sequence[Any], part: Changed | Spliced) -> tuple[Any, ...]:
    if isinstance(part, Spliced):
        return (*before[: part.start], *part.items, *before[len(before) - part.end :])
    if not part.items and isinstance(before, tuple):
        return before
    after = list(before)
    for place, item in part.items.items():
        after[place] = item
    return tuple(after)
