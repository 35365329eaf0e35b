"""When to try a delivery again: exponential backoff with jitter, or what the receiver asks for."""

from datetime import datetime, timedelta
from typing import NamedTuple


class DeliveryError(Exception):
    """A message did not arrive; says whether to try again, and what that means for others."""

    def __init__(
        self,
        reason: str,
        retry: bool,
        after: float | None = None,
        everything: bool = False,
        gone: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason, self.retry = reason, retry
        self.after = after  # seconds, as the receiver asks for
        self.everything = everything  # no other message would arrive either
        self.gone = gone  # the receiver wants no more, ever


class Patience(NamedTuple):
    """How fast to come back, and when to give up."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=5)
    span: timedelta = timedelta(days=1)


def next_try(
    error: DeliveryError,
    attempts: int,
    since: datetime,
    now: datetime,
    patience: Patience,
    luck: float,
) -> datetime | None:
    """When to try again after so many attempts; None to give up. `luck` is from 0 to 1."""
    if not error.retry or now >= since + patience.span:
        return None
    if error.after is not None:
        return min(now + timedelta(seconds=error.after), since + patience.span)
    doubled: timedelta = patience.first * 2 ** min(attempts - 1, 30)
    delay: timedelta = min(doubled, patience.longest) * (0.5 + 0.5 * luck)
    return min(now + delay, since + patience.span)
