"""From settings to a running server, in reading order."""

import gc
import logging
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any

import structlog
import uvicorn

from gsid_service.apart import Apart, Lost
from gsid_service.api import web
from gsid_service.api.access import Gate
from gsid_service.api.documents import Reloaded
from gsid_service.api.problems import Problem
from gsid_service.app import Service
from gsid_service.config import RELOADABLE, BadSettings, Settings
from gsid_service.metrics import Metrics
from gsid_service.notifier import channels
from gsid_service.store import tokens
from gsid_service.store.database import Database, connect

BACKLOG = 2048
YOUNG_OBJECTS = 10_000  # a snapshot makes about 700, nearly all of which end with its answer


class Refused(RuntimeError):
    """The service does not start; one line says why."""


def serve(settings: Settings, read_again: Callable[[], Settings], version: str) -> None:
    """Run until told to stop; every reason not to start ends it before it listens."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    _log_to(settings)
    check(settings)
    listening = _listen(settings)
    database = connect(settings.database.url, settings.database.migrate)
    required = _check_access(settings, database)
    diagnose = _load_model(settings)
    metrics = Metrics()
    metrics.model.info({"name": diagnose.name})
    service = Service(settings, database, diagnose, metrics)
    gate = Gate(database, required)
    app = web.create(service, gate, version, _reloader(service, read_again))
    # What is loaded by now stays: to search all of it for garbage would hold requests up for 0.1 s.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    run = uvicorn.Config(
        app,
        ssl_certfile=settings.server.tls_certificate,
        ssl_keyfile=settings.server.tls_key,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    host, port = listening.getsockname()[:2]
    structlog.get_logger().info("listening", host=host, port=port)
    uvicorn.Server(run).run(sockets=[listening])


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


def _load_model(settings: Settings) -> Apart:
    """In the end, since it takes long: what else is wrong is said at once."""
    try:
        return Apart(settings.model.folder, settings.model.threads)
    except (ValueError, Lost) as error:
        raise Refused(f"model.folder: {error}") from None


def _log_to(settings: Settings) -> None:
    """structlog, to stderr; what libraries log goes the same way."""
    shown: Any = structlog.processors.JSONRenderer()
    if settings.log.format == "console":
        shown = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    common: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    level = getattr(logging, settings.log.level.upper())
    structlog.configure(
        processors=[*common, structlog.processors.format_exc_info, shown],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=shown, foreign_pre_chain=common)
    )
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler], force=True)
    for chatty in ("alembic", "httpx"):  # httpx would log URLs, which may hold a secret
        logging.getLogger(chatty).setLevel(logging.WARNING)


def check(settings: Settings) -> None:
    """Refuse what can be seen to be wrong before anything is begun, or left behind."""
    _check_certificate(settings)
    channels(settings)
    for name in ("config.json", "weights.safetensors"):
        if not os.access(settings.model.folder / name, os.R_OK):
            raise BadSettings(f"model.folder: {settings.model.folder / name} cannot be read")


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


def _check_access(settings: Settings, database: Database) -> bool:
    """Whether tokens are asked for; off loopback there must be some, and TLS."""
    with database.read() as connection:
        has_tokens = tokens.count(connection) > 0
    server = settings.server
    if server.on_loopback or server.insecure:
        return has_tokens
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
    return True


def _reloader(service: Service, read_again: Callable[[], Settings]) -> web.Reload:
    def reload() -> Reloaded:
        try:
            fresh = read_again()
        except BadSettings as error:
            raise Problem(422, str(error)) from None
        old = service.settings
        differ = [n for n in type(old).model_fields if getattr(old, n) != getattr(fresh, n)]
        changed = [name for name in differ if name in RELOADABLE]
        service.settings = old.model_copy(update={n: getattr(fresh, n) for n in changed})
        return Reloaded(changed=changed, restart=[n for n in differ if n not in RELOADABLE])

    return reload
