"""Settings: who is told and how that goes, what keeps quiet, who may do what, and the model."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse

from gsid_service.api import deliveries, maintenance, silences
from gsid_service.api.maintenance import WindowWanted
from gsid_service.api.problems import Problem
from gsid_service.api.silences import SilenceWanted
from gsid_service.console.session import (
    Acting,
    Form,
    Viewer,
    may_operate,
    read_form,
    whole_number,
)
from gsid_service.console.site import PageRoute, back, console_of, page
from gsid_service.store import tokens
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/settings", route_class=PageRoute)
HERE = "/settings"
DELIVERIES = 50
MATCHER = re.compile(r"\s*(\w+)\s*(!=|!~|=|~)\s*(\"[^\"]*\"|\S+)\s*")


@router.get("")
def show(request: Request, who: Viewer) -> HTMLResponse:
    service = console_of(request).service
    model = service.settings.model.place
    return page(
        request,
        "settings.html",
        who,
        receivers=deliveries.list_receivers(request, who).items,
        deliveries=deliveries.list_deliveries(request, who, limit=DELIVERIES).items,
        dead=deliveries.list_deliveries(request, who, status=["dead"], limit=DELIVERIES).items,
        silences=silences.list_silences(request, who).items,
        windows=maintenance.list_windows(request, who).items,
        tokens=_tokens(request, who),
        model=service.diagnose.name,
        card=(model / "CARD.md").read_text() if (model / "CARD.md").exists() else "",
        soon=(service.clock() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M"),
        later=(service.clock() + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M"),
    )


def _tokens(request: Request, who: Token) -> list[dict[str, Any]] | None:
    """Who has access; only for those who may do everything."""
    if not may_operate(who) or who.networks:
        return None
    with console_of(request).service.database.read() as connection:
        return tokens.every(connection)


@router.post("/receivers/{name}/test")
def send_test(request: Request, who: Acting, name: str) -> RedirectResponse:
    tried = deliveries.send_test(request, who, name)
    if not tried.delivered:
        raise Problem(502, f"{name} did not take the test message: {tried.answer}")
    return back(HERE, "sent")


@router.post("/receivers/{name}/enable")
def enable(request: Request, who: Acting, name: str) -> RedirectResponse:
    deliveries.enable_receiver(request, who, name)
    return back(HERE, "enabled")


@router.post("/deliveries/{delivery_id}/replay")
def replay(request: Request, who: Acting, delivery_id: str) -> RedirectResponse:
    deliveries.replay(request, who, delivery_id)
    return back(HERE, "replayed")


@router.post("/silences")
def add_silence(request: Request, who: Acting, fields: Form) -> RedirectResponse:
    now = console_of(request).service.clock()
    wanted = read_form(
        SilenceWanted,
        matchers=_matchers(fields.get("matchers", "")),
        comment=fields.get("comment", ""),
        ends_at=now + timedelta(hours=whole_number("hours", fields, 8760)),
        confirm="confirm" in fields,
    )
    silences.add_silence(request, who, wanted)
    return back(HERE, "silenced")


@router.post("/silences/{silence_id}/end")
def end_silence(request: Request, who: Acting, silence_id: str) -> RedirectResponse:
    silences.end_silence(request, who, silence_id)
    return back(HERE, "ended")


@router.post("/windows")
def add_window(request: Request, who: Acting, fields: Form) -> RedirectResponse:
    names = ("network", "entity", "parameter", "rule", "timezone")
    wanted = read_form(
        WindowWanted,
        mode=fields.get("mode", "mute"),
        starts_at=_time("starts_at", fields),
        ends_at=_time("ends_at", fields),
        comment=fields.get("comment", ""),
        **{name: fields[name] for name in names if fields.get(name)},
    )
    maintenance.add_window(request, who, wanted)
    return back(HERE, "window")


@router.post("/windows/{window_id}/cancel")
def cancel_window(request: Request, who: Acting, window_id: str) -> RedirectResponse:
    maintenance.cancel_window(request, who, window_id)
    return back(HERE, "cancelled")


def _matchers(text: str) -> list[dict[str, str]]:
    """From `network=as65000 entity=R3` to conditions, all of which must fit."""
    found, place = [], 0
    while place < len(text.rstrip()):
        matched = MATCHER.match(text, place)
        if matched is None:
            raise Problem(422, f"matchers: {text[place:]!r} does not begin with LABEL=VALUE")
        name, operator, value = matched.groups()
        found.append({"name": name, "operator": operator, "value": value.strip('"')})
        place = matched.end()
    return found


def _time(name: str, fields: Form) -> datetime:
    """A time as browsers send it, in UTC if it does not say otherwise."""
    try:
        found = datetime.fromisoformat(fields.get(name, ""))
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except ValueError:
        raise Problem(422, f"{name}: must be a date and a time") from None
