"""Silences and maintenance windows go round both databases, end, and are found while they count."""

from dataclasses import replace
from datetime import timedelta

from gsid_service.notices import Mode
from gsid_service.store import maintenance, silences
from gsid_service.store.database import Database
from tests.notify.making import HOUR, silence, window
from tests.store.making import NOW

SECOND = timedelta(seconds=1)


def test_a_silence_goes_round_and_ends(database: Database) -> None:
    with database.write() as connection:
        kept = silences.add(connection, silence(("entity", "~", "R[12]"), ("network", "!=", "é")))
        later = silences.add(
            connection, replace(kept, starts_at=NOW + HOUR, ends_at=NOW + 2 * HOUR)
        )
    with database.read() as connection:
        assert silences.find(connection, kept.number) == kept
        assert silences.unexpired(connection, NOW) == [kept, later]
        assert silences.unexpired(connection, NOW + HOUR) == [later]
        assert silences.page(connection, None, 9, None) == [later, kept]
        assert silences.page(connection, later.number, 9, NOW) == [kept]
    with database.write() as connection:
        silences.end(connection, kept.number, NOW + SECOND)
        silences.end(connection, later.number, NOW + SECOND)
    with database.read() as connection:
        ended = silences.page(connection, None, 9, None)
        assert silences.page(connection, None, 9, NOW + SECOND) == []
    assert [(s.starts_at - NOW, s.ends_at - NOW) for s in ended] == [
        (SECOND, SECOND),
        (timedelta(0), SECOND),
    ]


def test_a_window_goes_round_and_is_cancelled(database: Database) -> None:
    with database.write() as connection:
        once = maintenance.add(connection, window(network="net", mode=Mode.HOLD))
        weekly = maintenance.add(connection, window(rule="FREQ=WEEKLY", timezone="Europe/Berlin"))
    with database.read() as connection:
        assert maintenance.find(connection, once.number) == once
        assert maintenance.standing(connection, NOW) == [once, weekly]
        assert maintenance.standing(connection, NOW + HOUR) == [weekly]
    with database.write() as connection:
        maintenance.cancel(connection, weekly.number, NOW)
    with database.read() as connection:
        assert maintenance.standing(connection, NOW + HOUR) == []
        assert maintenance.page(connection, None, 9, cancelled=False) == [once]
        assert len(maintenance.page(connection, None, 9, cancelled=True)) == 2
