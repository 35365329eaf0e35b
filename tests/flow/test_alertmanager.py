"""From a snapshot to Debian's real Alertmanager, with `gsid serve` as it ships between them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.flow.server import Server, running
from tests.flow.watched import RIGHT, WRONG, Watched
from tests.notify.alertmanager import active, alertmanager, severities
from tests.waiting import until

RESEND = 0.5  # Alertmanager takes an alert for over after four times that
SETTINGS = """
[notify]
resend_seconds = {resend}

[[receivers]]
name = "am"
type = "alertmanager"
url = "{url}"
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager")) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, url: str) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("serve")
    config = folder / "gsid.toml"
    config.write_text(SETTINGS.format(url=url, resend=RESEND))
    with running(f"sqlite:///{folder / 'gsid.db'}", folder, "--config", str(config)) as started:
        yield started


def test_an_alert_appears_within_two_seconds_stays_and_resolves(server: Server, url: str) -> None:
    net = Watched(server)
    assert severities(url, net.name) == {}
    net.see(WRONG)
    until(lambda: net.alert()["id"] in severities(url, net.name))
    seen_at = datetime.now(UTC)
    alert = net.alert()
    assert (seen_at - datetime.fromisoformat(alert["since"])).total_seconds() < 2
    (told,) = [a for a in active(url) if a["labels"]["alert_id"] == alert["id"]]
    assert told["labels"]["severity"] == alert["severity"]
    assert told["annotations"]["summary"] == alert["summary"]
    for _ in range(6):
        time.sleep(RESEND)
        assert alert["id"] in severities(url, net.name), "it is gone while it fires"
    net.see(RIGHT)
    until(lambda: severities(url, net.name) == {}, 2)
    assert net.why("am")["told"] == "resolved"
