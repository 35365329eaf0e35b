"""Maintenance windows: an alert inside one is held until it closes.

A recurring window follows its RFC 5545 rule in local time, so that 2 a.m. stays 2 a.m. when the
clocks change.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rruleset, rrulestr

from gsid_service.notices import Mode, Window
from gsid_service.notify.batch import Batch, Held, Note
from gsid_service.records import FactKey

# What a rule may say, by its frequency: with less of it, rules can be walked through in no time.
COMMON = ("INTERVAL", "UNTIL")
MONTHLY = (*COMMON, "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS")
PARTS = {
    "DAILY": COMMON,
    "WEEKLY": (*COMMON, "BYDAY", "WKST"),
    "MONTHLY": MONTHLY,
    "YEARLY": MONTHLY,
}
SOME = 10  # occurrences that tell how far a rule's are apart


class BadRule(ValueError):
    """Not a rule that windows can follow."""


def maintenance(batch: Batch) -> Batch:
    def why(note: Note) -> Held | None:
        found = covering(batch.situation.windows, note, batch.now)
        if found is None:
            return None
        window, end = found
        return f"in the maintenance window {window.id} of {window.author}: {window.comment}", end

    return batch.holding("maintenance", why)


def covering(
    windows: Iterable[Window], note: Note, now: datetime
) -> tuple[Window, datetime] | None:
    """A window that an alert is in, and when it closes."""
    alert = note.alert
    for window in windows:
        if concerns(window, alert.network, alert.fact, alert.parameter):
            end = open_until(window, now)
            if end is not None:
                return window, end
    return None


def concerns(window: Window, network: str, fact: FactKey, parameter: str) -> bool:
    return (
        window.network in {None, network}
        and (window.entity is None or window.entity in fact.args)
        and window.parameter in {None, parameter}
    )


def holds_back(windows: Iterable[Window], network: str, now: datetime) -> list[Window]:
    """The windows of a network in which no alert opens."""
    return [
        window
        for window in windows
        if window.mode is Mode.HOLD
        and window.network in {None, network}
        and open_until(window, now) is not None
    ]


def open_until(window: Window, now: datetime) -> datetime | None:
    """When the window closes; None where it is not open."""
    start: datetime | None = window.starts_at
    if window.rule is not None:
        zone = ZoneInfo(window.timezone)
        last = _rule(window).before(_local(now, zone), inc=True)
        start = None if last is None else last.replace(tzinfo=zone).astimezone(UTC)
    if start is None or not start <= now < start + window.duration:
        return None
    return start + window.duration


def next_start(window: Window, now: datetime) -> datetime | None:
    """When the window opens next; None where it does not, or not for a long time."""
    if window.rule is None:
        return window.starts_at if window.starts_at > now else None
    zone = ZoneInfo(window.timezone)
    following = _rule(window).after(_local(now, zone))
    return None if following is None else following.replace(tzinfo=zone).astimezone(UTC)


def check_rule(rule: str, start: datetime, duration: timedelta) -> None:
    """Raise `BadRule` for what is not a rule, recurs too often, or never."""
    parts = dict(part.partition("=")[::2] for part in rule.upper().split(";"))
    frequency = parts.pop("FREQ", "")
    if frequency not in PARTS:
        raise BadRule(f"FREQ must be one of {', '.join(PARTS)}")
    unknown = sorted(parts.keys() - set(PARTS[frequency]))
    if unknown:
        known = ", ".join(PARTS[frequency])
        raise BadRule(f"{unknown[0]!r} is none of {known}, which FREQ={frequency} takes")
    begin = start.replace(tzinfo=None)
    try:
        found = rrulestr(rule, dtstart=begin)
    except (ValueError, TypeError, OverflowError, KeyError) as error:
        raise BadRule(f"not a rule of RFC 5545: {error}") from None
    first = list(islice(found.xafter(begin, inc=True), SOME))
    if not first:
        raise BadRule("it never comes true")
    if any(later - earlier < duration for earlier, later in pairwise(first)):
        raise BadRule("it begins anew before it is over: the window would never close")


def _local(now: datetime, zone: ZoneInfo) -> datetime:
    return now.astimezone(zone).replace(tzinfo=None)


@lru_cache(maxsize=1024)
def _rule(window: Window) -> rrule | rruleset:
    begin = _local(window.starts_at, ZoneInfo(window.timezone))
    return rrulestr(window.rule or "", dtstart=begin, cache=True)
