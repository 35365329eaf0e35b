"""Grouping: alerts of one cause are told together, after a first wait and then at intervals.

The cause of an alert is not known for sure, but what one collector reports in one go most often has
one, be it 5,000 values that a reflector read from an old file. So an alert joins the group that its
collector's reports opened or added to within the group interval.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from gsid_service.notices import Group
from gsid_service.notify.batch import Batch, Note, Route
from gsid_service.notify.news import news


def group(batch: Batch) -> Batch:
    """Give every note a group; hold those with news whose group is not due."""
    route, now = batch.route, batch.now
    known = {note.group.key: note.group for note in batch.notes if note.group and _alive(note)}
    opened: dict[str, Group] = {}

    def place(note: Note) -> Note:
        if note.group is None or not _alive(note):
            cause = note.alert.collector if route.by_cause else note.alert.network
            joined = _joinable(known.values(), cause, route, now) or opened.get(cause)
            if joined is None:
                joined = opened[cause] = Group(batch.new_key(), cause, now)
            note = replace(note, group=joined)
        due = due_at(note.group, route) if note.group else now
        if now < due and news(note, route):
            return note.at("grouping", f"waits with its group until {due:%H:%M:%S} UTC", due)
        return note

    return batch.each(place)


def due_at(group: Group, route: Route) -> datetime:
    if group.flushed_at is None:
        return group.opened_at + route.group_wait
    return group.flushed_at + route.group_interval


def _alive(note: Note) -> bool:
    """Whether the note's group is that of this turn of the alert."""
    if note.told is None or note.paged:
        return True
    return note.group is not None and note.group.opened_at > note.told.at  # since it was over


def _joinable(groups: Iterable[Group], cause: str, route: Route, now: datetime) -> Group | None:
    for group in groups:
        active = (group.flushed_at or group.opened_at) + route.group_interval
        if group.cause == cause and (now < active or not route.by_cause):
            return group
    return None
