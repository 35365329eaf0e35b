"""Networks on a running server: a small one that is right or wrong, and one of many routers."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from gsid_service.demo.network import large
from gsid_service.ingest.wire import dump_snapshot
from gsid_service.schema import LOCAL_PREF
from tests.flow.network import small
from tests.flow.server import Server

RIGHT, WRONG = 200, 0
PREFIX, PREFERRED = "203.0.113.0/24", "AS65101@R3"  # of the small network
SCORED_WITHIN = 30


def push(server: Server, body: dict[str, Any]) -> str:
    """Post a snapshot and wait until it is scored; its id."""
    answer = server.client.post("/ingest", json=body)
    assert answer.status_code == 202, answer.text
    snapshot: str = answer.json()["snapshot_id"]
    query: dict[str, str | int] = {"snapshot": snapshot, "wait": SCORED_WITHIN, "limit": 1}
    path = f"/api/v1/networks/{quote(body['network'], safe='')}/scores"
    server.client.get(path, params=query).raise_for_status()
    return snapshot


class Small:
    """Three routers, a reflector and two ways out, of which one is preferred."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name, self.sequence = server, name, 0

    @property
    def path(self) -> str:
        return f"/networks/{self.name}"

    def see(self, local_pref: int) -> str:
        self.sequence += 1
        return push(self.server, small(self.name, "rr1", self.sequence, local_pref=local_pref))

    def alert(self) -> dict[str, Any]:
        """The alert on the preferred route, as the API has it."""
        query = {"network": self.name}
        found = self.server.client.get("/api/v1/alerts", params=query).raise_for_status().json()
        one = next(a for a in found["items"] if a["parameter"] == LOCAL_PREF.name)
        shown: dict[str, Any] = self.server.client.get(f"/api/v1/alerts/{one['id']}").json()
        return shown


def wide(name: str, routers: int) -> dict[str, Any]:
    """A part of Europe's backbone, as one collector sees it all."""
    return dump_snapshot(replace(large(routers), network=name))
