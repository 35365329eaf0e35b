"""Jobs in one process: what waits runs once, in turn, and neither a failure nor a slow receiver
stops any other."""

import threading

import pytest
from structlog.testing import capture_logs

from gsid_service.jobs import embedded
from gsid_service.jobs.embedded import Embedded
from tests.jobs.working import Recorded, Sent
from tests.waiting import until


def test_news_of_a_busy_network_waits_once_and_behind_the_others() -> None:
    jobs, busy = Embedded(), threading.Event()
    begun = threading.Event()

    def during(_: str) -> None:
        begun.set()
        busy.wait(10)

    recorded = Recorded(during)
    jobs.start(recorded.work())
    jobs.score(["noisy"])
    assert begun.wait(10)
    for _ in range(100):
        jobs.score(["noisy"])
        jobs.score(["a", "b"])
    busy.set()
    until(lambda: len(recorded.rounds) >= 4)
    jobs.stop()
    assert recorded.rounds == ["noisy", "noisy", "a", "b"]
    assert not jobs.alive


def test_a_round_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "PAUSE_SECONDS", 0.01)
    failing = iter([True, True, False])

    def during(_: str) -> None:
        if next(failing):
            raise OSError("away")

    jobs, recorded = Embedded(), Recorded(during)
    with capture_logs():
        jobs.start(recorded.work())
        jobs.score(["net"])
        until(lambda: len(recorded.rounds) == 3)
    assert jobs.alive
    jobs.stop()


def test_time_alone_sweeps() -> None:
    jobs, recorded = Embedded(), Recorded()
    jobs.start(recorded.work(sweep_seconds=0.02))
    until(lambda: recorded.swept > 2 and recorded.forgotten > 2)
    jobs.stop()


def test_a_start_sweeps_at_once_and_not_again_before_it_is_time() -> None:
    jobs, recorded = Embedded(), Recorded()
    jobs.start(recorded.work(sweep_seconds=3600))
    until(lambda: recorded.forgotten == 1)
    jobs.score(["net"])
    until(lambda: recorded.rounds == ["net"])
    jobs.stop()
    assert recorded.swept == 1


def test_a_receiver_is_sent_what_waits_and_delays_no_other() -> None:
    slow, quick = Sent(left=1, seconds=0.5), Sent()
    jobs, recorded = Embedded(), Recorded(senders={"slow": slow, "quick": quick})
    jobs.start(recorded.work())
    assert (slow.resumed, quick.resumed) == (1, 1)
    quick.left = 3
    jobs.deliver(["quick", "nobody"])
    until(lambda: quick.sent == 3, 0.4)
    assert slow.sent == 0
    before = recorded.looked
    jobs.look()
    until(lambda: recorded.looked > before)
    jobs.stop()
    assert slow.sent == 1, "what is under way is finished"
