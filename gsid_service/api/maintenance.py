"""Maintenance windows: when work is done to which part of which network."""

from datetime import datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from fastapi import APIRouter, Path, Query, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from sqlalchemy import Connection

from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader, author, unbound
from gsid_service.api.bodies import JSONRoute
from gsid_service.api.documents import NETWORK, Page
from gsid_service.api.networks import READ, WRITE, service_of
from gsid_service.api.paging import Cursor, Limit, number_in
from gsid_service.api.problems import Problem, about, answers, unknown
from gsid_service.api.quiet import WARNINGS, changing, strangers
from gsid_service.api.text import Text
from gsid_service.notices import Mode, Window
from gsid_service.notify.maintenance import BadRule, check_rule, next_start, open_until
from gsid_service.store import maintenance
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/maintenance", tags=["maintenance"], route_class=JSONRoute)
WindowId = Annotated[str, Path(max_length=20, examples=["w2"])]
LONGEST = timedelta(days=366)


class WindowWanted(BaseModel):
    """When, for what, and whether alerts may open meanwhile."""

    model_config = ConfigDict(extra="forbid")

    network: Text | None = Field(
        default=None, max_length=200, description="Any, where none is named.", examples=[NETWORK]
    )
    entity: Text | None = Field(default=None, max_length=2000, examples=["R3"])
    parameter: Text | None = Field(default=None, max_length=64, examples=[None])
    mode: Literal["mute", "hold"] = Field(
        default="mute", description="Tell nobody of alerts, or let none open."
    )
    starts_at: AwareDatetime = Field(
        description="Of the first occurrence.", examples=["2026-11-15T02:00:00Z"]
    )
    ends_at: AwareDatetime = Field(examples=["2026-11-15T04:00:00Z"])
    rule: Text | None = Field(
        default=None,
        max_length=500,
        description="How it recurs: a rule of RFC 5545, daily or rarer, UNTIL in local time.",
        examples=["FREQ=WEEKLY;BYDAY=SU"],
    )
    timezone: Text = Field(
        default="UTC",
        max_length=64,
        description="In which the rule recurs.",
        examples=["Europe/Berlin"],
    )
    comment: Text = Field(min_length=1, max_length=2000, examples=["weekly upgrades"])
    author: Text | None = Field(
        default=None, max_length=200, description="Where no tokens say who asks.", examples=["ann"]
    )


class WindowDocument(BaseModel):
    id: str = Field(examples=["w2"])
    open_until: datetime | None = Field(description="Null where it is not open.")
    next_start: datetime | None
    network: str | None = Field(examples=[NETWORK])
    entity: str | None
    parameter: str | None
    mode: Literal["mute", "hold"]
    starts_at: datetime
    ends_at: datetime
    rule: str | None
    timezone: str = Field(examples=["Europe/Berlin"])
    author: str = Field(examples=["ann"])
    comment: str
    created_at: datetime
    cancelled_at: datetime | None

    @classmethod
    def of(cls, window: Window, now: datetime) -> "WindowDocument":
        stands = window.cancelled_at is None
        return cls(
            id=window.id,
            open_until=open_until(window, now) if stands else None,
            next_start=next_start(window, now) if stands else None,
            mode=window.mode.value,
            **{name: getattr(window, name) for name in PLAIN},
        )


class AddedWindow(WindowDocument):
    warnings: list[str] = Field(description=WARNINGS)


PLAIN = (
    *("network", "entity", "parameter", "starts_at", "ends_at", "rule", "timezone"),
    *("author", "comment", "created_at", "cancelled_at"),
)


@router.get("", responses=answers(401, 403, 422))
def list_windows(
    request: Request,
    who: Reader,
    cancelled: Annotated[bool, Query(description="Those that were cancelled, too.")] = False,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[WindowDocument]:
    """Maintenance windows, the newest first."""
    (before,) = paging.decode(cursor, int) or (None,)
    service = service_of(request)
    now = service.clock()
    with service.database.read() as connection:
        found = maintenance.page(connection, before, limit + 1, cancelled)
    seen = [WindowDocument.of(w, now) for w in found[:limit] if _concerns(w, who)]
    return Page(items=seen, next=paging.following(found, limit))


@router.post("", status_code=201, responses=WRITE)
def add_window(request: Request, who: Operator, wanted: WindowWanted) -> AddedWindow:
    """Announce that work is done, once or again and again."""
    service = service_of(request)
    now = service.clock()
    window = Window(
        number=0,
        network=wanted.network,
        entity=wanted.entity,
        parameter=wanted.parameter,
        mode=Mode(wanted.mode),
        starts_at=paging.instant("starts_at", wanted.starts_at),
        ends_at=paging.instant("ends_at", wanted.ends_at),
        rule=wanted.rule,
        timezone=wanted.timezone,
        author=author(who, wanted.author),
        comment=wanted.comment,
        created_at=now,
    )
    _check(window, who, now)
    names = {"network": window.network, "entity": window.entity, "parameter": window.parameter}
    unknown_names = strangers(service, [(label, name) for label, name in names.items() if name])
    with changing(service, now) as connection:
        window = maintenance.add(connection, window)
    return AddedWindow(**dict(WindowDocument.of(window, now)), warnings=unknown_names)


@router.get("/{window_id}", responses=READ)
def get_window(request: Request, who: Reader, window_id: WindowId) -> WindowDocument:
    service = service_of(request)
    with service.database.read() as connection:
        return WindowDocument.of(_find(connection, window_id, who), service.clock())


@router.delete("/{window_id}", responses=READ | answers(409))
def cancel_window(request: Request, who: Operator, window_id: WindowId) -> WindowDocument:
    """Cancel a window, also one that is open; it stays to be seen."""
    service = service_of(request)
    now = service.clock()
    with changing(service, now) as connection:
        window = _find(connection, window_id, who, to_change=True)
        _own(window, who)
        if window.cancelled_at is not None:
            raise Problem(409, f"{window_id} is cancelled already")
        maintenance.cancel(connection, window.number, now)
        return WindowDocument.of(_find(connection, window_id, who), now)


def _check(window: Window, who: Token, now: datetime) -> None:
    _own(window, who)
    if not timedelta(0) < window.duration <= LONGEST:
        reason = f"must be after starts_at, by {LONGEST.days} days at most"
        raise about(422, "ends_at", reason)
    if window.rule is None and window.ends_at <= now:
        raise about(422, "ends_at", "must be in the future, where the window does not recur")
    if window.timezone not in available_timezones():
        reason = f"{window.timezone!r} is not a time zone, as in Europe/Berlin"
        raise about(422, "timezone", reason)
    if window.rule is not None:
        try:
            start = window.starts_at.astimezone(ZoneInfo(window.timezone))
            check_rule(window.rule, start, window.duration)
        except BadRule as error:
            raise about(422, "rule", str(error)) from None


def _own(window: Window, who: Token) -> None:
    if window.network not in who.networks:
        unbound(who)


def _concerns(window: Window, who: Token) -> bool:
    return not who.networks or window.network is None or window.network in who.networks


def _find(connection: Connection, window_id: str, who: Token, to_change: bool = False) -> Window:
    number = number_in("w", window_id)
    found = None if number is None else maintenance.find(connection, number, to_change)
    if found is None or not _concerns(found, who):
        raise unknown("window", window_id)
    return found
