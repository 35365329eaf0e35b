"""Telling the NOC: wires the stages of `notify` to the store, and runs what delivers.

What there is to tell of a network is planned in the transaction that changes its alerts, and again
when time alone may change it: a wait is over, a silence ends, something still fires.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from gsid_service.config import BadSettings, Settings
from gsid_service.config import Receiver as Wanted
from gsid_service.metrics import Metrics
from gsid_service.notices import Delivery, Message, Mode, Notification, Sending, Window
from gsid_service.notify import pipeline
from gsid_service.notify.batch import Route, Situation
from gsid_service.notify.maintenance import concerns, holds_back, next_start, open_until
from gsid_service.notify.receivers import BadReceiver, Receiver, Target, make
from gsid_service.notify.retry import DeliveryError, Patience
from gsid_service.notify.sample import sample
from gsid_service.notify.silence import with_status
from gsid_service.notify.worker import Worker
from gsid_service.records import Alert, FactKey, Severity, Status
from gsid_service.store import (
    alerts,
    maintenance,
    networks,
    notifications,
    outbox,
    scores,
    silences,
    verdicts,
)
from gsid_service.store.database import Database

log = structlog.get_logger()
LOOK_SECONDS = 30.0  # at least so often
LATE = datetime.max.replace(tzinfo=UTC)
PAUSE_SECONDS = 1.0
STOP_SECONDS = 5.0  # for a message that is under way
NO_LONGER = "the receiver is no longer in the settings"


@dataclass(frozen=True, slots=True)
class Channel:
    """A receiver, and how it wants to be told."""

    route: Route
    kind: str
    receiver: Receiver


def channels(settings: Settings, environment: Mapping[str, str] = os.environ) -> list[Channel]:
    """The receivers of the settings; raises `BadSettings` that names the key."""
    made = []
    for place, wanted in enumerate(settings.receivers):
        try:
            receiver = make(wanted.type, _target(wanted, settings, environment))
        except BadReceiver as error:
            key = error.key
            if key == "secret_env" and wanted.secret_file is not None:
                key = "secret_file"
            raise BadSettings(f"receivers[{place}].{key}: {error.reason}") from None
        made.append(Channel(_route(wanted, settings, receiver), wanted.type, receiver))
    return made


def _target(wanted: Wanted, settings: Settings, environment: Mapping[str, str]) -> Target:
    return Target(
        name=wanted.name,
        url=wanted.url,
        secrets=_secrets(wanted, environment),
        external_url=settings.notify.external_url.rstrip("/"),
        allow_http=wanted.allow_http,
        hosts=settings.notify.hosts,
        timeout=settings.notify.timeout_seconds,
        resend=wanted.repeat_interval_seconds or settings.notify.resend_seconds,
    )


def _secrets(wanted: Wanted, environment: Mapping[str, str]) -> Callable[[], tuple[str, ...]]:
    """Read when they are needed: a file may change, and several in it are a rotation."""

    def read() -> tuple[str, ...]:
        if wanted.secret_file is not None:
            try:
                return tuple(wanted.secret_file.read_text().split())
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not text"
                raise BadReceiver("secret_file", f"{wanted.secret_file}: {reason}") from None
        if wanted.secret_env is None:
            return ()
        found = tuple(environment.get(wanted.secret_env, "").split())
        if not found:
            raise BadReceiver("secret_env", f"the variable {wanted.secret_env} is not set")
        return found

    return read


def _route(wanted: Wanted, settings: Settings, receiver: Receiver) -> Route:
    common = settings.notify
    wait, interval = wanted.group_wait_seconds, wanted.group_interval_seconds
    repeat = wanted.repeat_interval_seconds
    if receiver.by_cause:
        wait = common.group_wait_seconds if wait is None else wait
        interval = common.group_interval_seconds if interval is None else interval
        repeat = repeat or common.repeat_interval_seconds
    return Route(
        receiver=wanted.name,
        min_severity=Severity(wanted.min_severity),
        group_wait=timedelta(seconds=wait or 0),
        group_interval=timedelta(seconds=interval or 0),
        repeat_interval=timedelta(seconds=repeat or common.resend_seconds),
        by_cause=receiver.by_cause,
        acknowledgements=receiver.acknowledgements,
    )


class Plan(NamedTuple):
    """What a transaction has planned; to be put to work once it is durable."""

    alerts: list[Alert]  # silenced where they are
    receivers: frozenset[str] = frozenset()  # that there is a message for
    look_at: datetime | None = None  # when to plan again


class Notifier:
    """Plans what to tell, and has it delivered."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        metrics: Metrics,
        clock: Callable[[], datetime],
        wake_cycle: Callable[[Iterable[str]], None],
    ) -> None:
        self.database, self.metrics, self.clock = database, metrics, clock
        self.wake_cycle = wake_cycle
        self.channels = {c.route.receiver: c for c in channels(settings)}
        wanted = settings.notify
        patience = Patience(
            first=timedelta(seconds=wanted.retry_seconds),
            longest=timedelta(seconds=wanted.retry_at_most_seconds),
            span=timedelta(seconds=wanted.give_up_seconds),
        )
        metrics.know_receivers(self.channels)
        self._workers = {
            name: Worker(name, c.receiver, _Outbox(database), patience, clock, metrics.notified)
            for name, c in self.channels.items()
        }
        self._held: list[Window] = []  # in which no alert opened, when last looked at
        self._wake, self._stopping = threading.Event(), False
        self._until = LATE  # when it looks next
        self._thread = threading.Thread(target=self._run, name="notify", daemon=True)

    # Starting and stopping

    def start(self) -> None:
        with self.database.write() as connection:
            for receiver, status in outbox.count(connection):
                if receiver not in self.channels and status == Sending.PENDING.value:
                    outbox.bury(connection, receiver, self.clock(), NO_LONGER)
            if self.channels:  # of which one may be new, or want other things than before
                notifications.look_at_all(connection, self.clock())
        self._thread.start()
        for worker in self._workers.values():
            worker.start()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        for worker in self._workers.values():
            worker.stop()
        self._thread.join()
        for worker in self._workers.values():
            worker.join(STOP_SECONDS)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and all(worker.alive for worker in self._workers.values())

    def wake(self) -> None:
        """There is something new in the store, to look at or to deliver."""
        self._wake.set()
        for worker in self._workers.values():
            worker.wake()

    def go(self, plan: Plan) -> None:
        """Put to work what was planned, now that it is durable."""
        for name in plan.receivers:
            self._workers[name].wake()
        if plan.look_at is not None and plan.look_at < self._until:
            self._wake.set()

    # Planning

    def plan(
        self, connection: Connection, network: str, found: Sequence[Alert], now: datetime
    ) -> Plan:
        """Queue what there is to tell of alerts."""
        known = notifications.of_network(connection, network) if self.channels else []
        if not known and all(alert.status is Status.RESOLVED for alert in found):
            return Plan(list(found))
        situation = self._situation(connection, network, now)
        after = [_saved(connection, alert, with_status(alert, situation)) for alert in found]
        disabled = outbox.disabled(connection)
        batches = []
        for name, channel in self.channels.items():
            mine = {n.alert: n for n in known if n.receiver == name}
            batch = pipeline.run(channel.route, situation, after, mine)
            notifications.save(connection, network, batch.records)
            dead = disabled[name].reason if name in disabled else None
            outbox.put(connection, network, name, batch.outgoing, now, dead)
            batches.append(batch)
        self._drop_unknown(connection, network, known, now)
        look_at = pipeline.next_look(batches, situation)
        if self.channels or look_at is not None:
            notifications.look_at(connection, [network], look_at)
        told = frozenset(batch.route.receiver for batch in batches if batch.outgoing)
        return Plan(after, told, look_at)

    def _situation(self, connection: Connection, network: str, now: datetime) -> Situation:
        quiet = (
            tuple(silences.unexpired(connection, now)),
            tuple(maintenance.standing(connection, now)),
        )
        if not self.channels:  # nothing else matters to who is told by nobody
            return Situation(now, *quiet)
        about = networks.find(connection, network)
        missing = about.summary.get("missing", ()) if about else ()
        return Situation(
            now,
            *quiet,
            tuple(FactKey(predicate, tuple(args)) for predicate, args in missing),
            frozenset(scores.stale(connection, network)),
            frozenset(outbox.waiting_groups(connection, network)),
        )

    def _drop_unknown(
        self, connection: Connection, network: str, known: Iterable[Notification], now: datetime
    ) -> None:
        gone = [
            (n._replace(unfinished=False, stage="receiver", reason=NO_LONGER, at=now), None)
            for n in known
            if n.receiver not in self.channels and n.unfinished
        ]
        notifications.save(connection, network, gone)

    def holding(
        self, connection: Connection, network: str, now: datetime
    ) -> Callable[[FactKey, str], bool]:
        """Whether a maintenance window lets no alert open about a value."""
        windows = holds_back(maintenance.standing(connection, now), network, now)
        return lambda fact, parameter: any(
            concerns(window, network, fact, parameter) for window in windows
        )

    # What time alone asks for

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                wait = self._look()
            except Exception:
                # Such as a database that is away, and may come back. What is due stays so.
                log.exception("the notifier goes on")
                wait = PAUSE_SECONDS
            if wait > 0 and not self._stopping:
                self._wake.wait(wait)

    def _look(self) -> float:
        """Look at the networks that are due; seconds until the next is."""
        now, self._until = self.clock(), LATE
        with self.database.read() as connection:
            names = notifications.to_look_at(connection, now)
        for name in names:
            self._look_at(name, now)
        ends = self._open_again(now)
        with self.database.read() as connection:
            following = notifications.next_look(connection)
        times = [at for at in (following, *ends) if at is not None]
        now = self.clock()
        self._until = min([*times, now + timedelta(seconds=LOOK_SECONDS)])
        return (self._until - now).total_seconds()

    def _look_at(self, name: str, now: datetime) -> None:
        with self.database.write() as connection:
            before = alerts.unfinished(connection, name)  # all lock alerts first, then the network
            notifications.look_at(connection, [name], None)
            plan = self.plan(connection, name, before, now)
        self.go(plan)
        if before != plan.alerts:  # so that the metrics show it
            self.wake_cycle([name])

    def _open_again(self, now: datetime) -> list[datetime]:
        """Let alerts open that a window held back and that is over; when the next one is."""
        with self.database.read() as connection:
            standing = maintenance.standing(connection, now)
            names = networks.names(connection)
        held = [w for w in standing if w.mode is Mode.HOLD and open_until(w, now)]
        over = [window for window in self._held if window not in held]
        self._held = held
        for window in over:
            self.wake_cycle(names if window.network is None else [window.network])
        begins = [at for w in standing if (at := next_start(w, now))]
        return [at for w in self._held if (at := open_until(w, now))] + begins

    # What people ask for

    def test(self, name: str) -> tuple[bool, str]:
        """Send a test message, now and past the outbox; whether it arrived, and the answer."""
        channel, now = self.channels[name], self.clock()
        try:
            return True, channel.receiver.send(f"msg_{uuid4().hex}", sample(now), now)
        except (DeliveryError, BadReceiver) as error:
            return False, str(error)

    def show(self) -> None:
        """Set the metrics that rest on the store."""
        with self.database.read() as connection:
            unsent, judged = outbox.count(connection), verdicts.count(connection)
        self.metrics.show_outbox(self.channels, unsent)
        self.metrics.show_verdicts(judged)


