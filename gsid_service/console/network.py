"""A network: its map, what is suspicious or broken in it, and each thing with its values."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from gsid_service.api import approvals, networks
from gsid_service.api.approval_documents import ApprovalWanted
from gsid_service.api.networks import Name, known
from gsid_service.api.problems import Problem
from gsid_service.api.text import Text
from gsid_service.app import Service
from gsid_service.assemble.merge import Merged
from gsid_service.console import cluster, trend
from gsid_service.console.overview import open_alerts
from gsid_service.console.session import Acting, Form, Viewer, read_form
from gsid_service.console.site import PageRoute, back, console_of, fact_name, network_url, page
from gsid_service.ingest.wire import dump_params
from gsid_service.records import Fact, FactKey
from gsid_service.schema import SCHEMA
from gsid_service.store import approvals as approved
from gsid_service.store import scores
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/networks/{network}", route_class=PageRoute)
HIGHEST, LEAST = 10, 0.01  # scores in the table, and which are worth a line
FACTS_SHOWN = 200  # of one entity
LINES_SHOWN = 50  # of a value's history
Id = Annotated[Text, Query(max_length=2000)]


@router.get("")
def show(request: Request, who: Viewer, network: Name, around: Id | None = None) -> HTMLResponse:
    console = console_of(request)
    found = networks.get_network(request, who, network)
    _must_be_in(console.service, network, around)
    drawing = console.maps.of(network, around)
    with console.service.database.read() as connection:
        highest = scores.page(connection, network, LEAST, None, None, HIGHEST)
        baseline = approved.history(connection, network, 2**62, 1)
    return page(
        request,
        "network.html",
        who,
        network=found,
        drawing=drawing,
        around=around,
        clustered=drawing.routers > cluster.AT_MOST,
        collectors=_collectors(request, who, network),
        least=LEAST,
        scores=[row | {"fact": _key(row)} for row in highest],
        alerts=open_alerts(request, who, network),
        approval=baseline[0] if baseline else None,
        trend=trend.of_network(console.service, network),
    )


def _collectors(request: Request, who: Token, network: str) -> list[dict[str, Any]]:
    service = console_of(request).service
    limit = service.clock().timestamp() - service.settings.cycle.stale_seconds
    found = networks.list_collectors(request, who, network).items
    return [{"about": c, "silent": c.received_at.timestamp() < limit} for c in found]


def _key(row: dict[str, Any]) -> FactKey:
    return FactKey(row["predicate"], tuple(row["args"]))


@router.get("/map")
def get_map(request: Request, who: Viewer, network: Name, around: Id | None = None) -> JSONResponse:
    """What the browser draws."""
    _must_be_known(request, who, network)
    _must_be_in(console_of(request).service, network, around)
    maps = console_of(request).maps
    return JSONResponse(maps.of(network, around).document() | maps.marks(network))


@router.get("/marks")
def get_marks(request: Request, who: Viewer, network: Name) -> JSONResponse:
    """The colours only, which change more often than the map."""
    _must_be_known(request, who, network)
    return JSONResponse(console_of(request).maps.marks(network))


def _must_be_known(request: Request, who: Token, network: str) -> None:
    with console_of(request).service.database.read() as connection:
        known(connection, network, who)


def _must_be_in(service: Service, network: str, entity: str | None) -> None:
    if entity is not None and all(e.id != entity for e in service.merged(network)[1].entities):
        raise Problem(404, f"around: {entity!r} is not in {network}")


@router.get("/entity")
def show_entity(
    request: Request,
    who: Viewer,
    network: Name,
    entity_id: Annotated[Text, Query(alias="id", max_length=2000)],
) -> HTMLResponse:
    """A router, a peering or a destination, with all facts that name it."""
    _must_be_known(request, who, network)
    service = console_of(request).service
    _, merged = service.merged(network)
    entity = next((e for e in merged.entities if e.id == entity_id), None)
    if entity is None:
        raise Problem(404, f"id: {entity_id!r} is not in {network}")
    facts = [fact for fact in merged.facts if entity_id in fact.args]
    return page(
        request,
        "thing.html",
        who,
        network=network,
        entity=entity,
        title=entity.label or entity.id,
        count=len(facts),
        facts=_rows(service, network, merged, facts[:FACTS_SHOWN]),
        history=None,
    )


@router.get("/fact")
def show_fact(
    request: Request,
    who: Viewer,
    network: Name,
    predicate: Annotated[Text, Query(max_length=64)],
    arg: Annotated[list[Text], Query(max_length=8)],
) -> HTMLResponse:
    """A link, session or route, with the history of each of its values."""
    _must_be_known(request, who, network)
    service, key = console_of(request).service, FactKey(predicate, tuple(arg))
    _, merged = service.merged(network)
    both = [key] if len(arg) != 2 else [key, FactKey(predicate, (arg[1], arg[0]))]
    facts = [fact for fact in merged.facts if fact.key in both]
    if not facts:
        raise Problem(404, f"fact: {key} is not in {network}")
    return page(
        request,
        "thing.html",
        who,
        network=network,
        entity=None,
        title=f"{predicate} {fact_name(key)}",
        count=len(facts),
        facts=_rows(service, network, merged, facts),
        history=_histories(service, network, facts),
    )


def _rows(
    service: Service, network: str, merged: Merged, facts: Sequence[Fact]
) -> list[dict[str, Any]]:
    """Each fact with what it carries, what was approved, how it scores and who says so."""
    with service.database.read() as connection:
        found = scores.of_facts(connection, network, [fact.key.digest for fact in facts])
        baseline = approved.baseline(connection, network)
    scored = {(row["fact"], row["parameter"]): row for row in found}
    before = {fact.key: dump_params(fact) for fact in baseline.facts} if baseline else {}
    return [
        {
            "fact": fact.key,
            "params": [
                _parameter(name, value, before.get(fact.key, {}), scored.get((digest, name)))
                for name, value in dump_params(fact).items()
            ],
            "source": merged.source[fact.key],
            "stale": fact.key in merged.stale,
        }
        for fact in facts
        for digest in (fact.key.digest,)
    ]


def _parameter(
    name: str, value: int | str, before: dict[str, int | str], scored: dict[str, Any] | None
) -> dict[str, Any]:
    shown = {"name": name, "observed": value, "baseline": before.get(name)}
    return shown | {"score": scored["score"] if scored else None}


def _histories(service: Service, network: str, facts: Sequence[Fact]) -> list[dict[str, Any]]:
    with service.database.read() as connection:
        return [
            {"fact": fact.key, "parameter": parameter.name, "lines": lines}
            for fact in facts
            for parameter in SCHEMA.monitored
            if parameter.name in fact.params
            if (
                lines := scores.history(
                    connection, network, fact.key.digest, parameter.name, LINES_SHOWN
                )
            )
        ]


@router.get("/approve")
def ask_to_approve(request: Request, who: Viewer, network: Name) -> HTMLResponse:
    """All that differs from what was approved, before somebody approves it."""
    _must_be_known(request, who, network)
    service = console_of(request).service
    with service.database.read() as connection:
        baseline = approved.baseline(connection, network)
        history = approved.history(connection, network, 2**62, 20)
    newest, merged = service.merged(network)
    wanted = service.approvable(network, newest)
    changes = networks.differences(baseline.facts if baseline else (), merged.facts)
    return page(
        request,
        "approve.html",
        who,
        network=network,
        differences=changes,
        snapshot=f"s{newest}",
        history=history,
        alerts=wanted.clears if wanted else (),
    )


@router.post("/approve")
def approve(request: Request, who: Acting, network: Name, fields: Form) -> RedirectResponse:
    """Approve what the page showed, whatever came in since."""
    shown = read_form(ApprovalWanted, snapshot_id=fields.get("snapshot"))
    approvals.approve(request, who, network, shown)
    return back(network_url(network), "approved")


@router.get("/intents")
def show_intents(request: Request, who: Viewer, network: Name) -> HTMLResponse:
    """What is wanted of the network."""
    found = approvals.list_intents(request, who, network, limit=1000)
    return page(request, "intents.html", who, network=network, intents=found)
