"""From announced changes and what is observed to what is expected, and how far each change is.

Pure: no clock and no store. In its window a value may be the old or the announced one; what is
neither contradicts the announcement. What was applied by the end is approved, and nothing else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from gsid_service.alert.decide import Finding
from gsid_service.alert.sentence import place
from gsid_service.records import Alert, Change, ChangeStatus, Fact, FactKey, Step, UnderWay
from gsid_service.schema import SCHEMA, Group, Schema

NAMED = 3  # steps that a sentence names; the others are counted
Facts = Mapping[FactKey, Fact]
Slot = tuple[FactKey, str]


class Expected(NamedTuple):
    """What a network should be like while changes are under way."""

    facts: tuple[Fact, ...]
    contradicted: frozenset[Slot]  # values that are neither the old nor an announced one


def by_key(facts: Iterable[Fact]) -> dict[FactKey, Fact]:
    return {fact.key: fact for fact in facts}


def value_of(fact: Fact | None, parameter: str | None, schema: Schema = SCHEMA) -> int | None:
    """A value as it is; without a parameter, whether the fact is there: 0 or 1."""
    if parameter is None:
        return int(fact is not None)
    if fact is None:
        return None
    known = schema.fact[fact.predicate].parameter(parameter)
    return fact.params.get(parameter, known.default if known else None)


def steps(before: Facts, after: Facts, schema: Schema = SCHEMA) -> tuple[Step, ...]:
    """What leads from one state to another; forwarding as reported is no doing of anybody."""
    found = []
    for key in dict.fromkeys([*before, *after]):
        old, new, kind = before.get(key), after.get(key), schema.fact[key.predicate]
        if old == new or kind.group is not Group.ROUTING:
            continue
        given = {**(old.params if old else {}), **(new.params if new else {})}
        for parameter in (None, *given):
            was, will = value_of(old, parameter, schema), value_of(new, parameter, schema)
            if will is not None and was != will:
                found.append(Step(key, parameter, was, will))
    return tuple(found)


# What is expected


def expected(approved: Iterable[Fact], seen: Facts, under_way: Iterable[Change]) -> Expected:
    """The approved facts, with announced values where these are applied or something else is."""
    told: dict[tuple[FactKey, str | None], list[Step]] = {}
    for change in under_way:
        for step in change.steps:
            told.setdefault((step.fact, step.parameter), []).append(step)
    before = by_key(approved)
    facts, contradicted = dict(before), set()
    for (key, parameter), announced in told.items():
        observed = value_of(seen.get(key), parameter)
        if observed in {step.after for step in announced}:
            _lay(facts, key, parameter, observed, seen)
        elif parameter is not None and observed is not None:
            old = {value_of(before.get(key), parameter), *(step.before for step in announced)}
            if observed not in old:
                _lay(facts, key, parameter, announced[-1].after, seen)
                contradicted.add((key, parameter))
    return Expected(tuple(facts.values()), frozenset(contradicted))


def _lay(
    facts: dict[FactKey, Fact], key: FactKey, parameter: str | None, value: int | None, seen: Facts
) -> None:
    """Make a value the expected one; of a fact that nobody approved, the rest is as it is seen."""
    if parameter is None and not value:
        facts.pop(key, None)
        return
    fact = facts.setdefault(key, seen[key])
    if parameter is not None and value is not None:
        facts[key] = fact._replace(params={**fact.params, parameter: value})


def accepted(approved: Iterable[Fact], seen: Facts, change: Change) -> tuple[Fact, ...]:
    """The approved facts with what was applied of a change, and nothing else."""
    facts = by_key(approved)
    for step in change.steps:
        if value_of(seen.get(step.fact), step.parameter) == step.after:
            _lay(facts, step.fact, step.parameter, step.after, seen)
    return tuple(facts.values())


def legitimised(alerts: Iterable[Alert], approved: Facts) -> list[Alert]:
    """The alerts that would be over if these facts were approved."""
    return [alert for alert in alerts if _is_so(alert, approved)]


def _is_so(alert: Alert, approved: Facts, schema: Schema = SCHEMA) -> bool:
    """Whether it is about a value as it is approved, or a session that is not there any more."""
    kind, fact = schema.fact[alert.fact.predicate], approved.get(alert.fact)
    if kind.parameter(alert.parameter) is None:
        return kind.group is Group.ROUTING and fact is None
    return value_of(fact, alert.parameter, schema) == alert.observed


# How far a change is


def is_under_way(change: Change, now: datetime) -> bool:
    """Whether its window has begun, and it is not closed yet."""
    return change.closed_at is None and change.begins_at <= now


def is_over(
    change: Change, heard: Mapping[str, datetime], now: datetime, patience: timedelta
) -> bool:
    """Whether its window has ended and every collector has spoken since: what was applied in the
    last minute is seen a little later. One that stays silent is not waited for for ever."""
    if change.closed_at is not None or now < change.ends_at:
        return False
    return now >= change.ends_at + patience or all(at >= change.ends_at for at in heard.values())


def followed(
    change: Change, seen: Facts, heard: Mapping[str, datetime], now: datetime, patience: timedelta
) -> Change:
    """The change as far as it is now; closed where it is over."""
    if not is_under_way(change, now):
        return change
    over = is_over(change, heard, now, patience)
    observed = tuple(value_of(seen.get(step.fact), step.parameter) for step in change.steps)
    status = _status(replace(change, observed=observed), over)
    return replace(change, observed=observed, status=status, closed_at=now if over else None)


def applied(change: Change) -> int:
    """How many of its steps were last seen as announced."""
    pairs = zip(change.steps, change.observed, strict=False)
    return sum(step.after == observed for step, observed in pairs)


def _status(change: Change, over: bool) -> ChangeStatus:
    count = applied(change)
    if count == len(change.steps):
        return ChangeStatus.APPLIED
    if not over:
        return ChangeStatus.APPLYING
    return ChangeStatus.PARTLY_APPLIED if count else ChangeStatus.NOT_APPLIED


def cancelled(change: Change, who: str, now: datetime) -> Change:
    return replace(change, status=ChangeStatus.CANCELLED, closed_at=now, cancelled_by=who)


# What is said of it


def marked(
    findings: Mapping[Slot, Finding], contradicted: Collection[Slot], under_way: Sequence[Change]
) -> dict[Slot, Finding]:
    """Findings in the window of a change say so, and whether it announced that value."""
    return {
        slot: replace(found, under_way=_meanwhile(slot, slot in contradicted, under_way))
        for slot, found in findings.items()
    }


def _meanwhile(slot: Slot, announced: bool, under_way: Sequence[Change]) -> UnderWay | None:
    for change in reversed(under_way):
        if not announced or any((step.fact, step.parameter) == slot for step in change.steps):
            return UnderWay(change.id, change.ticket, announced)
    return None


def summary(change: Change) -> str:
    """How far a change is, in one sentence."""
    total, done = len(change.steps), applied(change)
    if not change.observed:
        return f"{total} announced, none looked at yet"
    told = [_missing(s, o) for s, o in zip(change.steps, change.observed, strict=True)]
    missing = [text for text in told if text]
    more = len(missing) - NAMED
    others = [f"{more} more"] if more > 0 else []
    listed = "; ".join([*missing[:NAMED], *others])
    return f"{done} of {total} applied" + (f": {listed}" if listed else "")


def _missing(step: Step, observed: int | None) -> str:
    if observed == step.after:
        return ""
    if step.parameter is None:
        return f"{step.fact} is {'not there yet' if step.after else 'still there'}"
    now = "not there" if observed is None else observed
    return f"{step.parameter} on {place(step.fact)} is {now}, announced {step.after}"
