"""The way of alerts to a receiver: a list of stages of one signature, each giving its reason."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import reduce

from gsid_service.notices import Notification
from gsid_service.notify.batch import Batch, Note, Route, Situation, Stage
from gsid_service.notify.dedup import dedup
from gsid_service.notify.deliver import deliver
from gsid_service.notify.grouping import group
from gsid_service.notify.inhibition import inhibit
from gsid_service.notify.maintenance import maintenance, next_start
from gsid_service.notify.record import record
from gsid_service.notify.severity import severity
from gsid_service.notify.silence import silence
from gsid_service.records import Alert, Status

STAGES: tuple[Stage, ...] = (
    severity,
    maintenance,
    silence,
    inhibit,
    group,
    dedup,
    deliver,
    record,
)


def run(
    route: Route,
    situation: Situation,
    alerts: Iterable[Alert],
    before: Mapping[str, Notification],
) -> Batch:
    """What to tell a receiver of these alerts, and what to remember."""
    notes = tuple(
        _note(alert, before.get(alert.id))
        for alert in alerts
        if alert.status is not Status.RESOLVED or _unfinished(before.get(alert.id))
    )
    return reduce(lambda batch, stage: stage(batch), STAGES, Batch(route, situation, notes, before))


def next_look(batches: Iterable[Batch], situation: Situation) -> datetime | None:
    """When time alone may change something."""
    times = [note.again for batch in batches for note in batch.notes if note.again]
    times += [s.starts_at for s in situation.silences if s.starts_at > situation.now]
    times += [at for window in situation.windows if (at := next_start(window, situation.now))]
    return min(times, default=None)


def _note(alert: Alert, before: Notification | None) -> Note:
    if before is None:
        return Note(alert)
    return replace(Note(alert), told=before.told, group=before.group)


def _unfinished(before: Notification | None) -> bool:
    return before is not None and before.unfinished
