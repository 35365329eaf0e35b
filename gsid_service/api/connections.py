"""Connections, bounded in number, in time without a request and in what comes before a body.

A client may open many, send a byte a second, or read none of its answer: what it holds is given to
others. Requests that are being answered have a time limit of their own, in `web.Guard`.
"""

import resource
from typing import Any, ClassVar

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

log = structlog.get_logger()
FILES = 1 << 16  # enough, where the system allows more
OWN_FILES = 200  # of the database, the log, the process that scores, receivers
HEAD_BYTES = 1 << 16  # of a request before its body, or after it
WARN_SECONDS = 60.0  # no more often: who opens connections must not fill the log
END = b"content-length: 0\r\nconnection: close\r\n\r\n"
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + END
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n" + END


def files_allowed() -> int:
    """How many files this process may have open; a connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FILES if hard == resource.RLIM_INFINITY else min(hard, FILES)


def allow_files() -> None:
    """Have them all: systems often begin with few, and let a process ask for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files_allowed():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files_allowed(), hard))


class Bounded(HttpToolsProtocol):
    """One connection; of uvicorn's settings it takes the number and the idle time literally."""

    warned_at: ClassVar[float] = -WARN_SECONDS

    def __init__(self, config: uvicorn.Config, **given: Any) -> None:
        super().__init__(config, **given)
        self.at_most, self.limit_concurrency = self.limit_concurrency, None
        self._idle_since = 0.0
        self._unread = 0  # bytes since the last that meant something
        self._unsent = 0  # bytes of an answer, when last looked at

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered, though one may be on its way."""
        return self.cycle is None or self.cycle.response_complete or self.transport.is_closing()

    # From the transport

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self.loop.call_later(self.timeout_keep_alive, self._look)
        if self.at_most is not None and len(self.connections) > self.at_most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD_BYTES:
            self._refuse(TOO_LONG)

    # From the parser

    def on_headers_complete(self) -> None:
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()

    # Bounds

    def _make_room(self) -> None:
        """Let the connection go that has been idle the longest, as a client must expect; where
        all are busy, this one."""
        others = (c for c in self.connections if c is not self and isinstance(c, Bounded))
        idle = [other for other in others if other.is_idle]
        self._warn(len(idle))
        if idle:
            min(idle, key=lambda other: other._idle_since).transport.abort()
        else:
            self._refuse(BUSY)

    def _warn(self, idle: int) -> None:
        now = self.loop.time()
        if now - Bounded.warned_at >= WARN_SECONDS:
            Bounded.warned_at = now
            log.warning("too many connections", at_most=self.at_most, idle=idle)

    def _look(self) -> None:
        """Now and then: does somebody ask, or read what was answered? Else let it go."""
        if self not in self.connections:
            return
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        is_unread = 0 < before <= self._unsent
        is_over = self.loop.time() - self._idle_since >= self.timeout_keep_alive
        if is_unread or (self.is_idle and is_over and not self._unsent):
            self.transport.abort()
            return
        self.loop.call_later(self.timeout_keep_alive, self._look)

    def _refuse(self, answer: bytes) -> None:
        if self.is_idle and not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
        else:
            self.transport.abort()
