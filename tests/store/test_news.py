"""What a page would show differently is news, on both databases."""

from collections.abc import Callable

from sqlalchemy import Connection

from gsid_service.notices import Group, Outgoing, Sending
from gsid_service.store import maintenance, news, outbox, silences, snapshots
from gsid_service.store.database import Database
from gsid_service.store.outbox import Hold
from tests.notify.making import HOUR, SECOND, silence, window
from tests.store.making import NOW


def test_every_step_of_what_is_told_is_news(database: Database) -> None:
    out = Outgoing("g-a", Group("g", "rr1", NOW), "new", {"said": "a"})
    steps: list[Callable[[Connection], object]] = [
        lambda c: outbox.put(c, "net", "noc", [out], NOW),
        lambda c: outbox.hold(c, "noc", Hold(NOW + SECOND, 1)),
        lambda c: outbox.hold(c, "noc", Hold(NOW + HOUR, 2)),
        lambda c: outbox.settle(c, 1, NOW, status=Sending.DEAD, answer="410"),
        lambda c: outbox.disable(c, "noc", NOW, "410"),
        lambda c: outbox.enable(c, "noc"),
        lambda c: outbox.replay(c, 1, NOW),
        lambda c: outbox.settle(c, 1, NOW, status=Sending.DELIVERED, answer="200"),
        lambda c: silences.add(c, silence(("network", "=", "net"))),
        lambda c: silences.end(c, 1, NOW),
        lambda c: maintenance.add(c, window()),
        lambda c: maintenance.cancel(c, 1, NOW),
    ]
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)
        seen = news.told(connection, NOW)
    for number, step in enumerate(steps):
        with database.write() as connection:
            step(connection)
            now = news.told(connection, NOW)
        assert now != seen, f"step {number}"
        seen = now
    with database.read() as connection:
        assert news.told(connection, NOW) == seen


def test_a_silence_that_runs_out_is_news(database: Database) -> None:
    with database.write() as connection:
        silences.add(connection, silence(("network", "=", "net")))
        assert news.told(connection, NOW) != news.told(connection, NOW + 2 * HOUR)
