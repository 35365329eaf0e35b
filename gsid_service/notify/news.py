"""From what a receiver was told of an alert, and the alert as it is, to what is new in it."""

from gsid_service.notify.batch import Note, Route
from gsid_service.records import Status

NEW, CHANGED, RESTORED, ACKNOWLEDGED = "new", "changed", "restored", "acknowledged"


def news(note: Note, route: Route) -> tuple[str, str] | None:
    """Its kind, and a reason; None where the receiver knows all."""
    alert, told = note.alert, note.told
    if told is None or not note.paged:
        if alert.status in {Status.RESOLVED, Status.ACKNOWLEDGED}:
            return None
        return NEW, "it was not told of it yet"
    if note.over:
        return RESTORED, "it was told, and now it is over"
    if alert.severity is not told.severity:
        return CHANGED, f"now {alert.severity.value}, told as {told.severity.value}"
    if alert.observed != told.observed:
        return CHANGED, f"the value is now {alert.observed}, told as {told.observed}"
    if route.acknowledgements and (alert.status is Status.ACKNOWLEDGED) != (
        told.status is Status.ACKNOWLEDGED
    ):
        return ACKNOWLEDGED, "somebody looks after it"
    return None
