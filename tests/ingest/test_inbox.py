"""The inbox: in order, bounded, and one that cannot be stored takes no other with it."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from gsid_service.ingest import inbox as inbox_module
from gsid_service.ingest.inbox import AT_ONCE, Full, Inbox, Keep
from gsid_service.store.snapshots import Incoming, Outcome, Receipt
from tests.store.making import incoming, snapshot

SOON = 2.0  # seconds, of which a passing test waits none
BAD = 3


class Shelf:
    """Keeps snapshots in memory, once it may; refuses the sequence `BAD`."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Event()
        self.batches: list[list[int]] = []
        self.kept: list[int] = []

    def keep(self, given: Sequence[Incoming]) -> list[Receipt]:
        self.asked.set()
        assert self.open.wait(SOON)
        sequences = [item.snapshot.sequence for item in given]
        self.batches.append(sequences)
        if BAD in sequences:
            raise OSError("the disk is full")
        receipts = [self._receipt(sequence) for sequence in sequences]
        self.kept += [s for s in sequences if s not in self.kept]
        return receipts

    def _receipt(self, sequence: int) -> Receipt:
        outcome = Outcome.DUPLICATE if sequence in self.kept else Outcome.ACCEPTED
        return Receipt(outcome, sequence)


@contextmanager
def running(size: int, keep: Keep) -> Iterator[Inbox]:
    inbox = Inbox(size, keep)
    inbox.start()
    yield inbox
    inbox.stop()


def item(sequence: int) -> Incoming:
    return incoming(snapshot(sequence))


def test_what_waits_is_stored_together_and_in_order() -> None:
    shelf = Shelf()
    with running(256, shelf.keep) as inbox:
        first = inbox.put(item(1000))
        assert shelf.asked.wait(SOON)
        promises = [inbox.put(item(sequence)) for sequence in range(10, 10 + AT_ONCE + 5)]
        assert not first.done()
        shelf.open.set()
        numbers = [promise.result(SOON).number for promise in promises]
    assert numbers == list(range(10, 10 + AT_ONCE + 5))
    assert shelf.kept == [1000, *numbers]
    assert [len(batch) for batch in shelf.batches if batch] == [1, AT_ONCE, 5]


def test_where_several_came_the_next_ones_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "GATHER_SECONDS", 0.2)
    shelf = Shelf()
    with running(9, shelf.keep) as inbox:
        promises = [inbox.put(item(1))]
        assert shelf.asked.wait(SOON)
        promises += [inbox.put(item(sequence)) for sequence in (2, 4)]
        shelf.open.set()
        assert promises[-1].result(SOON).number == 4
        inbox.put(item(5))
        time.sleep(0.05)
        assert inbox.put(item(6)).result(SOON).number == 6
        assert inbox.put(item(7)).result(SOON).number == 7
    assert shelf.batches[:3] == [[1], [2, 4], [5, 6]]


def test_no_more_can_wait_than_it_has_room_for() -> None:
    shelf = Shelf()
    with running(2, shelf.keep) as inbox:
        promises = [inbox.put(item(1))]
        assert shelf.asked.wait(SOON)
        promises += [inbox.put(item(sequence)) for sequence in (2, 4)]
        assert len(inbox) == 2
        with pytest.raises(Full):
            inbox.put(item(5))
        shelf.open.set()
        assert [promise.result(SOON).number for promise in promises] == [1, 2, 4]
        assert inbox.put(item(5)).result(SOON).number == 5
    assert shelf.kept == [1, 2, 4, 5]


def test_one_that_cannot_be_stored_fails_alone() -> None:
    shelf = Shelf()
    with running(9, shelf.keep) as inbox:
        promises = [inbox.put(item(1))]
        assert shelf.asked.wait(SOON)
        promises += [inbox.put(item(sequence)) for sequence in (2, BAD, 4)]
        shelf.open.set()
        assert [promises[i].result(SOON).number for i in (0, 1, 3)] == [1, 2, 4]
        with pytest.raises(OSError, match="the disk is full"):
            promises[2].result(SOON)
        assert inbox.put(item(5)).result(SOON).number == 5
    assert shelf.kept == [1, 2, 4, 5]


def test_stopping_stores_what_waits_even_when_it_is_full() -> None:
    shelf = Shelf()
    with running(3, shelf.keep) as inbox:
        promises = [inbox.put(item(1))]
        assert shelf.asked.wait(SOON)
        promises += [inbox.put(item(sequence)) for sequence in (2, 4, 5)]
        threading.Timer(0.05, shelf.open.set).start()
    assert [promise.result(0).number for promise in promises] == [1, 2, 4, 5]


def test_nothing_is_promised_once_it_has_stopped() -> None:
    """Nobody would ever keep the promise, and whoever waits for it would wait for good."""
    shelf = Shelf()
    shelf.open.set()
    with running(3, shelf.keep) as inbox:
        pass
    with pytest.raises(Full):
        inbox.put(item(1))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("others", [0, 2])
def test_somebody_who_no_longer_waits_stops_nobody_else(others: int) -> None:
    """A request that takes too long is given up, and its promise with it."""
    shelf = Shelf()
    inbox = Inbox(9, shelf.keep)
    inbox.start()
    inbox.put(item(1))
    assert shelf.asked.wait(SOON)
    given_up = inbox.put(item(2))
    promises = [inbox.put(item(10 + number)) for number in range(others)]
    given_up.cancel()
    shelf.open.set()
    assert [p.result(SOON).outcome for p in promises] == [Outcome.ACCEPTED] * others
    assert inbox.put(item(50)).result(SOON).number == 50
    inbox.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_one_given_up_while_it_is_stored_stops_nobody_else() -> None:
    shelf = Shelf()
    inbox = Inbox(9, shelf.keep)
    inbox.start()
    given_up = inbox.put(item(1))
    assert shelf.asked.wait(SOON)
    given_up.cancel()
    shelf.open.set()
    assert inbox.put(item(2)).result(SOON).number == 2
    inbox.stop()
