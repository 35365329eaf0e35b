"""The web application: routes, health, metrics, headers, limits and a request id on every line."""

import asyncio
import secrets
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
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
from gsid_service.api.access import Gate, Operator, Reader, unbound
from gsid_service.api.documents import Health, ModelDocument, Page, Reloaded
from gsid_service.api.problems import Problem, ProblemDocument, answer, answers
from gsid_service.app import Service
from gsid_service.ingest.json_schema import json_schema

log = structlog.get_logger()
PREFIX = "/api/v1"
SMALL_BODY = 16 << 20  # of anything but a snapshot, which has a limit of its own
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'self'; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    ),
]
Reload = Callable[[], Reloaded]


def create(service: Service, gate: Gate, version: str, reload: Reload) -> FastAPI:
    """The application, on a service that it starts and stops with itself."""

    async def hang_up() -> None:
        try:
            done = await asyncio.to_thread(reload)
            log.info("settings read again", changed=done.changed, need_restart=done.restart)
        except Problem as error:
            log.error("settings not taken over", problem=error.detail)

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
        redirect_slashes=False,
    )
    app.state.service, app.state.gate, app.state.reload = service, gate, reload
    problems.install(app)
    app.include_router(ingest.router)
    for router in (
        *(networks.router, approvals.router, check.router, changes.router, alerts.router),
        *(silences.router, maintenance.router, deliveries.receivers, deliveries.deliveries),
    ):
        app.include_router(router, prefix=PREFIX)
    _add_operations(app)
    app.add_middleware(Guard, seconds=service.settings.server.request_seconds)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _add_operations(app: FastAPI) -> None:
    service: Service = app.state.service

    @app.get(f"{PREFIX}/models", tags=["models"], responses=answers(401, 403))
    def list_models(_: Reader) -> Page[ModelDocument]:
        """The models that the service has loaded."""
        return Page(items=[ModelDocument(name=service.diagnose.name, in_use=True)])

    @app.get("/metrics", tags=["operations"], responses=answers(401, 403), response_class=Response)
    def metrics(who: Reader) -> Response:
        """All series, for Prometheus; not for a token that is bound to some networks."""
        unbound(who)
        service.metrics.queue.set(len(service.inbox))
        service.notifier.show()
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return Response(service.metrics.text(), media_type=kind)

    @app.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(reference.page(app.openapi()))

    @app.get("/-/healthy", tags=["operations"])
    def healthy() -> Health:
        """The process is there."""
        return Health()

    @app.get("/-/ready", tags=["operations"], responses=answers(503))
    def ready() -> Health:
        """Snapshots are taken and scored."""
        if not service.alive:
            raise Problem(503, "the service takes or scores no snapshots")
        try:
            with service.database.read() as connection:
                connection.exec_driver_sql("SELECT 1")
        except Exception as error:
            raise Problem(503, f"the database does not answer: {type(error).__name__}") from error
        return Health()

    @app.post("/-/reload", tags=["operations"], responses=answers(401, 403, 422))
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


class Guard:
    """Around every request: a time limit, a size limit, safe headers, a request id, a log line."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self.app, self.seconds = app, seconds

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
                message["headers"] += [*HEADERS, (b"x-request-id", request_id.encode())]
            await send(message)

        taken = 0

        async def limited_receive() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > SMALL_BODY and path != ingest.PATH:
                raise HTTPException(413, f"the body is larger than {SMALL_BODY:,} bytes")
            return message

        try:
            async with asyncio.timeout(self.seconds):
                await self.app(scope, limited_receive, answering_send)
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
            log.info("request", method=method, path=path, status=status, seconds=seconds)
            structlog.contextvars.unbind_contextvars("request_id")
