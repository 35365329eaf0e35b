"""The overview: every network with its state, and what is open, the worst first; and signing in."""

from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from gsid_service.api import alerts, networks
from gsid_service.api.access import COOKIE, Gate
from gsid_service.api.alert_documents import AlertDocument
from gsid_service.api.documents import NetworkDocument
from gsid_service.api.problems import Problem
from gsid_service.console import session, trend
from gsid_service.console.session import Form, Viewer
from gsid_service.console.site import PageRoute, console_of, page
from gsid_service.records import Severity
from gsid_service.store import snapshots

router = APIRouter(route_class=PageRoute)
SHOWN = 200  # networks and alerts on one page
WORST_FIRST = [severity.value for severity in Severity]


@router.get("/")
def overview(request: Request, who: Viewer) -> HTMLResponse:
    return page(request, "overview.html", who, **_state(request, who))


@router.get("/wall")
def wall(request: Request, who: Viewer) -> HTMLResponse:
    """The overview in large type, for a screen that all see."""
    return page(request, "wall.html", who, **_state(request, who))


def _state(request: Request, who: Viewer) -> dict[str, Any]:
    found = networks.list_networks(request, who, limit=SHOWN)
    opened = open_alerts(request, who)
    cards = [_card(request, network, opened) for network in found.items]
    cards.sort(key=lambda card: (card["rank"], card["network"].name))
    quiet = Counter[str](alert.status for alert in opened if alert.status != "firing")
    return {"cards": cards, "alerts": opened, "quiet": quiet, "more": found.next is not None}


def open_alerts(request: Request, who: Viewer, network: str | None = None) -> list[AlertDocument]:
    """What is not resolved, the worst first, and of these the newest."""
    found = alerts.list_alerts(
        request,
        who,
        network=[network] if network else None,
        status=["firing", "acknowledged", "silenced"],
        limit=SHOWN,
    ).items
    quiet = [alert.status != "firing" for alert in found]
    by_age = sorted(zip(quiet, found, strict=True), key=lambda a: a[1].first_seen, reverse=True)
    by_age.sort(key=lambda a: (a[0], WORST_FIRST.index(a[1].severity)))
    return [alert for _, alert in by_age]


def _card(
    request: Request, network: NetworkDocument, opened: list[AlertDocument]
) -> dict[str, Any]:
    """A network at a glance."""
    service = console_of(request).service
    there = [a for a in opened if a.network == network.name]
    own = Counter[str](a.severity for a in there if a.status == "firing")
    quiet = Counter[str](a.status for a in there if a.status != "firing")
    with service.database.read() as connection:
        heard = snapshots.last_heard(connection, network.name)
    limit = service.clock().timestamp() - service.settings.cycle.stale_seconds
    silent = sorted(name for name, at in heard.items() if at.timestamp() < limit)
    worst = next((severity for severity in WORST_FIRST if own[severity]), None)
    unseen = silent or network.problem or not network.facts
    state = worst or ("stale" if unseen else "quiet" if quiet else "healthy")
    return {
        "network": network,
        "counts": {severity: own[severity] for severity in WORST_FIRST if own[severity]},
        "quiet": quiet,
        "silent": silent,
        "collectors": len(heard),
        "heard": max(heard.values(), default=None),
        "state": state,
        "rank": [*WORST_FIRST, "stale", "quiet", "healthy"].index(state),
        "trend": trend.of_network(service, network.name),
    }


@router.get("/sign-in")
def ask_for_token(
    request: Request, after: Annotated[str, Query(alias="next", max_length=4000)] = "/"
) -> HTMLResponse:
    return page(request, "sign-in.html", None, next=after, wrong=None)


@router.post("/sign-in")
async def sign_in(request: Request, fields: Form) -> Response:
    session.check_origin(request)
    gate: Gate = request.app.state.gate
    secret, after = fields.get("token", "").strip(), fields.get("next", "/")
    try:
        who = gate.identify(secret)
        await session.viewer(who)
    except Problem as error:
        return page(request, "sign-in.html", None, error.status, next=after, wrong=error.detail)
    # Only to a page of this console: `//elsewhere` is an address of another host.
    is_ours = after.startswith("/") and not after.startswith(("//", "/\\"))
    response = RedirectResponse(after if is_ours else "/", 303)
    session.sign_in(request, response, secret)
    return response


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    session.check_origin(request)
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE)
    return response


@router.get("/events")
async def events(
    request: Request, who: Viewer, known: Annotated[str, Query(max_length=64)] = ""
) -> StreamingResponse:
    """Which networks change, as it happens."""
    feed = console_of(request).feed
    return StreamingResponse(feed.listen(who, known), media_type="text/event-stream")
