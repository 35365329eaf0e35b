"""From settings to a running server, in reading order."""

import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, cast

import structlog
import uvicorn

from gsid_service import memory
from gsid_service.api import web
from gsid_service.api.access import Gate
from gsid_service.api.connections import OWN_FILES, Bounded, allow_files, files_allowed
from gsid_service.api.documents import Reloaded
from gsid_service.api.problems import Problem
from gsid_service.app import API, EVERY_ROLE, SCORER, Service
from gsid_service.config import RELOADABLE, BadSettings, Server, Settings
from gsid_service.console import site
from gsid_service.console.live import Feed
from gsid_service.diagnose.apart import Apart, NotStarted, OnNeed
from gsid_service.diagnose.diagnosis import Here
from gsid_service.drift import at_training
from gsid_service.jobs import Jobs
from gsid_service.jobs.embedded import Embedded
from gsid_service.metrics import Metrics
from gsid_service.notifier import channels
from gsid_service.store import tokens
from gsid_service.store.database import Database, connect, look

BACKLOG = 2048


class Refused(RuntimeError):
    """The service does not start; one line says why."""


def serve(
    settings: Settings,
    read_again: Callable[[], Settings],
    version: str,
    listening: socket.socket | None = None,
) -> None:
    """Run until told to stop; every reason not to start ends it before it listens, unless it was
    started with a socket that does already."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn stops, and then raises it again
    _log_to(settings)
    check(settings)
    allow_files()
    listening = listening or _listen(settings)
    diagnose = _load_model(settings)
    where = settings.database
    database = connect(where.url, where.migrate, where.password_file)
    required = _asks_for_tokens(settings, database)
    metrics = Metrics()
    metrics.show_model(diagnose.name, at_training(settings.model.place))
    if settings.server.role != SCORER:
        metrics.watch_scorer(lambda: diagnose.pid)
    roles = EVERY_ROLE if settings.server.role == "all" else {settings.server.role}
    jobs = _jobs(settings, database, roles)
    service = Service(settings, database, diagnose, metrics, jobs=jobs, roles=roles)
    gate = Gate(database, required)
    app = web.create(service, gate, version, _reloader(service, read_again))
    feed = site.install(app, service) if API in roles else None
    memory.settle()
    run = uvicorn.Config(
        app,
        ssl_certfile=settings.server.tls_certificate,
        ssl_keyfile=settings.server.tls_key,
        log_config=None,
        access_log=False,
        server_header=False,
        http=Bounded,
        limit_concurrency=settings.server.connections,
        timeout_keep_alive=settings.server.idle_seconds,
        timeout_graceful_shutdown=10,
    )
    host, port = listening.getsockname()[:2]
    role = settings.server.role
    structlog.get_logger().info("listening", host=host, port=port, role=role)
    with memory.giving_back():
        _Server(run, feed).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Lets the console's pages go when it is told to stop, which would listen on for ever."""

    def __init__(self, config: uvicorn.Config, feed: Feed | None) -> None:
        super().__init__(config)
        self.feed = feed

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.feed is not None:
            self.feed.end()
        super().handle_exit(sig, frame)


def _listen(settings: Settings) -> socket.socket:
    """Take the port before anything else begins."""
    host, port = settings.server.host, settings.server.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # Named as TCP: asyncio sends small answers without delay on such sockets only.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Refused(f"server.host: cannot listen on {host} port {port}: {reason}") from None
    return listening


def _jobs(settings: Settings, database: Database, roles: Collection[str]) -> Jobs:
    if database.is_sqlite:
        return Embedded()
    from gsid_service.jobs.postgres import Queue

    wanted = settings.jobs
    return Queue(database, roles, wanted.at_once, wanted.stalled_seconds)


def _load_model(settings: Settings) -> Apart | OnNeed | Here:
    """It takes long, so what else is wrong was said before; and no database is made for nothing."""
    wanted = settings.model.place, settings.model.threads
    try:
        if settings.server.role == SCORER:
            return _in_this_process(*wanted)
        return Apart(*wanted) if settings.server.role == "all" else OnNeed(*wanted)
    except ValueError as error:
        raise Refused(f"model.folder: {error}") from None
    except NotStarted as error:
        raise Refused(str(error)) from None
    except OSError as error:  # such as too many processes
        raise Refused(f"the scoring process cannot be started: {error}") from None


