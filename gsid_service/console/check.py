"""Check: a candidate is pasted or dropped, and what it would break is seen before it does."""

import json
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from gsid_service.api.check import checked
from gsid_service.api.networks import Name, known
from gsid_service.api.problems import Problem
from gsid_service.app import Service
from gsid_service.console import session
from gsid_service.console.session import Form, Viewer
from gsid_service.console.site import PageRoute, console_of, page
from gsid_service.schema import SCHEMA

router = APIRouter(prefix="/networks/{network}/check", route_class=PageRoute)


@router.get("")
def ask(request: Request, who: Viewer, network: Name) -> HTMLResponse:
    service = console_of(request).service
    with service.database.read() as connection:
        known(connection, network, who)
    return _page(request, who, network, _example(service, network))


@router.post("")
async def check(request: Request, who: Viewer, network: Name, fields: Form) -> HTMLResponse:
    """Nothing is kept, so whoever may read may check."""
    session.check_origin(request)
    candidate = fields.get("candidate", "")
    try:
        found = await checked(console_of(request).service, who, network, candidate.encode())
    except Problem as error:
        return _page(request, who, network, candidate, wrong=error)
    return _page(request, who, network, candidate, result=found)


def _page(request: Request, who: Viewer, network: str, candidate: str, **more: Any) -> HTMLResponse:
    shown = {"result": None, "wrong": None} | more
    status = shown["wrong"].status if shown["wrong"] else 200
    return page(request, "check.html", who, status, network=network, candidate=candidate, **shown)


def _example(service: Service, network: str) -> str:
    """A list of new values, with one of this network's own, unchanged."""
    _, merged = service.merged(network)
    monitored = {parameter.name for parameter in SCHEMA.monitored}
    for fact in merged.facts:
        for name in sorted(fact.params.keys() & monitored):
            key = {"predicate": fact.predicate, "args": fact.args}
            change = {"fact": key, "parameter": name, "value": fact.params[name]}
            return json.dumps({"changes": [change]}, indent=2)
    return ""
