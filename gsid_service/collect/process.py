"""The collector process: a thread for each router, one that sends, and `/metrics`."""

import logging
import random
import signal
import sqlite3
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import start_http_server

from gsid_service.collect.classes import singly
from gsid_service.collect.metrics import FAILED, READ, Metrics
from gsid_service.collect.sender import Sender
from gsid_service.collect.settings import Router, Settings
from gsid_service.collect.site import Site
from gsid_service.collect.source import Source, SourceError, open_source
from gsid_service.collect.spool import Spool
from gsid_service.collect.tables import Tables
from gsid_service.collect.view import everything, view_of
from gsid_service.collect.wire import document
from gsid_service.config import BadSettings
from gsid_service.records import Collector

log = logging.getLogger(__name__)
SPOOL = "spool.db"


def run(settings: Settings) -> None:
    """Collect until told to stop; whatever is in the spool then is sent by the next run."""
    sources = {router.name: open_source(router, settings) for router in settings.routers}
    metrics = Metrics(sources)
    spool = open_spool(settings.collector.state, settings.collector.spool_bytes)
    sender = Sender(settings.service, spool, metrics, lambda router: site.start_anew(router))
    site = Site(settings, spool, metrics, sender.news.set)
    serve_metrics(settings, metrics)
    threading.Thread(target=sender.run, name="sender", daemon=True).start()
    for router in settings.routers:
        reader = Reader(router, sources[router.name], settings, site, metrics)
        threading.Thread(target=reader.run, name=router.name, daemon=True).start()
    wait_for_end()


def read_once(settings: Settings) -> list[dict[str, Any]]:
    """A complete snapshot of each router, made without spool or service."""
    tables, sights = Tables(), {}
    for router in settings.routers:
        try:
            sight = open_source(router, settings).read()
        except SourceError as error:
            raise BadSettings(f"routers.{router.name}: {error}") from None
        tables.put(router.name, sight.routes, sight.hops)
        sights[router.name] = sight, datetime.now(UTC)
    return [
        document(
            settings.network,
            Collector(name, sight.role),
            *(0, at, True),
            everything(view_of(name, sight, tables, singly(tables))),
        )
        for name, (sight, at) in sights.items()
    ]


def open_spool(folder: Path, at_most: int) -> Spool:
    """A router that is new to the spool starts at the time: where the folder was lost, its sequence
    goes on above all that the service has."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Spool(folder / SPOOL, at_most, lambda: time.time_ns() // 1_000_000)
    except (OSError, sqlite3.Error) as error:
        raise BadSettings(f"collector.state: {folder}: {error}") from None


def serve_metrics(settings: Settings, metrics: Metrics) -> None:
    host, port = settings.collector.metrics_host, settings.collector.metrics_port
    try:
        server, _ = start_http_server(port, host, metrics.registry)
    except OSError as error:
        raise BadSettings(f"collector.metrics_port: {host}:{port}: {error.strerror}") from None
    log.info("metrics are at http://%s:%d/metrics", host, server.server_port)


def wait_for_end() -> None:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()


class Reader:
    """Reads one router for ever; what goes wrong with it stops no other."""

    def __init__(
        self, router: Router, source: Source, settings: Settings, site: Site, metrics: Metrics
    ) -> None:
        self.router, self.source, self.site, self.metrics = router.name, source, site, metrics
        self.interval = router.interval_seconds or settings.collector.interval_seconds
        self.jitter = settings.collector.jitter
        self._problem = ""

    def run(self) -> None:
        time.sleep(random.uniform(0, self.jitter * self.interval))
        while True:
            self.turn()
            spread = random.uniform(1 - self.jitter, 1 + self.jitter)
            self.source.wait(self.interval * spread)

    def turn(self) -> None:
        """Read the router once, and tell."""
        at, begun = datetime.now(UTC), time.perf_counter()
        try:
            self.site.saw(self.router, self.source.read(), at)
        except Exception as error:
            self._fail(error)
            return
        self.metrics.reads.labels(self.router, READ).inc()
        self.metrics.last_read.labels(self.router).set(at.timestamp())
        self.metrics.read_seconds.labels(self.router).set(time.perf_counter() - begun)
        if self._problem:
            log.info("%s: is read again", self.router)
            self._problem = ""

    def _fail(self, error: Exception) -> None:
        """Said once, until it is another problem; a fault of our own with all that is known."""
        self.metrics.reads.labels(self.router, FAILED).inc()
        self.site.failed(self.router)
        if str(error) != self._problem:
            known = isinstance(error, SourceError)
            log.warning("%s: cannot be read: %s", self.router, error, exc_info=not known)
            self._problem = str(error)
