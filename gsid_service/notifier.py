"""Telling the NOC: wires the stages of `notify` to the store, and runs what delivers.

What there is to tell of a network is planned in the transaction that changes its alerts, and again
when time alone may change it: a wait is over, a silence ends, something still fires.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from gsid_service.config import BadSettings, Settings
from gsid_service.config import Receiver as Wanted
from gsid_service.jobs import Jobs, Work
from gsid_service.metrics import Metrics
from gsid_service.notices import Delivery, Message, Mode, Notification, Sending
from gsid_service.notify import pipeline
from gsid_service.notify.batch import AHEAD, Route, Situation
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
    snapshots,
    verdicts,
)
from gsid_service.store.database import Database
from gsid_service.store.outbox import Hold

log = structlog.get_logger()
LOOK_SECONDS = 5.0  # at least so often
LATE = datetime.max.replace(tzinfo=UTC)
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
        jobs: Jobs,
    ) -> None:
        self.database, self.metrics, self.clock = database, metrics, clock
        self.jobs = jobs
        self.channels = {c.route.receiver: c for c in channels(settings)}
        wanted = settings.notify
        patience = Patience(
            first=timedelta(seconds=wanted.retry_seconds),
            longest=timedelta(seconds=wanted.retry_at_most_seconds),
            span=timedelta(seconds=wanted.give_up_seconds),
        )
        metrics.know_receivers(self.channels)
        self.workers = {
            name: Worker(name, c.receiver, _Outbox(database), patience, clock, metrics.notified)
            for name, c in self.channels.items()
        }
        self._until = LATE  # when it looks next
        self._looked = clock()  # when it looked last

    # Starting and stopping

    def prepare(self) -> None:
        """Before anything is delivered: see to it that the settings and the store agree."""
        with self.database.write() as connection:
            for receiver, status in outbox.count(connection):
                if receiver not in self.channels and status == Sending.PENDING.value:
                    outbox.bury(connection, receiver, self.clock(), NO_LONGER)
            if self.channels:  # of which one may be new, or want other things than before
                notifications.look_at_all(connection, self.clock())

    def work(self, score: Callable[[str], None]) -> Work:
        """Its part of the work, for who has no cycle."""
        return Work(
            score=score,
            sweep=lambda: None,
            forget=lambda: None,
            sweep_seconds=lambda: LOOK_SECONDS,
            look=self.look,
            senders=self.workers,
            behind=tuple,
            due=self.due,
        )

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()

    def wake(self) -> None:
        """There is something new in the store, to look at or to deliver."""
        self.jobs.look()
        self.jobs.deliver(self.channels)

    def go(self, plan: Plan) -> None:
        """Put to work what was planned, now that it is durable."""
        self.jobs.deliver(plan.receivers)
        if plan.look_at is not None and plan.look_at < self._until:
            self.jobs.look(plan.look_at)

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

    def look(self) -> float:
        """Look at the networks that are due; seconds until the next is."""
        now, self._until = self.clock(), LATE
        if now < self._looked - AHEAD:
            log.warning("the clock was set back", by=str(self._looked - now))
            with self.database.write() as connection:
                notifications.look_at_all(connection, now)
                for receiver in self.channels:
                    outbox.hurry(connection, receiver, now)
        self._looked = now
        with self.database.read() as connection:
            names = notifications.to_look_at(connection, now, now + AHEAD)
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
            if not notifications.take(connection, name, now, now + AHEAD):
                return  # another process was faster
            plan = self.plan(connection, name, before, now)
        self.go(plan)
        if before != plan.alerts:  # so that the metrics show it
            self.jobs.score([name])

    def _open_again(self, now: datetime) -> list[datetime]:
        """Let alerts open that a window held back and that is over; when the next one is."""
        with self.database.write() as connection:
            standing = maintenance.standing(connection, now)
            held = [w for w in standing if w.mode is Mode.HOLD and open_until(w, now)]
            over = maintenance.hold(connection, {window.number for window in held})
            names = {window.network for window in over if window.network is not None}
            if any(window.network is None for window in over):
                names.update(networks.names(connection))
            if names:  # so that it is not forgotten, whatever happens now
                snapshots.announce(connection, names, now)
                snapshots.touch(connection, names)
        self.jobs.score(names)
        begins = [at for w in standing if (at := next_start(w, now))]
        return [at for w in held if (at := open_until(w, now))] + begins

    def due(self) -> set[str]:
        """The receivers that a message can be sent to now."""
        with self.database.read() as connection:
            return outbox.due(connection, self.clock())

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

    def hurry(self, receiver: str, now: datetime) -> None:
        with self.database.write() as connection:
            outbox.hurry(connection, receiver, now)

    def expire(self, receiver: str, before: datetime, now: datetime, answer: str) -> int:
        with self.database.write() as connection:
            return outbox.bury(connection, receiver, now, answer, before)

    def held(self, receiver: str) -> tuple[datetime, int] | None:
        with self.database.read() as connection:
            return outbox.held(connection, receiver)

    def hold(self, receiver: str, until: datetime, failures: int) -> None:
        with self.database.write() as connection:
            outbox.hold(connection, receiver, Hold(until, failures))

    def release(self, receiver: str) -> None:
        with self.database.write() as connection:
            outbox.release(connection, receiver)

    def _settle(self, delivery: Delivery, now: datetime, **became: object) -> None:
        with self.database.write() as connection:
            outbox.settle(connection, delivery.number, now, **became)
