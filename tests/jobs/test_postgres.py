"""Jobs in a real PostgreSQL: one at a time, coalesced, in turn, and taken up again."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text, update
from structlog.testing import capture_logs

from gsid_service.jobs import Away, postgres
from gsid_service.jobs.postgres import NOTIFIER, SCORE, SCORER, Queue, Wanted
from gsid_service.records import Status
from gsid_service.store import alerts, networks, snapshots
from gsid_service.store.database import Database, connect
from gsid_service.store.tables import networks as networks_table
from tests.jobs.working import Recorded, Sent, cut
from tests.notify.making import alert
from tests.waiting import until

STALLED = 2.0


@contextmanager
def working(
    database: Database,
    recorded: Recorded,
    *roles: str,
    at_once: int = 1,
    sweep_seconds: float = 3600,
) -> Iterator[Queue]:
    """A queue whose jobs this process takes."""
    queue = Queue(database, roles or (SCORER,), at_once, STALLED)
    with capture_logs():
        queue.start(recorded.work(sweep_seconds))
        try:
            yield queue
        finally:
            queue.stop()


def waiting(database: Database, condition: str = "TRUE") -> list[str]:
    """What waits in the queue, the next first."""
    asked = f"SELECT lock FROM procrastinate_jobs WHERE {condition} ORDER BY priority DESC, id"  # noqa: S608
    with database.read() as connection:
        return list(connection.scalars(text(asked)))


def test_what_waits_already_is_not_put_in_again(database: Database) -> None:
    one, other = Queue(database, ()), Queue(database, ())
    for queue in (one, other, one):
        queue.defer([Wanted(SCORE, name) for name in ("b", "a", "ü (x)=(y)")])
    assert waiting(database) == ["score a", "score b", "score ü (x)=(y)"]


def test_two_that_ask_at_the_same_moment_lose_nothing(database: Database) -> None:
    queues = [Queue(database, ()) for _ in range(4)]
    names = [Wanted(SCORE, f"n{n:02}") for n in range(40)]
    threads = [threading.Thread(target=queue.defer, args=(names,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(waiting(database)) == [wanted.lock for wanted in names]


def test_a_network_runs_one_job_at_a_time_and_the_last_news_is_seen(database: Database) -> None:
    seen: list[tuple[str, int]] = []
    newest = {"a": 0, "b": 0}

    def during(name: str) -> None:
        looked = newest[name]
        time.sleep(0.02)
        seen.append((name, looked))

    recorded = Recorded(during)
    with working(database, recorded, at_once=3) as one, working(database, recorded, at_once=3):
        for number in range(1, 101):
            for name in newest:
                newest[name] = number
                one.score([name])
            time.sleep(0.002)
        until(lambda: {("a", 100), ("b", 100)} <= set(seen), 20)
    assert recorded.most_at_once == 1
    assert len(seen) < 150, "a burst costs few rounds"


def test_one_noisy_network_does_not_starve_the_rest(database: Database) -> None:
    recorded, ending = Recorded(lambda _: time.sleep(0.02)), threading.Event()
    quiet = [f"quiet{n}" for n in range(10)]
    with working(database, recorded) as queue:

        def shout() -> None:
            while not ending.is_set():
                queue.score(["noisy"])
                time.sleep(0.001)

        thread = threading.Thread(target=shout)
        thread.start()
        until(lambda: recorded.rounds.count("noisy") > 2)
        queue.score(quiet)
        until(lambda: set(quiet) <= set(recorded.rounds), 20)
        ending.set()
        thread.join()
    first = recorded.rounds.index("quiet0")
    last = max(recorded.rounds.index(name) for name in quiet)
    assert recorded.rounds[first:last].count("noisy") <= 3, "it is one among them"


def test_open_alerts_come_first_but_not_all_the_time(database: Database) -> None:
    now = datetime.now(UTC)
    with database.write() as connection:
        snapshots.announce(connection, ["a", "b", "c", "d"], now)
        for name, status in (("b", Status.RESOLVED), ("c", Status.FIRING), ("d", Status.FIRING)):
            alerts.save(connection, alert(id="", network=name, status=status), 0)
        old = now - timedelta(minutes=5)
        connection.execute(update(networks_table).values(scored_at=old))
        networks.finish(connection, "d", 0, 0, now, {})  # scored a moment ago
    Queue(database, ()).defer([Wanted(SCORE, name) for name in "abcd"])
    assert waiting(database) == ["score c", "score a", "score b", "score d"]


def test_the_job_of_a_process_that_was_killed_is_taken_up_again(database: Database) -> None:
    """Its worker is in the tables, and no process holds the lock that says that it lives."""
    queue, recorded = Queue(database, ()), Recorded()
    queue.defer([Wanted(SCORE, "net"), Wanted(SCORE, "other")])
    _die(database, "net")
    queue.defer([Wanted(SCORE, "net")])  # more news, which waits for the lock
    begun = time.monotonic()
    with working(database, recorded):
        until(lambda: "net" in recorded.rounds, 10)
    assert time.monotonic() - begun < STALLED + 3
    assert recorded.rounds == ["other", "net"], "the other did not wait, and the one ran once"
    assert waiting(database) == []


def _die(database: Database, network: str) -> None:
    """Leave a job behind as a process does that is killed while it runs it."""
    with database.write() as connection:
        worker = connection.scalar(text("SELECT worker_id FROM procrastinate_register_worker_v1()"))
        connection.execute(
            text(
                "UPDATE procrastinate_jobs SET status = 'doing', worker_id = :worker "
                "WHERE lock = :lock"
            ),
            {"worker": worker, "lock": f"score {network}"},
        )


def test_a_process_that_lives_keeps_its_job_however_long_it_takes(database: Database) -> None:
    ended = threading.Event()

    def during(_: str) -> None:
        ended.wait(20)

    recorded = Recorded(during)
    with working(database, recorded) as queue, working(database, recorded):
        queue.score(["slow"])
        until(lambda: recorded.at_once["slow"] == 1)
        time.sleep(1.5 * STALLED)
        assert recorded.most_at_once == 1
        ended.set()
        until(lambda: recorded.rounds == ["slow"])


def test_news_that_nobody_asked_a_job_for_is_found(database: Database) -> None:
    recorded = Recorded(behind=["forgotten"])
    with working(database, recorded):
        until(lambda: "forgotten" in recorded.rounds)


def test_a_round_that_the_database_failed_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PAUSE_SECONDS", 0.05)
    failing = iter([True, False])

    def during(_: str) -> None:
        if next(failing):
            with database.read() as connection:
                connection.execute(text("SELECT 1 / 0"))

    recorded = Recorded(during)
    with working(database, recorded) as queue:
        queue.score(["net"])
        until(lambda: len(recorded.rounds) == 2)


def test_a_receiver_s_messages_are_sent_by_one_at_a_time(database: Database) -> None:
    noc = Sent(left=10, seconds=0.01)
    recorded = Recorded(senders={"noc": noc})
    with working(database, recorded, NOTIFIER) as one, working(database, recorded, NOTIFIER):
        one.deliver(["noc", "nobody"])
        until(lambda: noc.sent == 10)
        assert noc.resumed == 1, "one job sent them all"
        noc.left = 2
        recorded.due = ["noc"]  # as the store says when a wait is over
        until(lambda: noc.sent == 12)
        assert recorded.looked > 0
    assert recorded.rounds == []


def test_a_sweep_is_due_once_for_all_processes(database: Database) -> None:
    recorded = Recorded()
    with working(database, recorded, sweep_seconds=60), working(database, recorded, NOTIFIER):
        until(lambda: recorded.swept > 0 and recorded.forgotten > 0)
        time.sleep(1.5)
    assert (recorded.swept, recorded.forgotten) == (1, 1)


def test_a_stop_finishes_what_is_under_way_and_begins_nothing(database: Database) -> None:
    begun = threading.Event()

    def during(_: str) -> None:
        begun.set()
        time.sleep(0.5)

    recorded = Recorded(during)
    with working(database, recorded) as queue:
        queue.score(["first"])
        assert begun.wait(10)
        queue.defer([Wanted(SCORE, "second")])
        queue.stop()
        assert recorded.rounds == ["first"]
        assert not queue.alive
    assert waiting(database, f"task_name = '{SCORE}'") == ["score second"]
    with database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM procrastinate_workers")) == 0


def test_work_goes_on_after_the_database_was_away(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PAUSE_SECONDS", 0.1)
    recorded = Recorded(lambda _: time.sleep(0.05))
    with working(database, recorded) as queue:
        for number in range(20):
            queue.score([f"n{number}"])
            time.sleep(0.05)
            if number % 4 == 3:
                cut(database)
        until(lambda: len(set(recorded.rounds)) == 20, 20)
        assert queue.alive
        until(lambda: waiting(database) == [], 10)
    assert recorded.most_at_once == 1


def test_a_round_that_lacks_what_it_needs_is_tried_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PAUSE_SECONDS", 0.1)
    lacking = iter([True, False])

    def during(_: str) -> None:
        if next(lacking):
            raise Away("no process scores")

    recorded = Recorded(during)
    with working(database, recorded) as queue:
        queue.score(["net"])
        until(lambda: recorded.rounds == ["net", "net"])
        until(lambda: waiting(database) == [])


def test_a_connection_of_its_own_reads_the_same_jobs(database: Database) -> None:
    other = connect(database.engine.url.render_as_string(hide_password=False), migrate=False)
    Queue(other, ()).defer([Wanted(SCORE, "net")])
    other.close()
    assert waiting(database, "status = 'todo'") == ["score net"]
