"""The whole station on one machine: the service with a misconfigured network, Prometheus,
Alertmanager with the shipped configurations, and a webhook that stands for the NOC."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from gsid_service.store.database import connect
from tests.api.conftest import add_token
from tests.deploy.prometheus import Prometheus, prometheus, shipped
from tests.flow import network
from tests.flow.server import ROOT, Server, need_model, running
from tests.notify.alertmanager import alertmanager
from tests.notify.listener import SECRET, Listener, listening

NAME = "as65000"
RIGHT, WRONG = 200, 0
SETTINGS = """
[notify]
group_wait_seconds = 0
resend_seconds = 1

[[receivers]]
name = "noc"
type = "{type}"
url = "{url}"
secret_env = "NOC_SECRET"
"""


@dataclass
class Stack:
    server: Server
    prometheus: Prometheus
    alertmanager: str
    noc: Listener
    settings: Path
    collector: dict[str, str]  # its token, as a header
    sequence: int = 0

    def see(self, local_pref: int) -> None:
        """Post the network with this value in it, and wait until it is scored."""
        self.sequence += 1
        body = network.small(NAME, "rr1", self.sequence, local_pref=local_pref)
        at = datetime.now(UTC) + timedelta(milliseconds=self.sequence)
        body |= {"observed_at": at.isoformat()}
        answer = self.server.client.post("/ingest", json=body, headers=self.collector)
        query = {"snapshot": answer.raise_for_status().json()["snapshot_id"], "wait": 30}
        path = f"/api/v1/networks/{NAME}/scores"
        self.server.client.get(path, params=query).raise_for_status()

    def told(self, alertname: str) -> list[dict[str, Any]]:
        """Alerts of this name that reached the NOC through Alertmanager, the newest last."""
        bodies = [line["body"] for line in self.noc.taken("/alerts")]
        alerts = [alert for body in bodies for alert in body["alerts"]]
        return [alert for alert in alerts if alert["labels"]["alertname"] == alertname]

    def tell_alertmanager(self) -> None:
        """Start the service again, with Alertmanager as its receiver."""
        self.server.stop()
        said = SETTINGS.format(type="alertmanager", url=self.alertmanager)
        self.settings.write_text(said)
        self.server.start()


def until(true: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.1)


def hurried(noc: str) -> str:
    """The shipped configuration of Alertmanager to this webhook, and without its patience."""
    config = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())
    config["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    config["receivers"][0]["webhook_configs"][0]["url"] = noc
    return yaml.safe_dump(config)


def tokens(database: str) -> dict[str, str]:
    """One for each role, in a new database."""
    connect(database, migrate=True).close()
    return {role: add_token(database, role, role) for role in ("ingest", "read", "operate")}


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """A station whose network was right at first, and has one wrong value by now."""
    need_model()
    database = f"sqlite:///{folder / 'gsid.db'}"
    token = tokens(database)
    settings, credentials = folder / "gsid.toml", folder / "token"
    credentials.write_text(token["read"])
    with ExitStack() as running_all:
        noc = running_all.enter_context(listening(folder))
        am = running_all.enter_context(alertmanager(folder, hurried(noc.url("/alerts"))))
        settings.write_text(SETTINGS.format(type="webhook", url=noc.url("/ok")))
        flags = ("--config", str(settings))
        server = running_all.enter_context(running(database, folder, *flags, NOC_SECRET=SECRET))
        server.client.headers.update(_bearer(token["operate"]))
        config = shipped(f"127.0.0.1:{server.port}", am.removeprefix("http://"), credentials)
        prom = running_all.enter_context(prometheus(folder, config))
        made = Stack(server, prom, am, noc, settings, _bearer(token["ingest"]))
        until(lambda: prom.query('up{job="gsid"} == 1'))
        made.see(RIGHT)
        made.see(WRONG)
        yield made


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
