"""Every Prometheus series of the service, in one registry."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

OUTCOMES = ("accepted", "duplicate", "conflict", "invalid", "refused")
STAGES = ("merge", "simulate", "assemble", "score", "verify", "save")
DELIVERY_OUTCOMES = ("delivered", "retried", "dead")
PENDING, DEAD = "pending", "dead"
VERDICTS = ("true", "false")
AREAS = ("ingest", "api", "operations", "console")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """One set of series; a test may have its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.snapshots = Counter(
            "gsid_snapshots_total",
            "Snapshots by what became of them.",
            ["network", "outcome"],
            registry=self.registry,
        )
        self.last_snapshot = self._gauge(
            "gsid_collector_last_snapshot_timestamp_seconds",
            "When a collector's newest snapshot, by its sequence, came in.",
            "network",
            "collector",
        )
        self.parameters = self._gauge(
            "gsid_parameters", "Values that are scored.", "network", "parameter"
        )
        self.score = self._gauge(
            "gsid_anomaly_score",
            "The highest scores of each network.",
            *("network", "parameter", "fact"),
        )
        self.score_max = self._gauge(
            "gsid_anomaly_score_max", "The highest score of a parameter.", "network", "parameter"
        )
        self.open_score = self._gauge(
            "gsid_alert_open_score", "The score from which an alert opens, as it is set."
        )
        self.score_share = self._gauge(
            "gsid_score_share",
            "The share of a network's values that score at most so much.",
            *("network", "parameter", "at_most"),
        )
        self.training_share = self._gauge(
            "gsid_training_score_share",
            "The same of the networks that the model was made with.",
            *("parameter", "at_most"),
        )
        self.broken_intents = self._gauge(
            "gsid_broken_intents", "Intents that do not hold, by their kind.", "network", "kind"
        )
        self.broken_stated = self._gauge(
            "gsid_broken_stated_intents",
            "Those of them that an operator stated, by their kind.",
            *("network", "kind"),
        )
        self.alerts = self._gauge(
            "gsid_alerts", "Alerts by severity and status.", "network", "severity", "status"
        )
        self.alert_opened = self._gauge(
            "gsid_alert_opened_timestamp_seconds",
            "When the gravest open alerts of each network opened.",
            *("network", "alert", "severity", "status", "parameter", "fact"),
        )
        self.requests = Histogram(
            "gsid_request_seconds",
            "How long requests take to be answered.",
            ["area", "status"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.unauthorized = Counter(
            "gsid_unauthorized_total",
            "Requests without a token, or with one that is not known.",
            registry=self.registry,
        )
        self.cycle = Histogram(
            "gsid_cycle_seconds",
            "How long each stage of a cycle takes.",
            ["stage"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.cycle_failures = Counter(
            "gsid_cycle_failures_total",
            "Cycles that ended in an error.",
            ["network"],
            registry=self.registry,
        )
        self.queue = self._gauge("gsid_ingest_queue", "Snapshots that wait to be stored.")
        self.stale_seconds = self._gauge(
            "gsid_collector_stale_seconds",
            "How long a collector may be silent, as it is set.",
        )
        self.stale_facts = self._gauge(
            "gsid_stale_facts", "Facts that only silent collectors state.", "network"
        )
        self.notifications = Counter(
            "gsid_notifications_total",
            "Tries to deliver a message, by what became of them.",
            ["receiver", "outcome"],
            registry=self.registry,
        )
        self.outbox_pending = self._gauge(
            "gsid_outbox_pending", "Messages that are not delivered yet."
        )
        self.outbox_dead = self._gauge(
            "gsid_outbox_dead", "Messages that were given up, and can be replayed.", "receiver"
        )
        self.verdicts = self._gauge(
            "gsid_alert_verdicts",
            "Alerts that operators called a true or a false alarm.",
            *("network", "verdict"),
        )
        self.precision = self._gauge(
            "gsid_alert_precision_ratio", "True alarms among all that were judged.", "network"
        )
        self.model = Info("gsid_model", "The model that scores.", registry=self.registry)
        for stage in STAGES:
            self.cycle.labels(stage)
        for area in AREAS:
            self.requests.labels(area, "2xx")

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        with self.cycle.labels(name).time():
            yield

    def know(self, network: str) -> None:
        """Initialise the series of a network, so that a first event is seen as an increase."""
        for outcome in OUTCOMES:
            self.snapshots.labels(network, outcome)
        self.cycle_failures.labels(network)

    def show_scores(
        self, network: str, highest: Iterable[tuple[str, str, float]], most: Mapping[str, float]
    ) -> None:
        """The highest scores as (parameter, fact, score), in place of those before."""
        self.score.remove_by_labels({"network": network})
        for parameter, fact, score in highest:
            self.score.labels(network, parameter, fact).set(score)
        self.score_max.remove_by_labels({"network": network})
        for parameter, score in most.items():
            self.score_max.labels(network, parameter).set(score)

    def show_shares(self, network: str, shares: Mapping[str, Mapping[str, float]]) -> None:
        """How the scores of each parameter are spread, in place of what was before."""
        self.score_share.remove_by_labels({"network": network})
        for parameter, steps in shares.items():
            for step, share in steps.items():
                self.score_share.labels(network, parameter, step).set(share)

    def show_model(self, name: str, shares: Mapping[str, Mapping[str, float]]) -> None:
        """The model, and how its scores were spread when it was made."""
        self.model.info({"name": name})
        for parameter, steps in shares.items():
            for step, share in steps.items():
                self.training_share.labels(parameter, step).set(share)

    def show_opened(self, network: str, opened: Mapping[tuple[str, ...], float]) -> None:
        """When alerts opened, by (alert, severity, status, parameter, fact)."""
        self.alert_opened.remove_by_labels({"network": network})
        for labels, at in opened.items():
            self.alert_opened.labels(network, *labels).set(at)

    def watch_scorer(self, pid: Callable[[], int]) -> None:
        """The memory and time of the process that scores, beside those of this one."""
        ProcessCollector(namespace="gsid_scorer", pid=pid, registry=self.registry)

    def answered(self, area: str, status: int, seconds: float) -> None:
        self.requests.labels(area, f"{status // 100}xx").observe(seconds)
        if status == HTTPStatus.UNAUTHORIZED:
            self.unauthorized.inc()

    def show_parameters(self, network: str, counts: Mapping[str, int]) -> None:
        self.parameters.remove_by_labels({"network": network})
        for parameter, count in counts.items():
            self.parameters.labels(network, parameter).set(count)

    def show_broken_intents(
        self, network: str, counts: Mapping[str, int], stated: Mapping[str, int]
    ) -> None:
        for gauge, found in ((self.broken_intents, counts), (self.broken_stated, stated)):
            gauge.remove_by_labels({"network": network})
            for kind, count in found.items():
                gauge.labels(network, kind).set(count)

    def show_alerts(self, network: str, counts: Mapping[tuple[str, str], int]) -> None:
        for (severity, status), count in counts.items():
            self.alerts.labels(network, severity, status).set(count)

    def know_receivers(self, receivers: Iterable[str]) -> None:
        for receiver in receivers:
            for outcome in DELIVERY_OUTCOMES:
                self.notifications.labels(receiver, outcome)

    def notified(self, receiver: str, outcome: str, count: int) -> None:
        self.notifications.labels(receiver, outcome).inc(count)

    def show_outbox(self, receivers: Iterable[str], counts: Mapping[tuple[str, str], int]) -> None:
        """Messages by receiver and status."""
        self.outbox_pending.set(sum(n for (_, status), n in counts.items() if status == PENDING))
        self.outbox_dead.clear()
        for receiver in {*receivers, *(name for name, _ in counts)}:
            self.outbox_dead.labels(receiver).set(counts.get((receiver, DEAD), 0))

    def show_verdicts(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        for network, judged in counts.items():
            for verdict in VERDICTS:
                self.verdicts.labels(network, verdict).set(judged.get(verdict, 0))
            self.precision.labels(network).set(judged.get("true", 0) / sum(judged.values()))

    def text(self) -> bytes:
        return generate_latest(self.registry)
