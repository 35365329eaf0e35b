"""Dedup: a group in which nothing is new is held until it is time to repeat."""

from collections import defaultdict
from datetime import datetime

from gsid_service.notify.batch import Batch, Note, Route, over_at
from gsid_service.notify.news import news
from gsid_service.records import Status


def dedup(batch: Batch) -> Batch:
    route = batch.route
    members: dict[str, list[Note]] = defaultdict(list)
    for note in batch.passing:
        members[_key(note)].append(note)
    telling = {key for key, notes in members.items() if any(news(n, route) for n in notes)}
    repeats = {
        key: min((at for note in notes if (at := repeat_at(note, route, batch.now))), default=None)
        for key, notes in members.items()
    }

    def judge(note: Note) -> Note:
        key = _key(note)
        if not note.over and note.alert.status is Status.ACKNOWLEDGED and not note.paged:
            return note.at("dedup", "acknowledged before anybody was told")
        if note.over and not note.paged:
            return note.at("dedup", "over before anybody was told")
        if key in telling:
            return note
        again = repeats[key]
        if repeat_at(note, route, batch.now) is None:  # whatever else the group says again
            return _known(note, None, batch)
        if again is not None and again <= batch.now and key not in batch.situation.under_way:
            return note
        return _known(note, again, batch)

    return batch.each(judge)


def repeat_at(note: Note, route: Route, now: datetime) -> datetime | None:
    """When to say again what is known; an acknowledged alert is not repeated, except to who groups
    by itself, as Alertmanager does: it takes for over what it does not hear of again."""
    if note.told is None or (route.by_cause and note.alert.status is Status.ACKNOWLEDGED):
        return None
    return over_at(note.told.at, route.repeat_interval, now)


def _known(note: Note, again: datetime | None, batch: Batch) -> Note:
    told = "" if note.told is None else f"told at {note.told.at:%Y-%m-%d %H:%M:%S} UTC"
    if again is None:
        return note.at("dedup", f"{told}; acknowledged, so not repeated until it changes or clears")
    if again <= batch.now:
        later = batch.now + batch.route.repeat_interval
        return note.at("dedup", f"{told}; the message before is still under way", later)
    return note.at("dedup", f"{told}; repeated at {again:%Y-%m-%d %H:%M:%S} UTC", again)


def _key(note: Note) -> str:
    return note.group.key if note.group else ""
