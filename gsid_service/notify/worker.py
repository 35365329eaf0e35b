"""A worker a receiver: takes what is due from the outbox, sends it, and settles what came of it.

One message is under way at a time, and its end is durable before the next is taken: a crash repeats
that one at most, under the same key. Workers share nothing: a slow one delays no other. One runs at
a time for a receiver, in whichever process; how the receiver was is in the store.
"""

import random
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

import structlog

from gsid_service.notices import Delivery, Message
from gsid_service.notify.batch import AHEAD
from gsid_service.notify.receivers import BadReceiver, Receiver
from gsid_service.notify.retry import DeliveryError, Patience, next_try

log = structlog.get_logger()
IDLE_SECONDS = 5.0  # another program may have put something in
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

    def hurry(self, receiver: str, now: datetime) -> None:
        """All that waits is due: the clock by which it waits was set back."""
        ...

    def expire(self, receiver: str, before: datetime, now: datetime, answer: str) -> int:
        """What has waited since before then is dead; how many messages."""
        ...

    def held(self, receiver: str) -> tuple[datetime, int] | None:
        """Until when the receiver is left alone, after how many failures in a row."""
        ...

    def hold(self, receiver: str, until: datetime, failures: int) -> None: ...
    def release(self, receiver: str) -> None: ...


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
        self._tried = clock()  # when it tried last

    def resume(self) -> None:
        """Learn how the receiver was when anybody last sent something."""
        self._not_before, self._failures = self.outbox.held(self.name) or (None, 0)

    def close(self) -> None:
        self.receiver.close()

    def step(self) -> float:
        """Try one delivery; seconds to wait before the next."""
        now = self.clock()
        if now < self._tried - AHEAD:  # the clock was set back
            self.outbox.hurry(self.name, now)
            self._not_before = None
        self._tried = now
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
            if self._failures:
                self._failures, self._not_before = 0, None
                self.outbox.release(self.name)
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
        if self._not_before is not None:
            self.outbox.hold(self.name, self._not_before, self._failures)
        too_old = self.outbox.expire(self.name, now - self.patience.span, now, error.reason)
        self.count(self.name, DEAD, too_old)
