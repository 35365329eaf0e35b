"""What Prometheus is shown of a network once its cycle is over: by the process that ran it, or,
where there are many, from the store."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection

from gsid_service.drift import shares
from gsid_service.metrics import Metrics
from gsid_service.records import Alert, FloatArray, Severity, Status
from gsid_service.store import alerts as stored_alerts
from gsid_service.store import networks, news, snapshots
from gsid_service.store import scores as stored_scores
from gsid_service.store.news import News
from gsid_service.store.scored import PARAMETERS, Scored

GRAVITY = list(Severity)
ALERTS_AT_MOST = 100_000


def publish(
    metrics: Metrics,
    name: str,
    scored: Scored,
    alerts: Sequence[Alert],
    summary: Mapping[str, Any],
    at_most: int,
) -> None:
    """All series of a network; of single facts and alerts only the worst, `at_most` of each."""
    metrics.know(name)
    found = _by_parameter(scored)
    highest = [(s.parameter, str(s.fact), s.score) for s in scored.highest(at_most)]
    metrics.show_scores(name, highest, {p: float(of.max()) for p, of in found.items()})
    metrics.show_parameters(name, Counter({p: len(of) for p, of in found.items()}))
    metrics.show_shares(name, {p: shares(of) for p, of in found.items()})
    stated = summary.get("broken_stated", {})  # a summary of the release before has none
    metrics.show_broken_intents(name, summary["broken_intents"], stated)
    metrics.stale_facts.labels(name).set(summary["stale_facts"])
    show_alerts(metrics, name, Counter((a.severity.value, a.status.value) for a in alerts))
    metrics.show_opened(name, _opened(alerts, at_most))


class Shown:
    """All networks as they are in the store; what has not changed is not read again."""

    def __init__(self, metrics: Metrics, at_most: Callable[[], int]) -> None:
        self.metrics, self.at_most = metrics, at_most
        self._seen: News | None = None

    def refresh(self, connection: Connection) -> None:
        now = news.look(connection)
        changed = now.since(self._seen, connection) if self._seen else set(now.stamps)
        for name in sorted(changed):
            self._show(connection, name)
        self._seen = now

    def _show(self, connection: Connection, name: str) -> None:
        network = networks.find(connection, name)
        if network is None or network.scored_at is None:
            return
        scored = stored_scores.kept(connection, name)
        found = stored_alerts.page(connection, None, ALERTS_AT_MOST, [name], (), ())
        publish(self.metrics, name, scored, found, network.summary, self.at_most())
        show_collectors(self.metrics, name, snapshots.last_heard(connection, name))


def show_collectors(metrics: Metrics, name: str, heard: Mapping[str, datetime]) -> None:
    for collector, at in heard.items():
        metrics.last_snapshot.labels(name, collector).set(at.timestamp())


def show_alerts(metrics: Metrics, name: str, counted: Counter[tuple[str, str]]) -> None:
    none = {(severity.value, status.value): 0 for severity in Severity for status in Status}
    metrics.show_alerts(name, none | counted)


def _by_parameter(scored: Scored) -> dict[str, FloatArray]:
    """The scores of each parameter that any fact has."""
    columns = zip(PARAMETERS, scored.score.T, strict=True)
    found = {parameter: column[~np.isnan(column)] for parameter, column in columns}
    return {parameter: scores for parameter, scores in found.items() if len(scores)}


def _opened(alerts: Sequence[Alert], at_most: int) -> dict[tuple[str, ...], float]:
    """When the gravest alerts that are not resolved opened."""
    standing = [alert for alert in alerts if alert.status is not Status.RESOLVED]
    standing.sort(key=lambda alert: (GRAVITY.index(alert.severity), -alert.score))
    return {
        _labels(alert): (alert.since or alert.first_seen).timestamp()
        for alert in standing[:at_most]
    }


def _labels(alert: Alert) -> tuple[str, ...]:
    severity, status = alert.severity.value, alert.status.value
    return alert.id, severity, status, alert.parameter, str(alert.fact)
