"""Alerts: what is wrong, and what people did about it."""

from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request
from sqlalchemy import Connection

from gsid_service.alert.decide import acknowledged, judged
from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader, bound
from gsid_service.api.alert_documents import AlertDocument, Note, Verdict
from gsid_service.api.bodies import JSONRoute
from gsid_service.api.documents import Page
from gsid_service.api.networks import WRITE, service_of
from gsid_service.api.paging import Cursor, Limit
from gsid_service.api.problems import Problem, answers, unknown
from gsid_service.api.text import Text
from gsid_service.records import Alert, Status
from gsid_service.store import alerts, notifications, verdicts

router = APIRouter(prefix="/alerts", tags=["alerts"], route_class=JSONRoute)
AlertId = Annotated[str, Path(max_length=20, examples=["a17"])]


@router.get("", responses=answers(401, 403, 422))
def list_alerts(
    request: Request,
    who: Reader,
    network: Annotated[list[Text] | None, Query(max_length=100)] = None,
    status: Annotated[
        list[Literal["firing", "acknowledged", "silenced", "resolved"]] | None, Query()
    ] = None,
    severity: Annotated[list[Literal["critical", "major", "minor"]] | None, Query()] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[AlertDocument]:
    """Alerts without their events, the newest first."""
    (before,) = paging.decode(cursor, int) or (None,)
    for name in network or ():
        bound(who, name)
    visible = network or (list(who.networks) or None)
    with service_of(request).database.read() as connection:
        found = alerts.page(
            connection, before, limit + 1, visible, list(status or ()), list(severity or ())
        )
    last = alerts.number_of(found[limit - 1].id) if len(found) > limit else None
    following = None if last is None else paging.encode([last])
    return Page(items=[AlertDocument.told(alert) for alert in found[:limit]], next=following)


@router.get("/{alert_id}", responses=answers(401, 403, 404, 422))
def get_alert(request: Request, who: Reader, alert_id: AlertId) -> AlertDocument:
    """One alert with all that happened to it, and who was told or not, and why."""
    with service_of(request).database.read() as connection:
        number = alerts.number_of(alert_id)
        alert = None if number is None else alerts.find(connection, number)
        told = [] if number is None else notifications.of_alert(connection, number)
    if alert is None:
        raise unknown("alert", alert_id)
    bound(who, alert.network)
    return AlertDocument.told(alert, told)


@router.post("/{alert_id}/ack", responses=WRITE | answers(409))
def acknowledge(
    request: Request, who: Operator, alert_id: AlertId, note: Note | None = None
) -> AlertDocument:
    """Say that somebody looks after it."""

    def change(connection: Connection, alert: Alert) -> Alert:
        if alert.status is Status.RESOLVED:
            raise Problem(409, f"{alert_id} is resolved already")
        now = service_of(request).clock()
        notifications.look_at(connection, [alert.network], now)
        return acknowledged(alert, who.name, now, note.note if note else "")

    return _changed(request, who, alert_id, change)


@router.post("/{alert_id}/verdict", responses=WRITE)
def judge(request: Request, who: Operator, alert_id: AlertId, verdict: Verdict) -> AlertDocument:
    """Say whether it was a true or a false alarm."""

    def change(connection: Connection, alert: Alert) -> Alert:
        now = service_of(request).clock()
        after = judged(alert, verdict.alarm, who.name, now, verdict.note)
        verdicts.keep(connection, after, who.name, now)
        return after

    return _changed(request, who, alert_id, change)


def _changed(
    request: Request,
    who: Operator,
    alert_id: str,
    change: Callable[[Connection, Alert], Alert],
) -> AlertDocument:
    service = service_of(request)
    with service.database.write() as connection:
        number = alerts.number_of(alert_id)
        before = None if number is None else alerts.find(connection, number, to_change=True)
        if before is None:
            raise unknown("alert", alert_id)
        bound(who, before.network)
        after = alerts.save(connection, change(connection, before), len(before.events))
    service.notifier.wake()
    service.wake([after.network])
    return AlertDocument.told(after)
