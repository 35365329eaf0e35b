"""What a page would show differently is news, on both databases."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from gsid_service.notices import Group, Outgoing, Sending
from gsid_service.store import maintenance, news, outbox, silences, snapshots
from gsid_service.store.database import Database
from gsid_service.store.outbox import Hold
from tests.notify.making import HOUR, SECOND, silence, window
from tests.store.making import NOW

T = TypeVar("T")


def test_every_step_of_what_is_told_is_news(database: Database) -> None:
    out = Outgoing("g-a", Group("g", "rr1", NOW), "new", {"said": "a"})
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)
        seen = news.told(connection, NOW)

    def is_news(step: Callable[[Connection], T]) -> T:
        nonlocal seen
        with database.write() as connection:
            done = step(connection)
            now = news.told(connection, NOW)
        assert now != seen
        seen = now
        return done

    is_news(lambda c: outbox.put(c, "net", "noc", [out], NOW))
    is_news(lambda c: outbox.hold(c, "noc", Hold(NOW + SECOND, 1)))
    is_news(lambda c: outbox.hold(c, "noc", Hold(NOW + HOUR, 2)))
    with database.read() as connection:
        (delivery,) = outbox.page(connection, None, 9, None)
    is_news(lambda c: outbox.settle(c, delivery.number, NOW, status=Sending.DEAD, answer="410"))
    is_news(lambda c: outbox.disable(c, "noc", NOW, "410"))
    is_news(lambda c: outbox.enable(c, "noc"))
    is_news(lambda c: outbox.replay(c, delivery.number, NOW))
    is_news(lambda c: outbox.settle(c, delivery.number, NOW, status=Sending.DELIVERED))
    quiet = is_news(lambda c: silences.add(c, silence(("network", "=", "net"))))
    is_news(lambda c: silences.end(c, quiet.number, NOW))
    open_now = is_news(lambda c: maintenance.add(c, window()))
    is_news(lambda c: maintenance.cancel(c, open_now.number, NOW))
    with database.read() as connection:
        assert news.told(connection, NOW) == seen


def test_a_silence_that_runs_out_is_news(database: Database) -> None:
    with database.write() as connection:
        silences.add(connection, silence(("network", "=", "net")))
        assert news.told(connection, NOW) != news.told(connection, NOW + 2 * HOUR)
