"""Waiting for what happens in another thread or process."""

import time
from collections.abc import Callable


def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Return as soon as it is true; fail where it does not become true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"it does not happen within {seconds} s"
        time.sleep(0.05)
