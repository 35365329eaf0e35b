"""The frame of the console: templates, static files, errors as pages, and where each page is."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from gsid_service.alert.sentence import place
from gsid_service.api.access import ANYONE
from gsid_service.api.documents import FactRef
from gsid_service.api.problems import Problem
from gsid_service.app import Service
from gsid_service.console.live import Feed
from gsid_service.console.maps import Maps
from gsid_service.console.session import may_operate
from gsid_service.records import FactKey
from gsid_service.store.tokens import Token

STATIC = Path(__file__).parent / "static"
DONE = {  # what a page says after an action, by the word in its address
    "acknowledged": "Acknowledged. Nobody is told again until it changes or clears.",
    "judged": "Your verdict is kept, and counts in the precision that the metrics show.",
    "silenced": "Silenced.",
    "approved": "Approved. What was approved is the expected state from now on.",
    "sent": "The receiver took the test message.",
    "enabled": "The receiver is used again.",
    "replayed": "The message is on its way again.",
    "ended": "The silence is over.",
    "window": "The maintenance window stands.",
    "cancelled": "The maintenance window is cancelled.",
}


@dataclass(frozen=True)
class Console:
    """What the pages share."""

    service: Service
    feed: Feed
    maps: Maps


def console_of(request: Request) -> Console:
    console: Console = request.app.state.console
    return console


def page(
    request: Request, template: str, who: Token | None, status: int = 200, **shown: Any
) -> HTMLResponse:
    """A page, with what all of them need."""
    text = templates.get_template(template).render(
        who=who,
        signed_in=who is not None and who is not ANYONE,
        may_operate=who is not None and may_operate(who),
        now=console_of(request).service.clock(),
        path=request.scope["path"],  # as it reads: an address may write a name in several ways
        known=getattr(request.state, "known", ""),
        done=DONE.get(request.query_params.get("done", "")),
        version=request.app.version,
        **shown,
    )
    return HTMLResponse(text, status)


def back(path: str, done: str) -> RedirectResponse:
    """To a page, after an action, which it names."""
    return RedirectResponse(f"{path}?{urlencode({'done': done})}", 303)


class PageRoute(APIRoute):
    """A route whose errors are pages; who is not signed in is asked to."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            # Before anything is read: what changes later is an event to the page.
            request.state.known = console_of(request).feed.version()
            try:
                return await handle(request)
            except Problem as error:
                if error.status == HTTPStatus.UNAUTHORIZED and request.method == "GET":
                    return RedirectResponse(f"/sign-in?{urlencode({'next': _here(request)})}", 303)
                return problem(request, error.status, error.detail)
            except RequestValidationError as error:
                found = error.errors()[0]
                return problem(request, 422, f"{found['loc'][-1]}: {found['msg']}")

        return handled


def problem(request: Request, status: int, detail: str) -> HTMLResponse:
    title = HTTPStatus(status).phrase
    return page(request, "problem.html", None, status, code=status, title=title, detail=detail)


def _here(request: Request) -> str:
    query = request.url.query
    return request.url.path + (f"?{query}" if query else "")


def install(app: FastAPI, service: Service) -> Feed:
    """Put the console into the app; the feed is to be ended when the service stops."""
    from gsid_service.console import alert, check, network, overview, settings, snapshots

    feed = Feed(service.database, service.clock)
    app.state.console = Console(service, feed, Maps(service))
    for module in (overview, network, alert, snapshots, check, settings):
        app.include_router(module.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    told = app.exception_handlers[HTTPException]

    async def http_problem(request: Request, error: Exception) -> Response:
        """To a browser, also an address that is not there is a page."""
        wants_page = "text/html" in request.headers.get("accept", "")
        if wants_page and isinstance(error, HTTPException):
            is_nowhere = error.status_code == HTTPStatus.NOT_FOUND
            detail = "there is no such page" if is_nowhere else str(error.detail)
            return problem(request, error.status_code, detail)
        answer: Response = await told(request, error)  # type: ignore[misc]
        return answer

    app.add_exception_handler(HTTPException, http_problem)
    return feed


# What templates can say of values


def ago(time: datetime, now: datetime) -> str:
    """How long ago, as one says it."""
    seconds = max((now - time).total_seconds(), 0)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return f"{seconds // 1:.0f} s ago"


def fact_name(fact: FactRef | FactKey) -> str:
    """Where a value stands, as engineers write it."""
    return place(FactKey(fact.predicate, tuple(fact.args)))


def network_url(network: str, *parts: str, **query: str) -> str:
    path = "/".join(("/networks", quote(network, safe=""), *parts))
    return f"{path}?{urlencode(query)}" if query else path


def fact_url(network: str, fact: FactRef | FactKey) -> str:
    query = [("predicate", fact.predicate), *(("arg", arg) for arg in fact.args)]
    return f"{network_url(network, 'fact')}?{urlencode(query)}"


def level(score: float) -> str:
    """How a score is coloured."""
    return "high" if score >= 0.65 else "raised" if score >= 0.3 else "low"


def sparkline(values: list[float], width: int = 120, height: int = 28) -> str:
    """The points of a polyline of values between 0 and 1."""
    step = width / max(len(values) - 1, 1)
    return " ".join(
        f"{index * step:.1f},{height - 2 - value * (height - 4):.1f}"
        for index, value in enumerate(values)
    )


def _static_url(name: str) -> str:
    """The address of a file, another one when the file is."""
    return f"/static/{name}?{sha256((STATIC / name).read_bytes()).hexdigest()[:8]}"


templates = Environment(
    loader=PackageLoader("gsid_service.console"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
templates.filters |= {"ago": ago, "fact_name": fact_name, "level": level, "sparkline": sparkline}
templates.globals |= {"network_url": network_url, "fact_url": fact_url, "static_url": _static_url}
