"""What start-up made is left out of searches for garbage, and what becomes garbage later goes."""

import gc
import time
import weakref
from collections.abc import Iterator
from itertools import pairwise

import pytest

from gsid_service import memory
from tests.waiting import until


class Cycle:
    """Garbage that only a search finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_stays_is_not_searched_again() -> None:
    stays = Cycle()
    memory.settle()
    assert gc.get_freeze_count() > 1000
    assert not any(one is stays for one in gc.get_objects())


def test_garbage_goes_by_itself_and_no_longer_once_that_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(memory, "SHARE", 1.0)
    gc.disable()
    try:
        with memory.giving_back():
            gone = weakref.ref(Cycle())
            until(lambda: gone() is None)
        left = weakref.ref(Cycle())
        time.sleep(0.1)
        assert left() is not None
    finally:
        gc.enable()


def test_it_takes_no_more_than_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of 0.02 s, of which a tenth of the time may go to searches, comes every 0.2 s."""
    began: list[float] = []

    def search() -> None:
        began.append(time.monotonic())
        time.sleep(0.02)

    monkeypatch.setattr(memory, "LEAST_SECONDS", 0.01)
    monkeypatch.setattr(memory, "SHARE", 0.1)
    monkeypatch.setattr(gc, "collect", search)
    with memory.giving_back():
        until(lambda: len(began) == 3)
    assert min(later - before for before, later in pairwise(began)) >= 0.2
