"""An alert: what is wrong, how one knows, what repairs it, and what to do with it."""

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse

from gsid_service.api import alerts, networks, silences
from gsid_service.api.alert_documents import AlertDocument, Note, Verdict
from gsid_service.api.documents import Difference
from gsid_service.api.problems import Problem
from gsid_service.api.silences import SilenceWanted
from gsid_service.app import Service
from gsid_service.console.session import Acting, Form, Viewer, read_form, whole_number
from gsid_service.console.site import PageRoute, back, console_of, fact_name, page
from gsid_service.records import FactKey
from gsid_service.store import scores, snapshots

router = APIRouter(prefix="/alerts", route_class=PageRoute)
SHOWN = 100  # alerts of a page, moves, paths and differences
LONGEST_HOURS = 168  # of a silence, from here
LOOKED_BACK = 100  # lines of a value's history


@router.get("")
def show_all(request: Request, who: Viewer, cursor: str | None = None) -> HTMLResponse:
    """Every alert that is kept, the newest first."""
    found = alerts.list_alerts(request, who, limit=SHOWN, cursor=cursor)
    return page(request, "alerts.html", who, alerts=found)


@router.get("/{alert_id}")
def show(request: Request, who: Viewer, alert_id: str) -> HTMLResponse:
    alert = alerts.get_alert(request, who, alert_id)
    console = console_of(request)
    return page(
        request,
        "alert.html",
        who,
        alert=alert,
        drawing=console.maps.of(alert.network),
        paths=_paths(alert),
        fix=_fix(alert),
        cause=_cause(console.service, alert),
        shown=SHOWN,
    )


def _paths(alert: AlertDocument) -> list[dict[str, Any]]:
    """What the map can show: a broken intent's two paths, or else each hop that moved."""
    broken = [
        {
            "name": f"{intent.args[0]} → {intent.args[1]}",
            "before": intent.wanted,
            "after": intent.actual,
        }
        for intent in alert.broken_intents
        if intent.wanted or intent.actual
    ]
    moved = [
        {
            "name": f"{move.router} → {move.network}",
            "before": [move.router, move.before] if move.before else [],
            "after": [move.router, move.after] if move.after else [],
        }
        for move in alert.moved
    ]
    return (broken or moved)[:SHOWN]


def _fix(alert: AlertDocument) -> str | None:
    """The values to put back, a line each, to paste into a ticket."""
    if alert.expected is None:
        return None
    lines = [f"{alert.parameter} on {fact_name(alert.fact)}: {alert.observed} -> {alert.expected}"]
    lines += [f"{t.parameter} on {fact_name(t.fact)}: -> {t.value}" for t in alert.together]
    return "\n".join(lines)


def _cause(service: Service, alert: AlertDocument) -> dict[str, Any] | None:
    """The snapshot that brought the value, and all that came with it."""
    key = FactKey(alert.fact.predicate, tuple(alert.fact.args))
    with service.database.read() as connection:
        lines = scores.history(connection, alert.network, key.digest, alert.parameter, LOOKED_BACK)
        run = [line for line in lines if line["observed"] == alert.observed]
        if not run:
            return None
        number = run[0]["snapshot"]
        for line in lines:  # back to where the value was another
            if line["observed"] != alert.observed:
                break
            number = line["snapshot"]
        found = snapshots.page(connection, alert.network, number + 1, 2)
    if len(found) < 2 or found[0]["number"] != number:
        return None
    after, before = found
    changes = networks.differences(
        *(service.state_at(alert.network, n).facts for n in (before["number"], number))
    )
    return {"before": before, "after": after, "differences": _first(changes, key)}


def _first(changes: list[Difference], key: FactKey) -> list[Difference]:
    """The alert's own value leads."""
    return sorted(changes, key=lambda c: (c.fact.predicate, tuple(c.fact.args)) != key)


@router.post("/{alert_id}/ack")
def acknowledge(request: Request, who: Acting, alert_id: str, fields: Form) -> RedirectResponse:
    alerts.acknowledge(request, who, alert_id, _note(fields))
    return back(f"/alerts/{alert_id}", "acknowledged")


def _note(fields: Form) -> Note:
    return read_form(Note, note=fields.get("note", ""))


@router.post("/{alert_id}/verdict")
def judge(request: Request, who: Acting, alert_id: str, fields: Form) -> RedirectResponse:
    note, alarm = _note(fields).note, fields.get("alarm")
    if alarm not in ("true", "false"):
        raise Problem(422, "alarm: must be true or false")
    verdict = Verdict(alarm="true" if alarm == "true" else "false", note=note)
    alerts.judge(request, who, alert_id, verdict)
    return back(f"/alerts/{alert_id}", "judged")


@router.post("/{alert_id}/silence")
def silence(request: Request, who: Acting, alert_id: str, fields: Form) -> RedirectResponse:
    alert = alerts.get_alert(request, who, alert_id)
    hours = whole_number("hours", fields, LONGEST_HOURS)
    now = console_of(request).service.clock()
    # The network is named, too: whoever is bound to one may silence its alerts only.
    wanted = read_form(
        SilenceWanted,
        matchers=[
            {"name": "alert", "value": alert.id},
            {"name": "network", "value": alert.network},
        ],
        comment=fields.get("comment", "").strip() or "from the console",
        ends_at=now + timedelta(hours=hours),
    )
    silences.add_silence(request, who, wanted)
    return back(f"/alerts/{alert_id}", "silenced")
