"""Small records for tests of notifications."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from gsid_service.notices import Matcher, Mode, Notification, Silence, Window
from gsid_service.notify import pipeline
from gsid_service.notify.batch import Batch, Route, Situation
from gsid_service.records import Alert, FactKey, Severity, Status
from tests.store.making import NOW

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
ROUTE = Route("noc")
AT_ONCE = replace(ROUTE, group_wait=timedelta(0), group_interval=timedelta(0))


def alert(number: int = 1, **changes: Any) -> Alert:
    known = Alert(
        id=f"a{number}",
        network="net",
        fact=FactKey("bgp_route", (f"AS65101@R{number}", "203.0.113.0/24")),
        parameter="local_pref",
        status=Status.FIRING,
        severity=Severity.CRITICAL,
        score=0.97,
        observed=80,
        expected=200,
        snapshot_id="s7",
        collector="rr1",
        first_seen=NOW,
        last_seen=NOW,
        since=NOW,
    )
    return replace(known, **changes)


def silence(*matchers: tuple[str, str, str], **changes: Any) -> Silence:
    found = tuple(Matcher(*matcher) for matcher in matchers)
    known = Silence(1, found, "ann", "known", NOW, NOW, NOW + HOUR)
    return replace(known, **changes)


def window(**changes: Any) -> Window:
    known = Window(
        *(1, None, None, None, Mode.MUTE, NOW, NOW + HOUR, None, "UTC", "ann", "works", NOW)
    )
    return replace(known, **changes)


class Telling:
    """One receiver through time: runs the stages, and remembers what they say."""

    def __init__(self, route: Route = ROUTE) -> None:
        self.route, self.now = route, NOW
        self.known: dict[str, Notification] = {}
        self.batch: Batch | None = None

    def look(self, alerts: Iterable[Alert], after: timedelta = timedelta(0), **known: Any) -> Batch:
        self.now += after
        situation = Situation(self.now, **known)
        self.batch = pipeline.run(self.route, situation, list(alerts), self.known)
        for record, _ in self.batch.records:
            self.known[record.alert] = record
        return self.batch

    def kinds(
        self, alerts: Iterable[Alert], after: timedelta = timedelta(0), **k: Any
    ) -> list[str]:
        return [out.kind for out in self.look(alerts, after, **k).outgoing]

    def why(self, number: int = 1) -> tuple[str, str]:
        found = self.known[f"a{number}"]
        return found.stage, found.reason
