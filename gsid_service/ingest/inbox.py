"""The inbox: snapshots wait here, bounded in number, and are stored many at a time.

A receipt is given only after the transaction is durable. Storing many in one transaction means that
one wait for the disk serves them all; where several came at once, the next ones get a moment to
gather.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from gsid_service.store.snapshots import Incoming, Receipt

AT_ONCE = 64
GATHER_SECONDS = 0.004  # about as long as the disk takes
STOP_SECONDS = 10.0

Keep = Callable[[Sequence[Incoming]], list[Receipt]]


class Full(Exception):
    """No more can wait; the sender should try again later."""


class _Waiting(NamedTuple):
    incoming: Incoming
    receipt: "Future[Receipt]"


class Inbox:
    """Takes snapshots from many threads, and hands them to `keep` from one."""

    def __init__(self, size: int, keep: Keep) -> None:
        self._queue: queue.Queue[_Waiting | None] = queue.Queue(size)
        self._keep = keep
        self._thread = threading.Thread(target=self._run, name="inbox", daemon=True)
        self._stopping = False
        self.taken = 0  # snapshots so far

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Store what is waiting, take no more, and end."""
        self._stopping = True
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(STOP_SECONDS)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def __len__(self) -> int:
        return self._queue.qsize()

    def put(self, incoming: Incoming) -> "Future[Receipt]":
        """Promise a receipt; raises `Full` at once where nothing more can wait."""
        waiting = _Waiting(incoming, Future())
        if self._stopping:
            raise Full
        try:
            self._queue.put_nowait(waiting)
        except queue.Full:
            raise Full from None
        return waiting.receipt

    def _run(self) -> None:
        batch: list[_Waiting | None] = []
        while None not in batch:
            batch = self._next(several=len(batch) > 1)
            self.taken += len(batch)
            # Whoever gave up waiting was promised nothing.
            self._store([w for w in batch if w and w.receipt.set_running_or_notify_cancel()])

    def _next(self, several: bool) -> list[_Waiting | None]:
        """What waits, once anything does; `several` did the last time."""
        batch = [self._queue.get()]
        if several:
            time.sleep(GATHER_SECONDS)
        while len(batch) < AT_ONCE:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _store(self, batch: Sequence[_Waiting]) -> None:
        """One that cannot be stored must not take the others with it: then each goes alone."""
        try:
            receipts = self._keep([waiting.incoming for waiting in batch])
        except Exception as error:
            if len(batch) == 1:
                batch[0].receipt.set_exception(error)
                return
            for waiting in batch:
                self._store([waiting])
            return
        for waiting, receipt in zip(batch, receipts, strict=True):
            waiting.receipt.set_result(receipt)
