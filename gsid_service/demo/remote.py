"""The service as the demo speaks to it over HTTP: collectors, the operator, and who looks on.

A service that is busy or away for a moment is asked again; what it refuses is said in one line.
"""

import time
from collections.abc import Iterable
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from gsid_service.demo.play import Values
from gsid_service.ingest.wire import dump_fact, dump_snapshot
from gsid_service.records import Fact, Snapshot

PATIENCE_SECONDS = 60.0
PAUSE_SECONDS = 0.5
SCORED_WITHIN_SECONDS = 30
BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
NOT_YET = BUSY | {HTTPStatus.NOT_FOUND}
ALERTS_AT_MOST = 1000


class Unwilling(RuntimeError):
    """The service refuses, or does not answer; one line says why."""


class Remote:
    """One network at a service; the collectors and the operator each have a token, or none."""

    def __init__(
        self, url: str, network: str, collectors: str | None = None, operator: str | None = None
    ) -> None:
        self.url, self.network = url.rstrip("/"), network
        self.path = f"/api/v1/networks/{quote(network, safe='')}"
        self.tokens = {"collectors": collectors, "operator": operator}
        self.client = httpx.Client(timeout=SCORED_WITHIN_SECONDS + 30)

    def send(self, snapshot: Snapshot) -> str:
        """Push a collector's snapshot; its id."""
        answer = self._ask("POST", "/ingest", dump_snapshot(snapshot), who="collectors")
        return str(answer["snapshot_id"])

    def approve(self) -> None:
        self._ask("PUT", f"{self.path}/baseline", {"now": True})

    def state(self, intents: Iterable[Fact]) -> None:
        self._ask("PUT", f"{self.path}/intents", {"intents": [dump_fact(i) for i in intents]})

    def announce(self, values: Values, ends_at: datetime, ticket: str, comment: str) -> str:
        """Announce new values; the id of the change."""
        changes = [
            {
                "fact": {"predicate": key.predicate, "args": list(key.args)},
                "parameter": parameter,
                "value": value,
            }
            for (key, parameter), value in values.items()
        ]
        wanted = {"ticket": ticket, "comment": comment, "ends_at": ends_at.isoformat()}
        return str(self._ask("POST", f"{self.path}/changes", wanted | {"changes": changes})["id"])

    def status_of(self, change: str) -> str:
        return str(self._ask("GET", f"{self.path}/changes/{change}")["status"])

    def until_scored(self, snapshot: str) -> None:
        query = f"snapshot={snapshot}&wait={SCORED_WITHIN_SECONDS}&limit=1"
        self._ask("GET", f"{self.path}/scores?{query}", again=NOT_YET)

    def alerts(self) -> list[dict[str, Any]]:
        """All alerts of the network, the oldest first."""
        query = f"network={quote(self.network, safe='')}&limit={ALERTS_AT_MOST}"
        newest: list[dict[str, Any]] = self._ask("GET", f"/api/v1/alerts?{query}")["items"]
        return newest[::-1]

    @property
    def page(self) -> str:
        return f"{self.url}/networks/{quote(self.network, safe='')}"

    def page_of(self, alert: str) -> str:
        return f"{self.url}/alerts/{alert}"

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        who: str = "operator",
        again: frozenset[HTTPStatus] = BUSY,
    ) -> Any:
        token = self.tokens[who]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self.client.request(method, self.url + path, json=body, headers=headers)
            except httpx.TransportError as error:
                problem = f"{self.url} does not answer: {error}"
            else:
                if answer.is_success:
                    return answer.json()
                problem = f"{method} {path}: {answer.status_code} {_detail(answer)}"
                if answer.status_code not in again:
                    raise Unwilling(problem)
            if time.monotonic() > until:
                raise Unwilling(problem)
            time.sleep(PAUSE_SECONDS)


def _detail(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return answer.reason_phrase
