"""A collector whose disk takes no writes: nothing is forgotten, and it goes on by itself."""

import gzip
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gsid_service.collect.spool import Spool
from tests.collect.making import sight
from tests.collect.test_sender import Receiver, address, receiver, sender
from tests.collect.test_site import Watched
from tests.waiting import until

__all__ = ["receiver"]  # the fixture


@contextmanager
def unwritable(spool: Spool) -> Iterator[None]:
    spool._database.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        spool._database.execute("PRAGMA query_only = OFF")


def test_what_could_not_be_spooled_is_told_with_the_next_reading(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    with unwritable(watched.spool), pytest.raises(sqlite3.OperationalError, match="readonly"):
        watched.see(sight("203.0.113.0/24"))
    (told,) = watched.see(sight("203.0.113.0/24"))
    assert told["complete"]
    assert told["sequence"] == 1


def test_what_could_not_be_removed_is_sent_again_and_the_sender_goes_on(
    tmp_path: Path, receiver: Receiver
) -> None:
    spool = Spool(tmp_path / "spool.db", 1 << 20, lambda: 1)
    for router in ("R1", "R2"):
        spool.put(router, True, lambda _: gzip.compress(b"snapshot"))
    sending = sender(spool, address(receiver))
    with unwritable(spool):
        threading.Thread(target=sending.run, daemon=True).start()
        until(lambda: len(receiver.got) >= 2)
        assert spool.size()[0] == 2
    until(lambda: spool.size()[0] == 0)
