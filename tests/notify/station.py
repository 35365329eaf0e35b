"""A notifier on a real database, with alerts that tests open and close at will."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from gsid_service.config import Notify, Receiver, Settings
from gsid_service.jobs.embedded import Embedded
from gsid_service.metrics import Metrics
from gsid_service.notices import Delivery, Sending
from gsid_service.notifier import Notifier
from gsid_service.records import Alert, Status
from gsid_service.store import alerts, outbox, snapshots
from gsid_service.store.database import connect
from tests.notify.listener import SECRET

QUICK: dict[str, Any] = {
    "retry_seconds": 0.01,
    "retry_at_most_seconds": 0.05,
    "give_up_seconds": 30,
}


def webhook(name: str, url: str, **more: Any) -> Receiver:
    known: dict[str, Any] = {
        "group_wait_seconds": 0,
        "group_interval_seconds": 0,
        "secret_env": "NOC_SECRET",
    }
    return Receiver(name=name, type="webhook", url=url, **known | more)


class Station:
    """Saves alerts and plans what to tell of them, as the cycle does."""

    def __init__(self, url: str, receivers: Sequence[Receiver], **notify: Any) -> None:
        self.settings = Settings(receivers=tuple(receivers), notify=Notify(**QUICK | notify))
        self.database, self.metrics = connect(url, migrate=True), Metrics()
        self.woken: list[str] = []
        self.notifier = Notifier(self.settings, self.database, self.metrics, self.now, Embedded())

    def now(self) -> datetime:
        return datetime.now(UTC)

    def save(self, *found: Alert) -> list[Alert]:
        """Keep alerts, new where they have no id, and queue what there is to tell."""
        now = self.now()
        with self.database.write() as connection:
            snapshots.announce(connection, sorted({a.network for a in found}), now)
            kept = [alerts.save(connection, alert, 0) for alert in found]
            plans = []
            for network in sorted({a.network for a in found}):
                mine = [alert for alert in kept if alert.network == network]
                plans.append(self.notifier.plan(connection, network, mine, now))
        for plan in plans:
            self.notifier.go(plan)
        return kept

    def resolve(self, *found: Alert) -> list[Alert]:
        return self.save(*(replace(a, status=Status.RESOLVED, last_seen=self.now()) for a in found))

    def deliveries(
        self, status: Sending | None = None, receiver: str | None = None
    ) -> list[Delivery]:
        wanted = [status.value] if status else []
        with self.database.read() as connection:
            return outbox.page(connection, None, 100_000, None, wanted, receiver)

    def until(self, true: Callable[[], bool], seconds: float = 15) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, self.deliveries()[:5]
            time.sleep(0.02)

    def drained(self) -> bool:
        return not self.deliveries(Sending.PENDING)


@contextmanager
def station(url: str, receivers: Sequence[Receiver], **notify: Any) -> Iterator[Station]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOC_SECRET", SECRET)
        made = Station(url, receivers, **notify)
        made.notifier.prepare()
        made.notifier.jobs.start(made.notifier.work(score=made.woken.append))
        try:
            yield made
        finally:
            made.notifier.jobs.stop()
            made.notifier.close()
            made.database.close()
