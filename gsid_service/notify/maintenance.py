"""Maintenance windows: an alert inside one is held until it closes.

A recurring window follows its RFC 5545 rule in local time, so that 2 a.m. stays 2 a.m. when the
clocks change.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from dateutil.rrule import rrule, rruleset, rrulestr

from gsid_service.notices import Mode, Window
from gsid_service.notify.batch import Batch, Held, Note
from gsid_service.records import FactKey

# Rules that recur by the hour or faster, or by odd parts, would take long to walk through.
FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
PARTS = ("INTERVAL", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS", "WKST")
UNTIL = "%Y%m%dT%H%M%S"
AHEAD = timedelta(days=800)  # a leap year's day comes again, or a yearly one


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
        last = _rule(window, now.year).before(_local(now, zone), inc=True)
        start = None if last is None else last.replace(tzinfo=zone).astimezone(UTC)
    if start is None or not start <= now < start + window.duration:
        return None
    return start + window.duration


def next_start(window: Window, now: datetime) -> datetime | None:
    """When the window opens next; None where it does not, or not for a long time."""
    if window.rule is None:
        return window.starts_at if window.starts_at > now else None
    zone = ZoneInfo(window.timezone)
    following = _rule(window, now.year).after(_local(now, zone))
    return None if following is None else following.replace(tzinfo=zone).astimezone(UTC)


def check_rule(rule: str, start: datetime) -> None:
    """Raise `BadRule` for what is not a rule, or one that recurs too often."""
    parts = _parts(rule)
    if parts.pop("FREQ", "") not in FREQUENCIES:
        raise BadRule(f"FREQ must be one of {', '.join(FREQUENCIES)}")
    unknown = sorted(parts.keys() - set(PARTS))
    if unknown:
        raise BadRule(f"{unknown[0]!r} is none of FREQ, {', '.join(PARTS)}")
    try:
        found = rrulestr(rule, dtstart=start.replace(tzinfo=None))
    except (ValueError, TypeError, OverflowError, KeyError) as error:
        raise BadRule(f"not a rule of RFC 5545: {error}") from None
    if not isinstance(found, rrule):
        raise BadRule("one rule, and nothing else")


def _local(now: datetime, zone: ZoneInfo) -> datetime:
    return now.astimezone(zone).replace(tzinfo=None)


@lru_cache(maxsize=1024)
def _rule(window: Window, year: int) -> rrule | rruleset:
    """The rule up to some time after a year: one that never comes true must end somewhere."""
    parts = _parts(window.rule or "")
    end = f"{datetime(year, 12, 31) + AHEAD:{UNTIL}}"
    parts["UNTIL"] = min(parts.get("UNTIL", end), end)  # both are local, the year first
    text = ";".join(f"{name}={value}" for name, value in parts.items())
    return rrulestr(text, dtstart=_local(window.starts_at, ZoneInfo(window.timezone)), cache=True)


def _parts(rule: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in rule.upper().split(";"))
