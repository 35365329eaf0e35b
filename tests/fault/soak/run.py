"""The run itself: a server, the networks that it watches, and who looks at its alerts."""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from gsid_service.demo.remote import Remote
from gsid_service.ingest.wire import dump_fact
from tests.fault.soak.agenda import SCALE, Agenda, hours
from tests.fault.soak.books import PAGED, Books, slot_of
from tests.fault.soak.collecting import Counts
from tests.fault.soak.life import Life
from tests.fault.soak.measure import sample
from tests.fault.soak.operator import Operator
from tests.flow.server import Server, running
from tests.notify.listener import SECRET, Listener, listening

LOOK_SECONDS, LOOK_BACK_SECONDS = 1.0, 7.0
SAMPLE_SECONDS = 15.0
LAST_SECONDS = 60.0  # in which nothing new happens, so that what did is seen
SETTINGS = """
[notify]
group_wait_seconds = 0.5
group_interval_seconds = 5

[[receivers]]
name = "noc"
type = "webhook"
url = "{url}/ok"
secret_env = "NOC_SECRET"
"""
HISTORY_SECONDS = hours(20)


class Soak:
    """Networks at a server, for some time."""

    def __init__(
        self, networks: int, seed: int, slice_seconds: float, out: Path, pace: float = 1
    ) -> None:
        out = out.absolute()
        out.mkdir(parents=True, exist_ok=True)
        self.out, self.slice_seconds, self.seed, self.pace = out, slice_seconds, seed, pace
        self.lives = [Life.draw(number, seed) for number in range(networks)]
        self.books = Books(out / "rows.jsonl", self.lives)
        self.agenda, self.counts = Agenda(self.books.refused), Counts()
        self.noticed: set[tuple[str, str]] = set()

    def run(self, seconds: float) -> dict[str, Any]:
        with ExitStack() as open_until_the_end:
            open_until_the_end.enter_context(self.books.file)
            self.server, listener = open_until_the_end.enter_context(self._server())
            self.operators = {life.name: self._operator(life) for life in self.lives}
            for operator in self.operators.values():
                open_until_the_end.enter_context(operator.remote.client)
                operator.open()
            self._begin()
            self.agenda.run(self.books.begun + seconds - min(LAST_SECONDS, seconds / 4))
            self._only_look()
            self.agenda.run(self.books.begun + seconds)
            self._wait_scored()
            self._sample()
            self._slice()
            return self._summary(listener)

    @contextmanager
    def _server(self) -> Iterator[tuple[Server, Listener]]:
        self.database = self.out / "gsid.db"
        for file in self.out.glob("gsid.db*"):
            file.unlink()
        (self.out / "received.jsonl").unlink(missing_ok=True)
        with listening(self.out) as listener:
            config = self.out / "gsid.toml"
            config.write_text(SETTINGS.format(url=listener.url("")))
            settings = {
                "GSID_CYCLE_STALE_SECONDS": str(hours(3)),
                "GSID_CYCLE_SWEEP_SECONDS": "5",
                "GSID_RETENTION_DAYS": str(HISTORY_SECONDS / 86400),
                "GSID_RETENTION_SNAPSHOTS": "60",
                "GSID_ALERTS_FLAP_SECONDS": str(hours(1)),
                "GSID_LOG_LEVEL": "warning",
                "NOC_SECRET": SECRET,
            }
            url = f"sqlite:///{self.database}"
            with running(url, self.out, "--config", str(config), **settings) as server:
                yield server, listener

    def _operator(self, life: Life) -> Operator:
        remote = Remote(self.server.url, life.name)
        rng = random.Random(f"gsid soak {self.seed} {life.name}")
        return Operator(life, remote, self.agenda, self.books, rng, self.counts)

    def _begin(self) -> None:
        self._wait_scored()
        self.books.begun = time.time()
        self.sliced = [self.books.begun]
        self.books.write("begin", time.time(), **self._setting())
        for operator in self.operators.values():
            operator.live(self.pace)
        self._look_regularly()
        self.agenda.every(self.slice_seconds, self._slice)
        self._sample()

    def _wait_scored(self) -> None:
        """Until every network is scored as it was told last."""
        client = self.server.client
        deadline = time.monotonic() + 300
        for name in self.operators:
            while not client.get(f"/api/v1/networks/{name}").json()["up_to_date"]:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{name} is not scored")
                time.sleep(0.2)

    def _setting(self) -> dict[str, Any]:
        return {
            "networks": len(self.lives),
            "seed": self.seed,
            "scale": SCALE,
            "pace": self.pace,
            "routers": sum(life.design.topology.routers for life in self.lives),
            "values": sum(len(f.params) for life in self.lives for f in life.facts),
        }

    def _look_regularly(self) -> None:
        self.agenda.every(LOOK_SECONDS, self._look)
        self.agenda.every(LOOK_BACK_SECONDS, self._look_back)
        self.agenda.every(SAMPLE_SECONDS, self._sample)

    def _only_look(self) -> None:
        """The networks stand still, and nothing is on its way any more."""
        self.agenda.acts.clear()
        for operator in self.operators.values():
            for one in operator.collecting:
                one.settle()
        self._look_regularly()

    def _look(self) -> None:
        firing = self._alerts(status=["firing", "acknowledged", "silenced"])
        self.books.firing = {alert["id"]: alert for alert in firing}
        self._react(firing)

    def _look_back(self) -> None:
        """At alerts that resolved too: what comes and goes between two looks was a page as well."""
        self._react(self._alerts(status=["resolved"]))

    def _alerts(self, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            asked = query | {"limit": 500} | ({"cursor": cursor} if cursor else {})
            page = self.server.client.get("/api/v1/alerts", params=asked).raise_for_status().json()
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                return found

    def _react(self, alerts: list[dict[str, Any]]) -> None:
        for page in self.books.look(alerts, time.time()):
            alert = next(a for a in alerts if a["id"] == page.alert)
            self.operators[page.network].answer(page, slot_of(alert))
        for alert in alerts:
            key = alert["id"], alert["since"]
            if alert["severity"] not in PAGED and key not in self.noticed:
                self.noticed.add(key)
                self.operators[alert["network"]].notice(slot_of(alert))

    def _sample(self) -> None:
        self.books.write("sample", time.time(), **sample(self.server, self.database))

    def _slice(self) -> None:
        now = time.time()
        self.books.write("slice", now, **self.books.slice(self.sliced[-1], now))
        self.sliced.append(now)

    def _is_known(self, operator: Operator) -> bool:
        """Whether the service has a network exactly as it is."""
        graph = self.server.client.get(f"/api/v1/networks/{operator.life.name}/graph").json()
        known = {(f["predicate"], *f["args"]): f.get("params", {}) for f in graph["facts"]}
        there = {
            (f.predicate, *f.args): dict(dump_fact(f).get("params", {}))
            for f in operator.life.facts
        }
        return known == there

    def _summary(self, listener: Listener) -> dict[str, Any]:
        """All of it, and what still fires about values that are right."""
        self._look_back()
        self._look()
        stuck = [
            alert["id"]
            for alert in self.books.firing.values()
            if slot_of(alert) not in self.operators[alert["network"]].life.wrong
        ]
        summary = {
            **self._setting(),
            "seconds": round(time.time() - self.books.begun, 1),
            **self.books.summary(),
            "open_about_right_values": len(stuck),
            "networks_that_differ": [n for n, o in self.operators.items() if not self._is_known(o)],
            "messages": len(listener.taken("/ok")),
            "snapshots": asdict(self.counts),
            "slices": [self.books.slice(*ends) for ends in pairwise(self.sliced)],
        }
        self.books.write("summary", time.time(), **summary)
        return summary
