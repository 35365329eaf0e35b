"""Networks: how far the cycle is with each, on both databases."""

import time
from concurrent.futures import ThreadPoolExecutor

from gsid_service.store import networks, snapshots
from gsid_service.store.database import Database
from gsid_service.store.networks import Network
from tests.store.making import NOW


def test_a_network_is_announced_once_and_keeps_what_it_has(database: Database) -> None:
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)
        networks.change_settings(connection, "net", {"always_compare_med": True})
        snapshots.touch(connection, ["net", "unknown"])
        snapshots.touch(connection, [])
        snapshots.announce(connection, ["net"], NOW.replace(year=2027))
    with database.read() as connection:
        found = networks.find(connection, "net")
        assert networks.find(connection, "unknown") is None
    expected = Network("net", NOW, {"always_compare_med": True}, 1, 0, 0, None, None, {})
    assert found == expected


def test_the_cycle_has_caught_up_until_there_is_more_news(database: Database) -> None:
    def behind() -> list[str]:
        with database.read() as connection:
            return networks.with_news(connection)

    with database.write() as connection:
        snapshots.announce(connection, ["b", "a", "c"], NOW)
        snapshots.touch(connection, ["b", "a"])
    assert behind() == ["a", "b"]
    with database.write() as connection:
        snapshots.touch(connection, ["a"])
        networks.finish(connection, "a", 1, 7, NOW, {"facts": 3})
        networks.fail(connection, "b", 1, "KeyError: 'é'")
    assert behind() == ["a"]
    with database.read() as connection:
        good, bad = (networks.find(connection, name) for name in "ab")
    assert good is not None
    assert bad is not None
    assert (good.done, good.scored, good.scored_at, good.problem) == (1, 7, NOW, None)
    assert good.summary == {"facts": 3}
    assert (bad.done, bad.scored, bad.scored_at, bad.problem) == (1, 0, None, "KeyError: 'é'")
    with database.write() as connection:
        networks.finish(connection, "b", 1, 8, NOW, {})
        mended = networks.find(connection, "b")
    assert mended is not None
    assert mended.problem is None


def test_pages_meet_every_network_once(database: Database) -> None:
    names = ["Z", "a", "as65000", "as65000 b", "é", "ß", "10", "東京"]
    with database.write() as connection:
        snapshots.announce(connection, names, NOW)
    seen: list[str] = []
    with database.read() as connection:
        while rows := networks.page(connection, seen[-1] if seen else "", 3):
            seen += [row.name for row in rows]
        assert seen == networks.names(connection)
    assert sorted(seen) == sorted(names)


def test_a_round_that_was_overtaken_has_no_turn(database: Database) -> None:
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)
        snapshots.touch(connection, ["net"])
        snapshots.touch(connection, ["net"])
        assert networks.take_turn(connection, "net", 1)
        networks.finish(connection, "net", 2, 5, NOW, {}, ["c1"], [["R1", "N", None, "R2", "t"]])
        assert not networks.take_turn(connection, "net", 1)
        assert networks.take_turn(connection, "net", 2)
        networks.fail(connection, "net", 1, "an older one failed")
        assert networks.last_seen(connection) == {"net": ({"c1"}, True)}
        found = networks.find(connection, "net")
        assert not networks.take_turn(connection, "unknown", 9)
    assert found is not None
    assert (found.done, found.problem) == (2, None)


def test_two_rounds_of_a_network_save_one_after_the_other(database: Database) -> None:
    order: list[str] = []
    with database.write() as connection:
        snapshots.announce(connection, ["net"], NOW)

    def save() -> None:
        with database.write() as connection:
            assert not networks.take_turn(connection, "net", 0), "the first has finished"
            order.append("second")

    with ThreadPoolExecutor(1) as threads:
        with database.write() as connection:
            assert networks.take_turn(connection, "net", 1)
            waiting = threads.submit(save)
            time.sleep(0.1)
            networks.finish(connection, "net", 1, 1, NOW, {})
            order.append("first")
        waiting.result()
    assert order == ["first", "second"]
