"""A site: the routers of one process, what each sees, and what the service is told of it."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from gsid_service.collect import class_file
from gsid_service.collect.classes import Grouping, alike, singly
from gsid_service.collect.metrics import Metrics
from gsid_service.collect.settings import Settings
from gsid_service.collect.source import Sight
from gsid_service.collect.spool import Spool
from gsid_service.collect.tables import Tables
from gsid_service.collect.view import View, changes, everything, view_of
from gsid_service.collect.wire import document, packed
from gsid_service.records import Collector
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF, MED

log = logging.getLogger(__name__)
CLASSES = "classes.tsv.gz"
SAVE_SECONDS = 300.0


@dataclass
class Told:
    """What the service was last told of a router, and when."""

    view: View
    at: float
    complete_at: float


class Site:
    """Takes what routers see, from a thread for each, and spools what is new."""

    def __init__(
        self,
        settings: Settings,
        spool: Spool,
        metrics: Metrics,
        news: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.spool, self.metrics = settings, spool, metrics
        self.news, self.clock = news, clock
        self._lock = threading.Lock()
        self._tables = Tables()
        self._file = settings.collector.state / CLASSES
        self._classes = class_file.load(self._file, self._tables)
        self._saved_at = clock() - SAVE_SECONDS
        self._sights: dict[str, tuple[Sight, datetime]] = {}
        self._told: dict[str, Told] = {}
        self._untried = {router.name for router in settings.routers}

    def saw(self, router: str, sight: Sight, at: datetime) -> None:
        """Take what a router sees now."""
        with self._lock:
            self._untried.discard(router)
            self._sights[router] = sight, at
            self._tables.put(router, sight.routes, sight.hops)
            self._tell([router])

    def failed(self, router: str) -> None:
        """A router could not be read: what it said before stands, and grows stale."""
        with self._lock:
            if router in self._untried:
                self._untried.discard(router)
                self._tell([])

    def start_anew(self, router: str) -> None:
        """The service did not take something: the next snapshot is complete."""
        with self._lock:
            self._told.pop(router, None)

    def _tell(self, routers: Iterable[str]) -> None:
        """Spool what is new of some routers; with classes, of all, since one can split another's.

        Classes rest on what every gateway hears, and so wait until each was tried.
        """
        if self._has_classes():
            if self._untried:
                return
            self._classes = grouping = alike(self._tables, self._classes)
            self._save(grouping)
            routers = self._sights
        else:
            grouping = singly(self._tables)
        self.metrics.prefixes.set(len(self._tables.prefixes.values) - 1)
        self.metrics.destinations.set(len(grouping.destinations))
        for router in routers:
            sight, at = self._sights[router]
            self._tell_of(router, view_of(router, sight, self._tables, grouping), at)

    def _save(self, grouping: Grouping) -> None:
        """Now and then: a restart may begin from classes that are a little old."""
        if self.clock() - self._saved_at >= SAVE_SECONDS:
            class_file.save(self._file, self._tables, grouping)
            self._saved_at = self.clock()

    def _has_classes(self) -> bool:
        """Once there are any they stay, so that destinations do not change their names again."""
        many = len(self._tables.prefixes.values) > self.settings.collector.classes_from
        return many or self._classes is not None

    def _tell_of(self, router: str, view: View, at: datetime) -> None:
        told, now = self._told.get(router), self.clock()
        complete = told is None or self._is_due(told, now)
        said = everything(view) if told is None or complete else changes(told.view, view)
        self._measure(router, view)
        if not said and told is not None and not self._is_quiet(router, told, now):
            return
        about = Collector(router, view.role)
        dropped = self.spool.put(
            router,
            complete,
            lambda sequence: packed(
                document(self.settings.network, about, sequence, at, complete, said)
            ),
        )
        since = now if told is None or complete else told.complete_at
        self._told[router] = Told(view, now, since)
        self.metrics.show_spool(*self.spool.size())
        if dropped:
            self.metrics.dropped.inc(dropped)
            log.warning("the spool is full: %d older snapshots of it were dropped", dropped)
        self.news()

    def _measure(self, router: str, view: View) -> None:
        self.metrics.facts.labels(router).set(len(view.facts))
        routes = [fact for fact in view.facts.values() if fact.predicate == BGP_ROUTE.name]
        for parameter in (LOCAL_PREF, MED):
            unset = sum(parameter.name not in route.params for route in routes)
            self.metrics.unset.labels(router, parameter.name).set(unset)

    def _is_due(self, told: Told, now: float) -> bool:
        """A complete view, now and then; and where the spool is full, since it replaces others."""
        return now - told.complete_at >= self.settings.collector.complete_seconds or self.spool.full

    def _is_quiet(self, router: str, told: Told, now: float) -> bool:
        """Whether the service should be told that there is nothing new."""
        silent = now - told.at >= self.settings.collector.heartbeat_seconds
        return silent and not self.spool.has(router)
