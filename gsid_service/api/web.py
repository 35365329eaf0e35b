"""The web application: routes, health, metrics, headers, limits and a request id on every line."""

import asyncio
import secrets
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gsid_service.api import (
    alerts,
    approvals,
    changes,
    check,
    deliveries,
    ingest,
    maintenance,
    networks,
    problems,
    reference,
    silences,
)
from gsid_service.api.access import CHALLENGE, Gate, Operator, Reader, is_known, unbound
from gsid_service.api.bodies import SMALL_BODY
from gsid_service.api.documents import Health, ModelDocument, Page, Reloaded
from gsid_service.api.problems import Problem, ProblemDocument, answer, answers
from gsid_service.app import API, Service
from gsid_service.ingest.json_schema import json_schema
from gsid_service.store.database import UNAVAILABLE, error_name, reason

log = structlog.get_logger()
PREFIX = "/api/v1"
STRANGERS_BODY = 1 << 16  # of a request of which nobody knows yet whose it is
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        b"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
]
NEVER_KEPT = (b"cache-control", b"no-store")
KEPT = (b"cache-control", b"public, max-age=31536000, immutable")
STATIC = "/static/"  # whose addresses change with their content
EVENTS = "/events"  # which end with the page, not with a time limit
Reload = Callable[[], Reloaded]


def create(service: Service, gate: Gate, version: str, reload: Reload) -> FastAPI:
    """The application, on a service that it starts and stops with itself."""

    async def hang_up() -> None:
        try:
            done = await asyncio.to_thread(reload)
            log.info("settings read again", changed=done.changed, need_restart=done.restart)
        except Problem as error:
            log.error("settings not taken over", problem=error.detail)
        except UNAVAILABLE as error:
            log.error("settings not taken over", problem=reason(error))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        if threading.current_thread() is threading.main_thread():  # elsewhere there are no signals
            loop, running = asyncio.get_running_loop(), set[asyncio.Task[None]]()
            loop.add_signal_handler(signal.SIGHUP, lambda: running.add(loop.create_task(hang_up())))
        yield
        await asyncio.to_thread(service.stop)

    app = FastAPI(
        title="GSID service",
        version=version,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if API in service.roles else None,
        redirect_slashes=False,
    )
    app.state.service, app.state.gate, app.state.reload = service, gate, reload
    problems.install(app)
    if API in service.roles:
        _add_interface(app)
    _add_operations(app)
    app.add_middleware(
        Guard,
        gate=gate,
        seconds=service.settings.server.request_seconds,
        answered=service.metrics.answered,
    )
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _add_interface(app: FastAPI) -> None:
    """What collectors and people ask."""
    service: Service = app.state.service
    app.include_router(ingest.router)
    for router in (
        *(networks.router, approvals.router, check.router, changes.router, alerts.router),
        *(silences.router, maintenance.router, deliveries.receivers, deliveries.deliveries),
    ):
        app.include_router(router, prefix=PREFIX)

    @app.get(f"{PREFIX}/models", tags=["models"], responses=answers(401, 403))
    def list_models(_: Reader) -> Page[ModelDocument]:
        """The models that the service has loaded."""
        return Page(items=[ModelDocument(name=service.diagnose.name, in_use=True)])

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(reference.page(app.openapi()))


def _add_operations(app: FastAPI) -> None:
    """What every process is asked, whatever its role."""
    service: Service = app.state.service

    @app.get("/metrics", tags=["operations"], responses=answers(401, 403), response_class=Response)
    def metrics(who: Reader) -> Response:
        """All series, for Prometheus; not for a token that is bound to some networks."""
        unbound(who)
        service.metrics.queue.set(len(service.inbox))
        service.metrics.open_score.set(service.settings.alerts.open_score)
        service.metrics.stale_seconds.set(service.settings.cycle.stale_seconds)
        service.show()
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(service.metrics.text(), media_type=kind)

    @app.get("/-/healthy", tags=["operations"])
    def healthy() -> Health:
        """The process is there."""
        return Health()

    @app.get("/-/ready", tags=["operations"], responses=answers(503))
    def ready() -> Health:
        """This process does what its role asks for."""
        if not service.alive:
            raise Problem(503, "the service takes or scores no snapshots")
        try:
            service.database.check()
        except SQLAlchemyError as error:
            detail = f"the database cannot be read or written to: {error_name(error)}"
            raise Problem(503, detail) from error
        return Health()

    @app.post("/-/reload", tags=["operations"], responses=answers(401, 403, 422, 503))
    def reload(who: Operator) -> Reloaded:
        """Read the settings file again, and take over what a running service can."""
        unbound(who)
        done: Reloaded = app.state.reload()
        return done


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = schema["components"]["schemas"]
        schemas["ProblemDocument"] = ProblemDocument.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        schemas |= schemas["ProblemDocument"].pop("$defs", {})
        schemas |= check.components() | ingest.component("Snapshot", json_schema())
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = schema
    return app.openapi_schema


def _area(path: str) -> str:
    """The part of the service that a path belongs to; few, so that series stay few."""
    if path == ingest.PATH:
        return "ingest"
    if path.startswith(PREFIX):
        return "api"
    return "operations" if path.startswith("/-/") or path == "/metrics" else "console"


def _limited(scope: Scope, receive: Receive, gate: Gate) -> Receive:
    """No more of a body than is allowed, and little of a stranger's: a framework reads it before
    it asks for the token. A snapshot's is read after its token, and has a limit of its own."""
    if scope["path"] == ingest.PATH:
        return receive
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        before, taken = taken, taken + len(message.get("body", b""))
        if before <= STRANGERS_BODY < taken and not is_known(gate, Request(scope)):
            raise HTTPException(401, "a token is needed for a body of this size", CHALLENGE)
        if taken > SMALL_BODY:
            raise HTTPException(413, f"the body is larger than {SMALL_BODY:,} bytes")
        return message

    return limited


class Guard:
    """Around every request: a time limit, a size limit, safe headers, a request id, a log line."""

    def __init__(
        self,
        app: ASGIApp,
        gate: Gate,
        seconds: float,
        answered: Callable[[str, int, float], None],
    ) -> None:
        self.app, self.gate, self.seconds, self.answered = app, gate, seconds, answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        begun, status = time.perf_counter(), 500
        request_id = secrets.token_hex(8)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        answering = False

        async def answering_send(message: Message) -> None:
            nonlocal status, answering
            if message["type"] == "http.response.start":
                status, answering = message["status"], True
                kept = KEPT if path.startswith(STATIC) and status == 200 else NEVER_KEPT
                message["headers"] += [*HEADERS, kept, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            async with asyncio.timeout(None if path == EVENTS else self.seconds):
                await self.app(scope, _limited(scope, receive, self.gate), answering_send)
        except TimeoutError:
            if not answering:
                late = answer(503, f"not done within {self.seconds:g} seconds")
                await late(scope, receive, answering_send)
        except Exception:
            log.exception("request failed", method=method, path=path)
            if not answering:
                failed = answer(500, f"an error of the service; its log names {request_id}")
                await failed(scope, receive, answering_send)
        finally:
            seconds = round(time.perf_counter() - begun, 4)
            self.answered(_area(path), status, seconds)
            done = {"method": method, "path": path, "status": status, "seconds": seconds}
            if status == HTTPStatus.UNAUTHORIZED and scope["client"]:
                done["client"] = scope["client"][0]  # whoever tries tokens can be shut out by it
            log.info("request", **done)
            structlog.contextvars.unbind_contextvars("request_id")
