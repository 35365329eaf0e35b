"""Silences: an alert that all matchers of an active one fit is held until it expires."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase

from gsid_service.notices import Matcher, Silence
from gsid_service.notify.batch import Batch, Held, Note, Situation
from gsid_service.notify.maintenance import covering
from gsid_service.records import Alert, AlertEvent, Status

ONE_THING = frozenset({"alert", "fact", "entity"})


def silence(batch: Batch) -> Batch:
    def why(note: Note) -> Held | None:
        found = active(batch.situation.silences, note.alert, batch.now)
        if found is None:
            return None
        return f"silence {found.id} of {found.author}: {found.comment}", found.ends_at

    return batch.holding("silence", why)


def active(silences: Iterable[Silence], alert: Alert, now: datetime) -> Silence | None:
    """A silence that an alert is under."""
    running = (s for s in silences if s.starts_at <= now < s.ends_at)
    return next((s for s in running if all(fits(m, alert) for m in s.matchers)), None)


def fits(matcher: Matcher, alert: Alert) -> bool:
    values = _values(matcher.name, alert)
    if matcher.operator.endswith("~"):
        found = any(fnmatchcase(value, matcher.value) for value in values)
    else:
        found = matcher.value in values
    return found != matcher.operator.startswith("!")


def is_broad(matchers: Iterable[Matcher]) -> bool:
    """Whether they name neither one thing, nor a network and something about it."""
    named = {matcher.name for matcher in matchers if matcher.operator == "="}
    return not named & ONE_THING and not ("network" in named and len(named) > 1)


def with_status(alert: Alert, situation: Situation) -> Alert:
    """The alert as silenced where it is, and firing again where that is over."""
    if alert.status not in {Status.FIRING, Status.SILENCED}:
        return alert
    why = _quiet(alert, situation)
    if (alert.status is Status.SILENCED) == (why is not None):
        return alert
    if why is None:
        event = AlertEvent(situation.now, "no longer silenced", "nothing keeps it quiet any more")
        return replace(alert, status=Status.FIRING).with_event(event)
    return replace(alert, status=Status.SILENCED).with_event(
        AlertEvent(situation.now, "silenced", why)
    )


def _quiet(alert: Alert, situation: Situation) -> str | None:
    found = active(situation.silences, alert, situation.now)
    if found is not None:
        return f"silence {found.id} of {found.author}: {found.comment}"
    window = covering(situation.windows, Note(alert), situation.now)
    return None if window is None else f"maintenance window {window[0].id}: {window[0].comment}"


def _values(label: str, alert: Alert) -> tuple[str, ...]:
    match label:
        case "alert":
            return (alert.id,)
        case "predicate":
            return (alert.fact.predicate,)
        case "fact":
            return (str(alert.fact),)
        case "entity":
            return alert.fact.args
        case "severity":
            return (alert.severity.value,)
    found: str = getattr(alert, label)
    return (found,)
