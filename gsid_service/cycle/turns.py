"""From the alerts of a network before and after a round to lines in the log, one for each turn."""

from collections.abc import Iterable, Mapping

import structlog

from gsid_service.alert.decide import TURNS
from gsid_service.records import Alert, AlertEvent
from gsid_service.store.alerts import Slot

log = structlog.get_logger()
LINES = 100  # of one round: a flood of alerts is told by its number


def log_turns(before: Mapping[Slot, Alert], after: Iterable[Alert]) -> None:
    """What opened or resolved, and why."""
    turned = [(turn, alert) for alert in after for turn in _turns(before, alert)]
    for turn, alert in turned[:LINES]:
        log.info(
            f"alert {turn.what}",
            alert=alert.id,
            network=alert.network,
            fact=str(alert.fact),
            parameter=alert.parameter,
            severity=alert.severity.value,
            observed=alert.observed,
            expected=alert.expected,
            why=turn.why,
        )
    if len(turned) > LINES:
        network, more = turned[0][1].network, len(turned) - LINES
        log.info("more alerts opened or resolved", network=network, more=more)


def _turns(before: Mapping[Slot, Alert], alert: Alert) -> list[AlertEvent]:
    known = before.get((alert.fact, alert.parameter))
    fresh = alert.events[len(known.events) if known else 0 :]
    return [event for event in fresh if event.what in TURNS]
