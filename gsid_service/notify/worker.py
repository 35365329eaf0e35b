"""A worker a receiver: takes what is due from the outbox, sends it, and settles what came of it.

One message is under way at a time, and its end is durable before the next is taken: a crash repeats
that one at most, under the same key. Workers share nothing: a slow one delays no other.
"""

import random
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import structlog

from gsid_service.notices import Delivery, Message
from gsid_service.notify.receivers import BadReceiver, Receiver
from gsid_service.notify.retry import DeliveryError, Patience, next_try

log = structlog.get_logger()
IDLE_SECONDS = 5.0  # another process may have put something in
PAUSE_SECONDS = 1.0  # before a database that does not answer is asked again
DELIVERED, RETRIED, DEAD = ("delivered", "retried", "dead")


class Outbox(Protocol):
    """Where messages wait."""

    def take(self, receiver: str, now: datetime) -> tuple[Delivery, Message] | datetime | None: ...
    def delivered(self, delivery: Delivery, now: datetime, answer: str) -> None: ...
    def postponed(self, delivery: Delivery, due: datetime, answer: str) -> None: ...
    def dead(self, delivery: Delivery, now: datetime, answer: str) -> None: ...
    def gone(self, delivery: Delivery, now: datetime, answer: str) -> int:
        """The receiver wants no more; how many messages died of it."""
        ...

    def expire(self, receiver: str, before: datetime, now: datetime, answer: str) -> int:
        """What has waited since before then is dead; how many messages."""
        ...


class Worker:
    def __init__(
        self,
        name: str,
        receiver: Receiver,
        outbox: Outbox,
        patience: Patience,
        clock: Callable[[], datetime],
        count: Callable[[str, str, int], None],
    ) -> None:
        self.name, self.receiver, self.outbox = name, receiver, outbox
        self.patience, self.clock, self.count = patience, clock, count
        self._failures = 0  # one after the other
        self._not_before: datetime | None = None
        self._wake, self._stopping = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name=f"to {name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)
        self.receiver.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            try:
                wait = self.step()
            except Exception:
                # Such as a database that is away, and may come back. What is pending stays so.
                log.exception("the worker goes on", receiver=self.name)
                wait = PAUSE_SECONDS
            if wait > 0 and not self._stopping:
                self._wake.wait(min(wait, IDLE_SECONDS))

    def step(self) -> float:
        """Try one delivery; seconds to wait before the next."""
        now = self.clock()
        if self._not_before is not None and now < self._not_before:
            return (self._not_before - now).total_seconds()
        found = self.outbox.take(self.name, now)
        if found is None:
            return IDLE_SECONDS
        if isinstance(found, datetime):
            return (found - now).total_seconds()
        self._try(*found)
        return 0.0

    def _try(self, delivery: Delivery, message: Message) -> None:
        try:
            answer = self.receiver.send(delivery.key, message, self.clock())
        except DeliveryError as error:
            self._failed(delivery, error)
        except BadReceiver as error:  # such as a secret's file that is gone
            self._failed(delivery, DeliveryError(str(error), retry=True, everything=True))
        except Exception as error:
            # Our own mistake, with this message perhaps: others must not wait for it.
            log.exception("cannot be sent", receiver=self.name, delivery=delivery.id)
            self._failed(delivery, DeliveryError(type(error).__name__, retry=True))
        else:
            self._failures, self._not_before = 0, None
            self.outbox.delivered(delivery, self.clock(), answer)
            self.count(self.name, DELIVERED, 1)

    def _failed(self, delivery: Delivery, error: DeliveryError) -> None:
        now = self.clock()
        log.warning("not delivered", receiver=self.name, delivery=delivery.id, why=error.reason)
        if error.gone:
            self.count(self.name, DEAD, self.outbox.gone(delivery, now, error.reason))
            return
        due = next_try(
            error, delivery.attempts + 1, delivery.since, now, self.patience, random.random()
        )
        if due is None:
            self.outbox.dead(delivery, now, error.reason)
            self.count(self.name, DEAD, 1)
        else:
            self.outbox.postponed(delivery, due, error.reason)
            self.count(self.name, RETRIED, 1)
        if error.everything:
            self._hold(error, now)

    def _hold(self, error: DeliveryError, now: datetime) -> None:
        """The receiver is away or asks to wait: let all that it gets wait, and what has waited too
        long die."""
        self._failures += 1
        self._not_before = next_try(error, self._failures, now, now, self.patience, random.random())
        too_old = self.outbox.expire(self.name, now - self.patience.span, now, error.reason)
        self.count(self.name, DEAD, too_old)
