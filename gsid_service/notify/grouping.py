"""Grouping: alerts of one cause are told together, after a first wait and then at intervals.

The cause of an alert is not known for sure, but what one collector reports in one go most often has
one, be it 5,000 values that a reflector read from an old file. So an alert joins the group that its
collector's reports opened or added to within the group interval.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from gsid_service.notices import Group
from gsid_service.notify.batch import AHEAD, Batch, Note, Route, over_at
from gsid_service.notify.news import news

LOOK_AGAIN = timedelta(seconds=1)  # whether the end of the turn before has arrived


def group(batch: Batch) -> Batch:
    """Give every note a group; hold those with news whose group is not due."""
    route, now = batch.route, batch.now
    known = {note.group.key: note.group for note in batch.notes if note.group and _alive(note, now)}
    opened: dict[str, Group] = {}

    def place(note: Note) -> Note:
        if note.group is None or not _alive(note, now):
            if note.group and note.group.key in batch.situation.under_way:
                # Order is kept within a group: told at once, this could come before that end.
                return note.at("grouping", "its last end is still under way", now + LOOK_AGAIN)
            cause = note.alert.collector if route.by_cause else note.alert.network
            joined = _joinable(known.values(), cause, route, now) or opened.get(cause)
            if joined is None:
                joined = opened[cause] = Group(batch.new_key(), cause, now)
            note = replace(note, group=joined)
        due = due_at(note.group, route, now) if note.group else now
        if now < due and news(note, route):
            return note.at("grouping", f"waits with its group until {due:%H:%M:%S} UTC", due)
        return note

    return batch.each(place)


def due_at(group: Group, route: Route, now: datetime) -> datetime:
    if group.flushed_at is None:
        return over_at(group.opened_at, route.group_wait, now)
    return over_at(group.flushed_at, route.group_interval, now)


def _alive(note: Note, now: datetime) -> bool:
    """Whether the note's group is that of this turn of the alert."""
    if note.told is None or note.paged:
        return True
    if note.group is None:
        return False
    if note.told.at > now + AHEAD:  # the clock was set back since it was over
        return note.group.opened_at <= now
    return note.group.opened_at > note.told.at


def _joinable(groups: Iterable[Group], cause: str, route: Route, now: datetime) -> Group | None:
    for group in groups:
        active = (group.flushed_at or group.opened_at) + route.group_interval
        if group.cause == cause and (now < active or not route.by_cause):
            return group
    return None
