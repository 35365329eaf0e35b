"""Memory of a process that runs for long: what is not needed any more goes back to the system.

Python keeps some of what it freed for later, and so does malloc: up to some bound, they come to
hold more the longer a process runs. A full search for garbage empties the one, a trim the other.
"""

import ctypes
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 10_000  # a snapshot makes about 700, nearly all of which end with its answer
SHARE = 0.001  # of the time: a search holds everything up, for 3 ms, or 0.2 s with 100,000 facts
LEAST_SECONDS = 1.0

_trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)  # glibc has it, others need not


def settle() -> None:
    """Once all is loaded that stays: no search for garbage looks at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    _trim(0)


@contextmanager
def giving_back() -> Iterator[None]:
    """Meanwhile what is not needed goes back now and then."""
    ending = threading.Event()
    thread = threading.Thread(target=_give_back, args=(ending,), name="memory", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _give_back(ending: threading.Event) -> None:
    wait = LEAST_SECONDS
    while not ending.wait(wait):
        begun = time.monotonic()
        gc.collect()
        _trim(0)
        wait = max(LEAST_SECONDS, (time.monotonic() - begun) / SHARE)
