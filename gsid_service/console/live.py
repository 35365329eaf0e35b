"""Live updates: what changed in the store, as server-sent events to every open page.

PostgreSQL says which networks change, whichever process changes them; SQLite is looked at a few
times a second. Either is done once for all pages, and only while there are any.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

import psycopg
import structlog
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from gsid_service.store import news
from gsid_service.store.database import Database
from gsid_service.store.news import ANY, News
from gsid_service.store.tokens import Token

log = structlog.get_logger()
LOOK_SECONDS = 0.25
AWAY_SECONDS = 1.0  # before a database that does not answer is asked again
BEAT_SECONDS = 15.0
WAITING_AT_MOST = 1000  # networks that a page may be behind with


class Seen(NamedTuple):
    """The store as it was when somebody looked."""

    networks: News
    told: tuple[Any, ...]

    @property
    def version(self) -> str:
        """The same as long as nothing changes."""
        stamps = sorted(self.networks.stamps.items())
        return sha256(repr((stamps, self.networks.event, self.told)).encode()).hexdigest()[:16]


class Feed:
    """Tells pages which networks changed."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self.database, self.clock = database, clock
        self._listening: dict[asyncio.Queue[str | None], Token] = {}
        self._joining: dict[asyncio.Queue[str | None], str] = {}
        self._watch: asyncio.Task[None] | None = None
        self._ended = False

    def version(self) -> str:
        """What a page knows that is made after this look."""
        return self._look(None)[0].version

    async def listen(self, who: Token, known: str) -> AsyncIterator[str]:
        """Events in the form of the protocol, until the page leaves or the service stops.

        What changed since the page was made with the version `known` is the first of them.
        """
        queue = asyncio.Queue[str | None](WAITING_AT_MOST)
        self._listening[queue], self._joining[queue] = who, known
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._run())
        try:
            yield "retry: 1000\n\n"
            while not self._ended:
                try:
                    name = await asyncio.wait_for(queue.get(), BEAT_SECONDS)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if name is None:
                    return
                yield f"event: change\ndata: {json.dumps({'network': name})}\n\n"
        finally:
            del self._listening[queue]
            self._joining.pop(queue, None)

    def end(self) -> None:
        """Let all pages go; safe in a signal handler."""
        self._ended = True
        for queue in list(self._listening):
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)

    async def _run(self) -> None:
        again = False
        while self._listening and not self._ended:
            try:
                await (self._poll if self.database.is_sqlite else self._hear)(again)
            except (SQLAlchemyError, psycopg.Error) as error:
                log.warning("live updates wait for the database", problem=type(error).__name__)
                await asyncio.sleep(AWAY_SECONDS)
            again = True

    async def _poll(self, again: bool) -> None:
        """Look at the store; what came while nobody could, `again`, may be anything."""
        seen: Seen | None = None
        while self._listening and not self._ended:
            now, changed = await run_in_threadpool(self._look, seen)
            for name in [ANY] if again and seen is None else sorted(changed):
                self._tell(name)
            self._welcome(now.version)
            seen = now
            await asyncio.sleep(LOOK_SECONDS)

    async def _hear(self, again: bool) -> None:
        """Listen to the database."""
        place = self.database.place
        async with await psycopg.AsyncConnection.connect(place, autocommit=True) as connection:
            await connection.execute(f"LISTEN {news.CHANNEL}")
            if again:
                self._tell(ANY)
            while self._listening and not self._ended:
                if self._joining:
                    self._welcome(await run_in_threadpool(self.version))
                # Gathered for a moment: many cycles of one network are one change to a page.
                heard = [n.payload async for n in connection.notifies(timeout=LOOK_SECONDS)]
                for name in sorted(set(heard)):
                    self._tell(name)

    def _look(self, before: Seen | None) -> tuple[Seen, set[str]]:
        with self.database.read() as connection:
            now = Seen(news.look(connection), news.told(connection, self.clock()))
            if before is None:
                return now, set()
            changed = now.networks.since(before.networks, connection)
            return now, changed if now.told == before.told else {ANY}

    def _welcome(self, version: str) -> None:
        """Pages that were made before this look may have missed what it saw."""
        for queue, known in self._joining.items():
            if known != version:
                queue.put_nowait(ANY)
        self._joining.clear()

    def _tell(self, name: str) -> None:
        for queue, who in self._listening.items():
            if not who.networks or name in who.networks or name == ANY:
                with suppress(asyncio.QueueFull):  # such a page asks for everything anyway
                    queue.put_nowait(name)