def _saved(connection: Connection, before: Alert, after: Alert) -> Alert:
    return after if after is before else alerts.save(connection, after, len(before.events))


class _Outbox:
    """The store's outbox, each step a transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def take(self, receiver: str, now: datetime) -> tuple[Delivery, Message] | datetime | None:
        with self.database.read() as connection:
            return outbox.take(connection, receiver, now)

    def delivered(self, delivery: Delivery, now: datetime, answer: str) -> None:
        self._settle(delivery, now, status=Sending.DELIVERED, answer=answer)

    def postponed(self, delivery: Delivery, due: datetime, answer: str) -> None:
        self._settle(delivery, due, due=due, answer=answer)

    def dead(self, delivery: Delivery, now: datetime, answer: str) -> None:
        self._settle(delivery, now, status=Sending.DEAD, answer=answer)

    def gone(self, delivery: Delivery, now: datetime, answer: str) -> int:
        with self.database.write() as connection:
            outbox.settle(connection, delivery.number, now, status=Sending.DEAD, answer=answer)
            return 1 + outbox.disable(connection, delivery.receiver, now, answer)

    def expire(self, receiver: str, before: datetime, now: datetime, answer: str) -> int:
        with self.database.write() as connection:
            return outbox.bury(connection, receiver, now, answer, before)

    def _settle(self, delivery: Delivery, now: datetime, **became: object) -> None:
        with self.database.write() as connection:
            outbox.settle(connection, delivery.number, now, **became)
