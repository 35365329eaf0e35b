"""The real application over HTTP, served by this process: a clock of the test's choice, a detector
that tells what differs, and rounds of the cycle where the test asks for one."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import httpx
import uvicorn
from structlog.testing import capture_logs

from gsid_service.api import web
from gsid_service.api.access import Gate
from gsid_service.api.documents import Reloaded
from gsid_service.app import Service
from gsid_service.config import Alerts, Settings
from gsid_service.diagnose.diagnosis import Here
from gsid_service.metrics import Metrics
from gsid_service.records import Graph, Scores
from gsid_service.score.rivals import diff
from gsid_service.store import tokens
from gsid_service.store.database import connect
from tests.flow.network import BEGIN, small

NET = "as65000"
NETWORK = f"/api/v1/networks/{NET}"
ROUTE = {"predicate": "bgp_route", "args": ["AS65101@R3", "203.0.113.0/24"]}


class Differs:
    """Sure of what differs from its reference, and of nothing else."""

    name = "differs"

    def __call__(self, graph: Graph) -> Scores:
        return diff(graph)


class Inside:
    """A service that is driven by hand, and a client of its application."""

    def __init__(self, url: str) -> None:
        self.url, self.now, self.sequence = url, BEGIN, 0
        self.start()

    def start(self) -> None:
        settings = Settings(alerts=Alerts(open_score=0.7, close_score=0.35))
        database = connect(self.url, migrate=True)
        self.service = Service(
            settings, database, Here(Differs(), "test"), Metrics(), clock=lambda: self.now
        )
        self.service.inbox.start()
        app = web.create(
            self.service, Gate(database, False), "0", lambda: Reloaded(changed=[], restart=[])
        )
        # Without its lifespan, which would start the cycle.
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
        self.server, listening = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]})
        self.thread.start()
        self.address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.client = httpx.Client(base_url=self.address, timeout=30)

    def close(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self.thread.join()
        self.service.inbox.stop()
        self.service.database.close()

    def restart(self) -> None:
        self.close()
        self.start()

    def caller(self, role: str, *networks: str) -> httpx.Client:
        """A client with a token; from now on everybody needs one."""
        with self.service.database.write() as connection:
            name = f"{role} {networks}"
            secret = tokens.create(connection, name, role, networks, self.now)
        headers = {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=30)

    def later(self, **by: float) -> datetime:
        self.now += timedelta(**by)
        return self.now

    def see(self, **route: int) -> None:
        """A snapshot of the small network, and a round of the cycle."""
        self.sequence += 1
        body = small(NET, "rr1", self.sequence, **route)
        body["observed_at"] = self.later(seconds=1).isoformat()
        self.client.post("/ingest", json=body).raise_for_status()
        self.cycle()

    def cycle(self) -> None:
        self.service.run_cycle(NET)
        assert self.get("")["problem"] is None

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"{NETWORK}{path}", params=query).raise_for_status().json()

    def alerts(self, status: str = "firing") -> list[Any]:
        found = self.client.get("/api/v1/alerts", params={"status": status}).raise_for_status()
        items: list[Any] = found.json()["items"]
        return items


@contextmanager
def inside(url: str) -> Iterator[Inside]:
    with capture_logs():
        opened = Inside(url)
        try:
            yield opened
        finally:
            opened.close()
