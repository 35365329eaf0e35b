"""A small network that a running server watches, with one value that is right or wrong."""

from itertools import count
from typing import Any

from tests.flow.network import small
from tests.flow.server import Server

RIGHT, WRONG = 200, 0
numbers = count()


class Watched:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.name, self.sequence = f"flow{next(numbers)}", 0
        self.see(RIGHT)

    def see(self, local_pref: int, **more: int) -> None:
        """Post it, and wait until it is scored."""
        self.sequence += 1
        body = small(self.name, "rr1", self.sequence, local_pref=local_pref, **more)
        answer = self.server.client.post("/ingest", json=body).raise_for_status()
        query = {"snapshot": answer.json()["snapshot_id"], "wait": 30}
        path = f"/api/v1/networks/{self.name}/scores"
        self.server.client.get(path, params=query).raise_for_status()

    def alert(self) -> dict[str, Any]:
        """The alert on the wrong value, with why who was told."""
        found = self.get("/alerts", network=self.name)["items"]
        one = next(a for a in found if a["parameter"] == "local_pref")
        shown: dict[str, Any] = self.get(f"/alerts/{one['id']}")
        return shown

    def get(self, path: str, **query: Any) -> Any:
        return self.server.client.get(f"/api/v1{path}", params=query).raise_for_status().json()

    def post(self, path: str, **body: Any) -> Any:
        answer = self.server.client.post(f"/api/v1{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def why(self, receiver: str) -> dict[str, Any]:
        rows = self.alert()["notifications"]
        return next(row for row in rows if row["receiver"] == receiver)
