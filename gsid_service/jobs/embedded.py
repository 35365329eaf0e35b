"""Jobs on threads of this one process: one runs cycles and sweeps, one looks for something to tell,
and one a receiver delivers, so that a slow receiver delays no other."""

import math
import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime

import structlog

from gsid_service.jobs import Away, Work

log = structlog.get_logger()
PAUSE_SECONDS = 1.0  # before a database that does not answer is asked again
IDLE_SECONDS = 5.0  # another program may have put something into the outbox
LOOK_SECONDS = 30.0
STOP_SECONDS = 5.0  # for a message that is under way


class Embedded:
    """All work in this process."""

    shared = False

    def __init__(self) -> None:
        self.waiting: dict[str, None] = {}  # networks, in the order in which they were woken
        self._wake = threading.Condition()
        self._stopping = False
        self._cycles: threading.Thread | None = None
        self._looking: _Loop | None = None
        self._sending: dict[str, _Loop] = {}

    def start(self, work: Work) -> None:
        self._cycles = threading.Thread(target=self._run, args=(work,), name="cycle", daemon=True)
        self._cycles.start()
        self._looking = _Loop("notify", work.look, LOOK_SECONDS)
        for name, sender in work.senders.items():
            sender.resume()
            self._sending[name] = _Loop(f"to {name}", sender.step, IDLE_SECONDS)

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._cycles is not None:
            self._cycles.join()
        for loop in self._loops:
            loop.end()
        for loop in self._loops:
            loop.thread.join(STOP_SECONDS)

    @property
    def alive(self) -> bool:
        threads = [self._cycles, *(loop.thread for loop in self._loops)]
        return all(thread is not None and thread.is_alive() for thread in threads)

    @property
    def _loops(self) -> list["_Loop"]:
        return [*([self._looking] if self._looking else []), *self._sending.values()]

    def score(self, networks: Iterable[str]) -> None:
        with self._wake:
            self.waiting |= dict.fromkeys(networks)
            self._wake.notify()

    def deliver(self, receivers: Iterable[str]) -> None:
        for name in receivers:
            if name in self._sending:
                self._sending[name].wake()

    def look(self, at: datetime | None = None) -> None:  # noqa: ARG002 (the look finds out when)
        if self._looking is not None:
            self._looking.wake()

    def _run(self, work: Work) -> None:
        swept = -math.inf
        while True:
            name = self._next(max(0.0, swept + work.sweep_seconds() - time.monotonic()))
            if self._stopping:
                return
            try:
                if name is not None:
                    work.score(name)
                if time.monotonic() - swept >= work.sweep_seconds():
                    swept = time.monotonic()
                    work.sweep()
                    work.forget()
            except Away as error:
                log.warning("the cycle goes on", network=name, problem=str(error))
                self._put_back(name)
            except Exception:
                # Such as a database that is away, and may come back. What is pending stays so.
                log.exception("the cycle goes on", network=name)
                self._put_back(name)

    def _put_back(self, name: str | None) -> None:
        self.score([name] if name is not None else [])
        time.sleep(PAUSE_SECONDS)

    def _next(self, seconds: float) -> str | None:
        """The network that waits longest, once there is one or the time is over."""
        with self._wake:
            if not self.waiting and not self._stopping:
                self._wake.wait(seconds)
            name = next(iter(self.waiting), None)
            self.waiting.pop(name or "", None)
        return name


class _Loop:
    """A thread that takes one step after the other, and sleeps as long as the last one said."""

    def __init__(self, name: str, step: Callable[[], float], at_most: float) -> None:
        self._step, self._at_most = step, at_most
        self._wake, self._ending = threading.Event(), False
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def wake(self) -> None:
        self._wake.set()

    def end(self) -> None:
        self._ending = True
        self._wake.set()

    def _run(self) -> None:
        while not self._ending:
            self._wake.clear()
            try:
                wait = self._step()
            except Exception:
                # As above: what is due stays so.
                log.exception("it goes on", thread=self.thread.name)
                wait = PAUSE_SECONDS
            if wait > 0 and not self._ending:
                self._wake.wait(min(wait, self._at_most))
