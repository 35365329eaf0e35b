"""From the outbox to a real receiver process: order, retries, throttling, dead letters, replay."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gsid_service.notices import Sending
from gsid_service.records import Status
from gsid_service.store import outbox
from tests.notify.listener import GONE_AFTER, SECRET, SLOW_SECONDS, Listener, is_refused, listening
from tests.notify.making import alert
from tests.notify.station import station, webhook
from tests.postgres import free_port


@pytest.fixture(scope="module")
def _process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listener]:
    with listening(tmp_path_factory.mktemp("listener")) as found:
        yield found


@pytest.fixture
def listener(_process: Listener) -> Iterator[Listener]:
    yield _process
    _process.log.unlink(missing_ok=True)


def test_a_page_and_its_end_arrive_signed_and_in_order(
    database_url: str, listener: Listener
) -> None:
    with station(database_url, [webhook("noc", listener.url("/ok"))]) as noc:
        kept = noc.save(alert(id=""))
        (first,) = listener.wait(1)
        noc.resolve(*kept)
        second = listener.wait(2)[1]
        noc.until(noc.drained)
    assert [first["body"]["status"], second["body"]["status"]] == ["firing", "resolved"]
    assert first["body"]["alerts"][0]["gsid"]["id"] == kept[0].id
    assert first["id"] != second["id"]
    assert {line["status"] for line in listener.received()} == {200}, "a signature was wrong"


def test_what_a_flaky_receiver_takes_at_last_comes_under_one_id(
    database_url: str, listener: Listener
) -> None:
    with station(database_url, [webhook("noc", listener.url("/flaky"))]) as noc:
        for number in range(20):
            kept = noc.save(alert(number, id=""))
            noc.resolve(*kept)
        noc.until(noc.drained, 30)
    taken = listener.taken("/flaky")
    assert len({line["id"] for line in taken}) == 40
    told: dict[str, list[str]] = {}
    for line in taken:
        (one,) = line["body"]["alerts"]
        told.setdefault(one["gsid"]["id"], []).append(one["status"])
    assert all(turns == ["firing", "resolved"] for turns in told.values())
    assert len(told) == 20
    assert len(listener.received("/flaky")) > 40, "there was no trouble to get over"


def test_an_alert_that_opens_again_is_told_after_its_last_end(
    database_url: str, listener: Listener
) -> None:
    with station(database_url, [webhook("noc", listener.url("/flaky"))]) as noc:
        for number in range(10):
            kept = noc.save(alert(number, id="", network=f"n{number}"))
            for _ in range(2):
                over = noc.resolve(*kept)
                again = (replace(a, status=Status.FIRING, since=noc.now()) for a in over)
                kept = noc.save(*again)
        noc.until(lambda: [turns[-1] for turns in told(listener)] == ["firing"] * 10, 30)
        noc.until(noc.drained, 30)
    for turns in told(listener):
        assert turns == ["firing", "resolved"] * (len(turns) // 2) + ["firing"]


def told(listener: Listener) -> list[list[str]]:
    """What the flaky receiver took of each alert, in its order."""
    turns: dict[str, list[str]] = {}
    for line in listener.taken("/flaky"):
        for one in line["body"]["alerts"]:
            turns.setdefault(one["gsid"]["id"], []).append(one["status"])
    return list(turns.values())


def test_a_slow_and_a_dead_receiver_delay_no_other(database_url: str, listener: Listener) -> None:
    dead = f"http://127.0.0.1:{free_port()}/"
    receivers = [
        webhook("dead", dead),
        webhook("slow", listener.url("/slow")),
        webhook("noc", listener.url("/ok")),
    ]
    with station(database_url, receivers) as noc:
        begun = time.monotonic()
        noc.save(*(alert(n, id="", network=f"net{n}") for n in range(10)))
        listener.wait(10, "/ok")
        assert time.monotonic() - begun < 5 * SLOW_SECONDS
        assert len(listener.taken("/slow")) < 10
        assert len(noc.deliveries(Sending.PENDING, "dead")) == 10


def test_dead_letters_are_those_that_were_refused_and_can_be_replayed(
    database_url: str, listener: Listener
) -> None:
    with station(database_url, [webhook("noc", listener.url("/picky"))]) as noc:
        noc.save(*(alert(n, id="", network=f"net{n}") for n in range(40)))
        noc.until(noc.drained)
        dead = noc.deliveries(Sending.DEAD)
        assert {d.key for d in dead} == {d.key for d in noc.deliveries() if is_refused(d.key)}
        assert all(d.attempts == 1 and "400" in str(d.answer) for d in dead)
        with noc.database.write() as connection:
            outbox.replay(connection, dead[0].number, noc.now())
        noc.notifier.wake()
        noc.until(noc.drained)
    again = [line for line in listener.received() if line["id"] == dead[0].key]
    assert [line["status"] for line in again] == [400, 400]


def test_410_disables_and_what_comes_later_is_dead_until_it_is_enabled(
    database_url: str, tmp_path: Path
) -> None:
    with (
        listening(tmp_path) as listener,
        station(database_url, [webhook("noc", listener.url("/gone"))]) as noc,
    ):
        noc.save(*(alert(n, id="", network=f"net{n}") for n in range(GONE_AFTER + 5)))
        noc.until(noc.drained)
        noc.save(alert(999, id="", network="later"))
        assert len(noc.deliveries(Sending.DELIVERED)) == GONE_AFTER
        assert len(noc.deliveries(Sending.DEAD)) == 6
        with noc.database.read() as connection:
            assert "410" in outbox.disabled(connection)["noc"].reason
        assert len(listener.received("/gone")) == GONE_AFTER + 1, "it was asked again"


def test_what_cannot_be_delivered_within_the_span_is_dead(database_url: str) -> None:
    dead = f"http://127.0.0.1:{free_port()}/"
    with station(database_url, [webhook("noc", dead)], give_up_seconds=0.5) as noc:
        noc.save(*(alert(n, id="", network=f"net{n}") for n in range(20)))
        noc.until(lambda: len(noc.deliveries(Sending.DEAD)) == 20, 5)
        assert "ConnectError" in str(noc.deliveries()[0].answer)


def test_what_waits_for_a_receiver_that_is_no_longer_there_is_dead(
    database_url: str, listener: Listener
) -> None:
    made = station(database_url, [webhook("old", f"http://127.0.0.1:{free_port()}/")])
    with made as noc:
        noc.save(alert(id=""))
    with station(database_url, [webhook("new", listener.url("/ok"))]) as noc:
        (body,) = listener.wait(1)  # who is new is told what fires
        assert body["body"]["receiver"] == "new"
        (dead,) = noc.deliveries(Sending.DEAD)
        assert dead.answer == "the receiver is no longer in the settings"


def test_the_worker_outlives_a_secret_that_is_gone_for_a_while(
    tmp_path: Path, listener: Listener
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{'whsec_' + 'A' * 32}\n{SECRET}\n")
    receiver = webhook("noc", listener.url("/ok"), secret_env=None, secret_file=secret)
    with station(f"sqlite:///{tmp_path / 'gsid.db'}", [receiver]) as noc:
        noc.save(alert(1, id=""))
        listener.wait(1)  # either secret of a rotation will do
        kept = secret.read_text()
        secret.unlink()
        noc.save(alert(2, id=""))
        noc.until(lambda: bool(noc.deliveries(Sending.PENDING)[0].attempts))
        secret.write_text(kept)
        listener.wait(2)


def test_the_metrics_count_what_became_of_messages(database_url: str, listener: Listener) -> None:
    with station(database_url, [webhook("noc", listener.url("/picky"))]) as noc:
        noc.save(*(alert(n, id="", network=f"net{n}") for n in range(30)))
        noc.until(noc.drained)
        noc.notifier.show()
        text = noc.metrics.text().decode()
        dead = len(noc.deliveries(Sending.DEAD))
    assert f'gsid_notifications_total{{outcome="delivered",receiver="noc"}} {30 - dead}.0' in text
    assert f'gsid_outbox_dead{{receiver="noc"}} {dead}.0' in text
    assert "gsid_outbox_pending 0.0" in text
