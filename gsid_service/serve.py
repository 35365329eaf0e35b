"""From settings to a running server, in reading order."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog
import uvicorn

from gsid_service.api import web
from gsid_service.api.access import Gate
from gsid_service.api.documents import Reloaded
from gsid_service.api.problems import Problem
from gsid_service.app import Service
from gsid_service.config import RELOADABLE, BadSettings, Settings
from gsid_service.metrics import Metrics
from gsid_service.store import tokens
from gsid_service.store.database import Database, connect


class Refused(RuntimeError):
    """The service does not start; one line says why."""


def serve(settings: Settings, read_again: Callable[[], Settings], version: str) -> None:
    """Run until told to stop; every reason not to start ends it before it listens."""
    from gsid_service.score.scorer import load, use_cores

    _log_to(settings)
    _check_files(settings)
    use_cores(settings.model.threads)
    scorer = load(settings.model.folder)
    database = connect(settings.database.url, settings.database.migrate)
    required = _check_access(settings, database)
    metrics = Metrics()
    metrics.model.info({"name": scorer.name})
    service = Service(settings, database, scorer, metrics)
    reload = _reloader(service, read_again)
    gate = Gate(database, required)
    app = web.create(service, gate, version, reload)
    signal.signal(signal.SIGHUP, lambda *_: _on_hangup(reload))
    # Short turns between threads: a request must not wait long for the cycle's arithmetic.
    sys.setswitchinterval(0.001)
    uvicorn.run(
        app,
        host=settings.server.host,
        port=settings.server.port,
        ssl_certfile=settings.server.tls_certificate,
        ssl_keyfile=settings.server.tls_key,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )


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
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _check_files(settings: Settings) -> None:
    for key in ("tls_certificate", "tls_key"):
        file: Path | None = getattr(settings.server, key)
        if file is not None and not os.access(file, os.R_OK):
            raise BadSettings(f"server.{key}: {file} cannot be read")


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


def _on_hangup(reload: web.Reload) -> None:
    log = structlog.get_logger()
    try:
        done = reload()
        log.info("settings read again", changed=done.changed, need_restart=done.restart)
    except Problem as error:
        log.error("settings not taken over", problem=error.detail)