def _in_this_process(folder: Path, threads: int) -> Here:
    """Who only scores has nobody else to keep waiting."""
    from gsid_service.score.scorer import load, use_cores
    from gsid_service.score.together import Together

    use_cores(threads)
    scorer = load(folder)
    return Here(Together(scorer), scorer.name)


class _Log:
    """stderr; a line that it does not take, as on a full disk, is lost and stops nothing."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def _log_to(settings: Settings) -> None:
    """structlog, to stderr; what libraries log goes the same way."""
    shown: Any = structlog.processors.JSONRenderer()
    if settings.log.format == "console":
        # Plain tracebacks: others show what variables held, which may be a secret.
        plain = structlog.dev.plain_traceback
        shown = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)
    common: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    level = getattr(logging, settings.log.level.upper())
    structlog.configure(
        processors=[*common, structlog.processors.format_exc_info, shown],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Log())),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=shown, foreign_pre_chain=common)
    )
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler], force=True)
    for chatty in ("alembic", "httpx", "procrastinate"):  # httpx would log URLs with their secrets
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # who needs a connection warns itself


def check(settings: Settings) -> None:
    """Refuse what can be seen to be wrong before anything is begun, or left behind."""
    _check_certificate(settings)
    _check_role(settings)
    _check_connections(settings.server)
    channels(settings)
    for name in ("config.json", "weights.safetensors"):
        file = settings.model.place / name
        if not os.access(file, os.R_OK):
            raise BadSettings(f"model.folder: {file} cannot be read")
    where = settings.database
    with look(where.url, where.migrate, where.password_file) as connection:
        _check_access(settings.server, connection is not None and tokens.count(connection) > 0)


def check_model(settings: Settings) -> None:
    """Load it: what is in its files is seen only then, which takes a second or two."""
    from gsid_service.score.scorer import BadModel, load

    try:
        load(settings.model.place)
    except BadModel as error:
        raise BadSettings(f"model.folder: {error}") from None


def _check_role(settings: Settings) -> None:
    role = settings.server.role
    if role != "all" and settings.database.url.startswith("sqlite"):
        raise BadSettings(
            f"server.role: {role}: a process that does only this needs others, and PostgreSQL to "
            "share with them: set database.url to postgresql+psycopg://…"
        )


def _check_certificate(settings: Settings) -> None:
    certificate, key = settings.server.tls_certificate, settings.server.tls_key
    if certificate is None or key is None:
        return
    for name, file in (("tls_certificate", certificate), ("tls_key", key)):
        if not os.access(file, os.R_OK):
            raise BadSettings(f"server.{name}: {file} cannot be read")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise BadSettings(
            f"server.tls_certificate: {certificate} and {key} are not a certificate and its key: "
            f"{error}"
        ) from None


def _check_connections(server: Server) -> None:
    allowed = files_allowed()
    if server.connections + OWN_FILES > allowed:
        raise BadSettings(
            f"server.connections: {server.connections} and {OWN_FILES} files of our own are more "
            f"than the {allowed} that may be open here (ulimit -Hn)"
        )


def _check_access(server: Server, has_tokens: bool) -> None:
    """Off loopback there must be tokens, and TLS."""
    if server.on_loopback or server.insecure:
        return
    if not has_tokens:
        raise Refused(
            f"server.host: {server.host} is not loopback and there are no tokens: make one with "
            "gsid token create, or say --insecure"
        )
    if server.tls_certificate is None:
        raise Refused(
            f"server.host: {server.host} is not loopback and there is no TLS: set "
            "server.tls_certificate and server.tls_key, or say --insecure"
        )


def _asks_for_tokens(settings: Settings, database: Database) -> bool:
    with database.read() as connection:
        has_tokens = tokens.count(connection) > 0
    _check_access(settings.server, has_tokens)  # once more: one may have been revoked meanwhile
    return has_tokens


def _reloader(service: Service, read_again: Callable[[], Settings]) -> web.Reload:
    def reload() -> Reloaded:
        try:
            fresh = read_again()
        except BadSettings as error:
            raise Problem(422, str(error)) from None
        old = service.settings
        differ = [n for n in type(old).model_fields if getattr(old, n) != getattr(fresh, n)]
        changed = [name for name in differ if name in RELOADABLE]
        service.take_over(old.model_copy(update={n: getattr(fresh, n) for n in changed}))
        return Reloaded(changed=changed, restart=[n for n in differ if n not in RELOADABLE])

    return reload
