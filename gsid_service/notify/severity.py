"""The severity filter: what is less severe than a receiver wants is held."""

from gsid_service.notify.batch import Batch, Held, Note
from gsid_service.records import Severity

ORDER = tuple(Severity)  # the gravest first


def severity(batch: Batch) -> Batch:
    least = batch.route.min_severity

    def why(note: Note) -> Held | None:
        found = note.alert.severity
        if ORDER.index(found) <= ORDER.index(least):
            return None
        return f"{found.value} is below {least.value}, the least it is told of", None

    return batch.holding("severity", why)
