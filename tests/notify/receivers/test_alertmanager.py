"""Against Debian's real Alertmanager: alerts appear, stay while they fire, and resolve."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gsid_service.config import Receiver
from gsid_service.records import Severity
from tests.notify.alertmanager import active, alertmanager, severities
from tests.notify.making import alert
from tests.notify.station import Station, station
from tests.waiting import until

RESEND = 0.5  # Alertmanager takes an alert for over after four times that


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager")) as found:
        yield found


@pytest.fixture
def noc(tmp_path: Path, url: str) -> Iterator[Station]:
    receiver = Receiver(name="am", type="alertmanager", url=url)
    with station(f"sqlite:///{tmp_path / 'gsid.db'}", [receiver], resend_seconds=RESEND) as made:
        yield made


def test_an_alert_appears_stays_while_it_fires_and_resolves(noc: Station, url: str) -> None:
    kept = noc.save(alert(1, id="", network="am1"))
    until(lambda: bool(severities(url, "am1")), 2)
    (seen,) = [a for a in active(url) if a["labels"]["network"] == "am1"]
    assert seen["labels"] == {
        "alertname": "GSID",
        "network": "am1",
        "fact": "bgp_route(AS65101@R1, 203.0.113.0/24)",
        "parameter": "local_pref",
        "severity": "critical",
        "alert_id": kept[0].id,
    }
    assert seen["annotations"]["observed"] == "80"
    for _ in range(6):
        time.sleep(RESEND)
        assert severities(url, "am1"), "it is gone while it fires"
    noc.resolve(*kept)
    until(lambda: not severities(url, "am1"), 2)


def test_other_alerts_of_the_network_are_told_at_once_and_stay(noc: Station, url: str) -> None:
    first = noc.save(alert(1, id="", network="am2"))
    both = [*first, *noc.save(*first, alert(2, id="", network="am2"))[1:]]
    until(lambda: len(severities(url, "am2")) == 2, 2)
    noc.save(replace(both[0], severity=Severity.MAJOR), both[1])
    until(lambda: sorted(severities(url, "am2").values()) == ["critical", "major"], 2)
    noc.resolve(*both)
    until(lambda: not severities(url, "am2"), 2)


def test_only_the_last_of_many_repeats_is_kept(noc: Station, url: str) -> None:
    noc.save(alert(1, id="", network="am3"))
    until(lambda: bool(severities(url, "am3")), 2)
    time.sleep(5 * RESEND)
    kinds = [d.kind for d in noc.deliveries()]
    assert kinds[-1] == "new"
    assert set(kinds[:-1]) == {"repeat"}
    assert len(kinds) <= 3
