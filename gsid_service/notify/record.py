"""Record: what there is to remember of each alert, where it is not what was known."""

from dataclasses import replace

from gsid_service.notices import Notification
from gsid_service.notify.batch import Batch, Note


def record(batch: Batch) -> Batch:
    records = [(_notification(note, batch), note.delivery) for note in batch.notes]
    fresh = tuple(found for found in records if _differs(found[0], batch))
    return replace(batch, records=fresh)


def _notification(note: Note, batch: Batch) -> Notification:
    return Notification(
        alert=note.alert.id,
        receiver=batch.route.receiver,
        told=note.told,
        group=note.group,
        stage=note.stage,
        reason=note.reason,
        at=batch.now,
        unfinished=not note.over or note.paged,
    )


def _differs(after: Notification, batch: Batch) -> bool:
    before = batch.before.get(after.alert)
    if before is None:
        return True
    return _essence(before) != _essence(after)


def _essence(found: Notification) -> tuple[object, ...]:
    group = found.group.key if found.group else None
    return found.told, group, found.stage, found.reason, found.unfinished
