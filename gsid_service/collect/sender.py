"""From the spool to the service: one snapshot after another, until each is acknowledged."""

import http.client
import json
import logging
import random
import sqlite3
import ssl
import threading
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple
from urllib.parse import urlsplit

from gsid_service.collect.metrics import Metrics
from gsid_service.collect.settings import Service
from gsid_service.collect.spool import Spool, Waiting

log = logging.getLogger(__name__)
PATH = "/ingest"
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 60.0
SHOWN = 300  # characters of what the service has to say


class Fate(Enum):
    """What becomes of a snapshot that was sent."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"  # it will never be taken, and goes
    AGAIN = "again"


class Answer(NamedTuple):
    fate: Fate
    why: str = ""
    wait: float = 0.0  # at least, before the next attempt


class Sender:
    """Sends what the spool holds, and waits where the service is away."""

    def __init__(
        self, service: Service, spool: Spool, metrics: Metrics, rejected: Callable[[str], None]
    ) -> None:
        """`rejected` is told the router of a snapshot that was not taken."""
        self.service, self.spool, self.metrics = service, spool, metrics
        self.rejected = rejected
        self.news = threading.Event()
        self._tls = _context(service)

    def run(self) -> None:
        """For ever."""
        delay = FIRST_SECONDS
        while True:
            self.news.clear()
            try:
                waiting = self.spool.oldest()
                answer = self.send(waiting) if waiting else None
            except sqlite3.Error as error:  # a full disk, say: the service knows what comes twice
                answer = Answer(Fate.AGAIN, f"the spool: {error}")
            if answer is None:
                self.news.wait()
                continue
            if answer.fate is Fate.AGAIN:
                pause = max(answer.wait, delay * random.uniform(0.5, 1))
                log.warning("snapshots wait to be sent: %s", answer.why)
                threading.Event().wait(pause)
                delay = min(2 * delay, LONGEST_SECONDS)
            else:
                if delay > FIRST_SECONDS:
                    log.info("the service takes snapshots again")
                delay = FIRST_SECONDS

    def send(self, waiting: Waiting) -> Answer:
        """Send one; it leaves the spool only once it is settled."""
        answer = self._post(waiting.body)
        self.metrics.sent.labels(waiting.router, answer.fate.value).inc()
        if answer.fate is Fate.REJECTED:
            about = f"{waiting.sequence} of {waiting.router}"
            log.error("the service refuses %s, which is dropped: %s", about, answer.why)
            self.rejected(waiting.router)
        if answer.fate is not Fate.AGAIN:
            self.spool.remove(waiting.number)
            self.metrics.show_spool(*self.spool.size())
        return answer

    def _post(self, body: bytes) -> Answer:
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        try:
            headers |= self._authorization()
        except OSError as error:
            return Answer(Fate.AGAIN, f"service.token_file: {error}")
        try:
            connection = self._connection()
            try:
                connection.request("POST", self._path(), body, headers)
                response = connection.getresponse()
                return judge(response.status, dict(response.headers), response.read())
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            return Answer(Fate.AGAIN, f"{self.service.url}: {error or type(error).__name__}")

    def _authorization(self) -> dict[str, str]:
        if self.service.token_file is None:
            return {}
        return {"Authorization": f"Bearer {self.service.token_file.read_text().strip()}"}

    def _path(self) -> str:
        return urlsplit(self.service.url).path.rstrip("/") + PATH

    def _connection(self) -> http.client.HTTPConnection:
        place, seconds = urlsplit(self.service.url), self.service.timeout_seconds
        if self._tls is None:
            return http.client.HTTPConnection(place.hostname or "", place.port, timeout=seconds)
        return http.client.HTTPSConnection(
            place.hostname or "", place.port, timeout=seconds, context=self._tls
        )


def _context(service: Service) -> ssl.SSLContext | None:
    """Certificates are always verified."""
    if not service.url.startswith("https:"):
        return None
    return ssl.create_default_context(cafile=service.ca_file)


def judge(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """What an answer means; whoever lacks a permission may get it, and tries again."""
    if status in {200, 202}:
        return Answer(Fate.ACCEPTED)
    why = f"{status} {_detail(body)}"
    if status in {400, 409, 413, 415, 422}:
        return Answer(Fate.REJECTED, why)
    after = headers.get("Retry-After", "")
    return Answer(Fate.AGAIN, why, float(after) if after.isdecimal() else 0.0)


def _detail(body: bytes) -> str:
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    detail = content.get("detail") if isinstance(content, dict) else None
    return str(detail or body.decode(errors="replace"))[:SHOWN]
