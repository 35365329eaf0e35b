"""Whose turn it is, on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from gsid_service.store import upkeep
from gsid_service.store.database import Database
from tests.store.making import NOW

MINUTE = timedelta(minutes=1)


def take(database: Database, seconds: float, name: str = "sweep") -> bool:
    with database.write() as connection:
        return upkeep.take(connection, name, NOW + timedelta(seconds=seconds), MINUTE)


def test_what_was_done_lately_is_nobody_s_turn(database: Database) -> None:
    assert [take(database, at) for at in (0, 1, 59, 60, 61, 200)] == [
        *(True, False, False),
        *(True, False, True),
    ]
    assert take(database, 1, "other")


def test_a_clock_that_was_set_back_stops_nothing(database: Database) -> None:
    assert take(database, 3600)
    assert not take(database, 3599), "clocks differ a little"
    assert take(database, 0)


def test_of_many_at_once_it_is_one_s_turn(database: Database) -> None:
    with ThreadPoolExecutor(6) as threads:
        taken = list(threads.map(lambda _: take(database, 0), range(12)))
    assert sum(taken) == 1
