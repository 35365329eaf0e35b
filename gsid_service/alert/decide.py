"""From an alert as it was and what the cycle found to the alert as it is, with the reason.

Pure: no clock and no store. An alert opens at one score and resolves below a lower one, so that a
score between the two changes nothing; a value that nobody observes any more is not guessed at.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from gsid_service.records import (
    Alert,
    AlertEvent,
    BrokenIntent,
    Ending,
    FactKey,
    Move,
    Restored,
    Severity,
    Status,
    UnderWay,
    Unsettled,
)

OPENED, REOPENED, RESOLVED = "opened", "reopened", "resolved"
TURNS = frozenset({OPENED, REOPENED, RESOLVED})


class Rules(NamedTuple):
    """When alerts open, resolve and count as flapping."""

    open_score: float
    close_score: float
    flap_changes: int
    flap_within: timedelta


@dataclass(frozen=True, slots=True)
class Finding:
    """What the cycle found about one value."""

    network: str
    fact: FactKey
    parameter: str
    score: float
    observed: int | str
    expected: int | str | None
    stale: bool
    snapshot_id: str
    collector: str
    severity: Severity = Severity.MINOR
    broken_intents: tuple[BrokenIntent, ...] = ()
    moved: tuple[Move, ...] = ()
    reverting_repairs: int = 0
    reverting_breaks: int = 0
    unsettled: tuple[Unsettled, ...] = ()
    together: tuple[Restored, ...] = ()
    verified: bool = True
    suggested: bool = False
    under_way: UnderWay | None = None


def decide(
    before: Alert | None, found: Finding | None, rules: Rules, now: datetime
) -> Alert | None:
    """The alert after this cycle; None where there is none."""
    after = _turned(before, found, rules, now)
    return None if after is None else _flapping(after, rules, now)


def _turned(
    before: Alert | None, found: Finding | None, rules: Rules, now: datetime
) -> Alert | None:
    if before is None or before.status is Status.RESOLVED:
        return _maybe_open(before, found, rules, now)
    if found is None:
        return _resolved(before, Ending.GONE, "what it is about is no longer there", now)
    if found.stale:
        return before
    if found.observed == found.expected:
        ending = Ending.APPROVED if _approved(before, found) else Ending.RESTORED
        return _resolved(_excused(before, found), ending, _as_expected(before, found), now)
    if found.score < rules.close_score:
        why = f"the score {found.score:.2f} is below {rules.close_score:g}"
        return _resolved(before, Ending.BELIEVED, why, now)
    return _updated(before, found, now)


def _maybe_open(
    before: Alert | None, found: Finding | None, rules: Rules, now: datetime
) -> Alert | None:
    if found is None or found.stale or found.score < rules.open_score:
        return before
    if found.observed == found.expected:
        return before
    why = f"the score {found.score:.2f} is not below {rules.open_score:g}"
    if before is None:
        fresh = Alert(
            id="",
            network=found.network,
            fact=found.fact,
            parameter=found.parameter,
            status=Status.FIRING,
            severity=found.severity,
            score=found.score,
            observed=found.observed,
            expected=found.expected,
            snapshot_id=found.snapshot_id,
            collector=found.collector,
            first_seen=now,
            last_seen=now,
            under_way=found.under_way,
            since=now,
        )
        return _carrying(fresh, found, now).with_event(AlertEvent(now, OPENED, why))
    after = replace(
        before,
        status=Status.FIRING,
        verdict=None,
        under_way=found.under_way,
        since=now,
        ending=None,
    )
    again = _carrying(after, found, now)
    return again.with_event(AlertEvent(now, REOPENED, why))


def _updated(before: Alert, found: Finding, now: datetime) -> Alert:
    after = _carrying(replace(before, under_way=_meanwhile(before, found)), found, now)
    changes = []
    if before.observed != after.observed:
        changes.append(f"the value is now {after.observed}, was {before.observed}")
    if before.severity is not after.severity:
        changes.append(f"now {after.severity.value}, was {before.severity.value}")
    if not changes:
        return after
    return after.with_event(AlertEvent(now, "changed", "; ".join(changes)))


def _excused(before: Alert, found: Finding) -> Alert:
    """Where the expectation came to the value, nothing was restored, and the alert shows that."""
    return replace(before, expected=found.expected) if _approved(before, found) else before


def _as_expected(before: Alert, found: Finding) -> str:
    if _approved(before, found) and before.expected is not None:
        return f"{found.expected} is the expected value now, it was {before.expected}"
    return f"the value is {found.expected}, as expected"


def _approved(before: Alert, found: Finding) -> bool:
    return before.observed == found.observed == found.expected


def _resolved(before: Alert, ending: Ending, why: str, now: datetime) -> Alert:
    after = replace(before, status=Status.RESOLVED, ending=ending, last_seen=now)
    return after.with_event(AlertEvent(now, RESOLVED, why))


def _carrying(alert: Alert, found: Finding, now: datetime) -> Alert:
    return replace(
        alert,
        score=found.score,
        observed=found.observed,
        expected=found.expected,
        severity=found.severity,
        broken_intents=found.broken_intents,
        moved=found.moved,
        reverting_repairs=found.reverting_repairs,
        reverting_breaks=found.reverting_breaks,
        unsettled=found.unsettled,
        together=found.together,
        verified=found.verified,
        suggested=found.suggested,
        snapshot_id=found.snapshot_id,
        collector=found.collector,
        last_seen=now,
    )


def _meanwhile(alert: Alert, found: Finding) -> UnderWay | None:
    """The change in whose window the alert opened; one that announced the value, while it lasts."""
    if found.under_way is not None and found.under_way.announced:
        return found.under_way
    was = alert.under_way
    return None if was is None or was.announced else was


def _flapping(alert: Alert, rules: Rules, now: datetime) -> Alert:
    """One with many turns of late is flapping, and says so; a quiet one no longer is."""
    turns = sum(e.what in TURNS and now - e.at <= rules.flap_within for e in alert.events)
    flapping = turns >= rules.flap_changes
    if flapping == alert.flapping:
        return alert
    if flapping:
        why = f"{turns} turns within {rules.flap_within}"
        alert = alert.with_event(AlertEvent(now, "flapping", why))
    return replace(alert, flapping=flapping)


def acknowledged(alert: Alert, who: str, now: datetime, note: str = "") -> Alert:
    """Somebody looks after it."""
    event = AlertEvent(now, "acknowledged", note or "somebody looks after it", who)
    return replace(alert, status=Status.ACKNOWLEDGED).with_event(event)


def judged(alert: Alert, verdict: str, who: str, now: datetime, note: str = "") -> Alert:
    """Somebody says whether it was a true or a false alarm."""
    event = AlertEvent(now, "judged", f"a {verdict} alarm" + (f": {note}" if note else ""), who)
    return replace(alert, verdict=verdict).with_event(event)
