"""Deliver: what no stage held becomes one message a group, for the outbox."""

from collections import defaultdict
from dataclasses import replace

from gsid_service.notices import REPEAT, Group, Outgoing, Told
from gsid_service.notify.batch import Batch, Note, Route
from gsid_service.notify.dedup import repeat_at
from gsid_service.notify.message import compose
from gsid_service.notify.news import ACKNOWLEDGED, CHANGED, NEW, RESTORED, news
from gsid_service.records import Status

KINDS = (NEW, CHANGED, RESTORED, ACKNOWLEDGED, REPEAT)  # a message is named for the first in it


def deliver(batch: Batch) -> Batch:
    members: dict[Group, list[Note]] = defaultdict(list)
    for note in batch.passing:
        if note.group is not None:
            members[note.group].append(note)
    outgoing = {group.key: _outgoing(batch, group, notes) for group, notes in members.items()}

    def tell(note: Note) -> Note:
        out = outgoing.get(note.group.key) if note.group else None
        if out is None:
            return note
        note = replace(note, group=out.group)
        return note if note.held else _told(note, out, batch)

    notes = tuple(tell(note) for note in batch.notes)
    return replace(batch, notes=notes, outgoing=tuple(outgoing.values()))


def _outgoing(batch: Batch, group: Group, notes: list[Note]) -> Outgoing:
    kind, reason = min((_why(n, batch.route) for n in notes), key=lambda why: KINDS.index(why[0]))
    flushed = group._replace(flushed_at=batch.now)
    message = compose(kind, reason, group, notes)
    return Outgoing(f"msg_{batch.new_key()}", flushed, kind, message)


def _why(note: Note, route: Route) -> tuple[str, str]:
    return news(note, route) or (REPEAT, f"said again, after {route.repeat_interval}")


def _told(note: Note, out: Outgoing, batch: Batch) -> Note:
    alert = note.alert
    status = Status.FIRING if alert.status is Status.SILENCED else alert.status
    own = news(note, batch.route)
    reason = own[1] if own else f"with its group: {out.message['reason']}"
    told = Told(status, alert.severity, alert.observed, batch.now)
    after = replace(note, told=told, stage="deliver", reason=reason, delivery=out.key)
    return replace(after, again=None if note.over else repeat_at(after, batch.route, batch.now))
