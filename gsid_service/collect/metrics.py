"""The collector's own Prometheus series, in one registry."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, PlatformCollector, ProcessCollector

READ, FAILED = "read", "failed"
FATES = ("accepted", "rejected", "again")


class Metrics:
    """One set of series; a test may have its own."""

    def __init__(self, routers: Iterable[str]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.reads = self._counter("reads", "Turns of a router, by outcome.", "router", "outcome")
        self.sent = self._counter("sent", "Snapshots sent, by what became.", "router", "outcome")
        self.dropped = self._counter("dropped", "Snapshots dropped by a full spool.")
        self.last_read = self._gauge(
            "last_read_timestamp_seconds", "When a router was last read.", "router"
        )
        self.read_seconds = self._gauge("read_seconds", "How long that took.", "router")
        self.facts = self._gauge("facts", "Facts in a router's view.", "router")
        self.unset = self._gauge(
            "unset_values",
            "Routes without the attribute; the default holds.",
            "router",
            "attribute",
        )
        self.prefixes = self._gauge("prefixes", "Prefixes that some router hears or forwards.")
        self.destinations = self._gauge("destinations", "What stands for them: they or classes.")
        self.spooled = self._gauge("spool_snapshots", "Snapshots that wait for the service.")
        self.spooled_bytes = self._gauge("spool_bytes", "Their size.")
        for router in routers:
            for outcome in (READ, FAILED):
                self.reads.labels(router, outcome)
            for fate in FATES:
                self.sent.labels(router, fate)

    def show_spool(self, snapshots: int, size: int) -> None:
        self.spooled.set(snapshots)
        self.spooled_bytes.set(size)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"gsid_collect_{name}_total", about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"gsid_collect_{name}", about, labels, registry=self.registry)
