"""POST /ingest: a snapshot in, a receipt out once it is durable."""

import asyncio
import hashlib
import json
import threading
import zlib
from contextlib import nullcontext
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from gsid_service.api.access import bearer, bound, sender
from gsid_service.api.bodies import Packed, packed_body, refused
from gsid_service.api.documents import Accepted
from gsid_service.api.problems import Problem, about, answers
from gsid_service.app import Service
from gsid_service.ingest.inbox import Full
from gsid_service.ingest.problems import InvalidSnapshot
from gsid_service.ingest.wire import LARGE, parse_snapshot
from gsid_service.store.snapshots import Incoming, Outcome

router = APIRouter(tags=["ingest"])
PATH = "/ingest"
COMPRESSION = 1
SMALL = 1 << 16  # bytes that are read faster than threads change
READ_AT_ONCE = CapacityLimiter(4)  # bodies that are large, or may be once they are unpacked
LARGEST = threading.Lock()  # of the very large one at a time: each takes many times its size
BODY = {
    "required": True,
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Snapshot"}}},
}
TOKEN = [{bearer.scheme_name: list[str]()}]


def component(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema and its parts, as components of OpenAPI."""
    text = json.dumps(schema).replace("#/$defs/", "#/components/schemas/")
    schema = json.loads(text)
    parts: dict[str, Any] = schema.pop("$defs", {})
    for left_out in ("$schema", "$id"):
        schema.pop(left_out, None)
    return parts | {name: schema}


@router.post(
    PATH,
    status_code=202,
    response_model=Accepted,
    responses={
        200: {"model": Accepted, "description": "The same was accepted before."},
        **answers(400, 401, 403, 409, 413, 415, 422, 429, 503),
    },
    openapi_extra={"requestBody": BODY, "security": TOKEN},
)
async def ingest(request: Request) -> JSONResponse:
    """Keep one collector's view of a network; the answer comes once it is durable."""
    service: Service = request.app.state.service
    who = await sender(request)
    packed = await packed_body(request, service.settings.server.body_bytes)
    if len(packed.body) < SMALL and not packed.zipped:
        incoming = _read(service, packed)
    else:
        incoming = await to_thread.run_sync(_read, service, packed, limiter=READ_AT_ONCE)
    snapshot = incoming.snapshot
    bound(who, snapshot.network)
    outcomes = service.metrics.snapshots
    try:
        promise = service.inbox.put(incoming)
    except Full:
        outcomes.labels(snapshot.network, "refused").inc()
        wait = service.settings.ingest.retry_seconds
        detail = "too many snapshots wait to be stored; try again later"
        raise Problem(429, detail, (), {"Retry-After": str(wait)}) from None
    # A request that is given up must not take the promise with it.
    receipt = await asyncio.shield(asyncio.wrap_future(promise))
    outcomes.labels(snapshot.network, receipt.outcome.value).inc()
    if receipt.outcome is Outcome.CONFLICT:
        reason = f"{snapshot.sequence} of {snapshot.collector.id} is known with another body"
        raise about(409, "sequence", reason)
    duplicate = receipt.outcome is Outcome.DUPLICATE
    number = f"s{receipt.number}"
    accepted = Accepted(snapshot_id=number, network=snapshot.network, duplicate=duplicate)
    return JSONResponse(accepted.model_dump(), 200 if duplicate else 202)


def _read(service: Service, packed: Packed) -> Incoming:
    body = packed.unpacked()
    try:
        with LARGEST if len(body) > LARGE else nullcontext():
            snapshot = parse_snapshot(body)
    except InvalidSnapshot as error:
        service.metrics.snapshots.labels("", "invalid").inc()
        raise refused(error) from None
    digest = hashlib.sha256(body).digest()
    return Incoming(snapshot, digest, zlib.compress(body, COMPRESSION))
