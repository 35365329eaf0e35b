"""From an alert to the one sentence that a person reads first."""

from gsid_service.records import Alert, Status


def sentence(alert: Alert) -> str:
    """What is wrong where, what it should be, and what it breaks."""
    where = f"{alert.parameter} of {alert.fact} in {alert.network}"
    if alert.status is Status.RESOLVED:
        return f"Restored: {where} is no longer wrong."
    expected = "" if alert.expected is None else f", expected {alert.expected}"
    broken = f"; it breaks {len(alert.broken_intents)} intents" if alert.broken_intents else ""
    moved = f"; it moves {len(alert.moved)} paths" if alert.moved else ""
    return f"{where} is {alert.observed}{expected}{broken}{moved}."
