"""Snapshots: when each came, what changed between any two, and the scores as they were then."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import HTMLResponse

from gsid_service.api import networks
from gsid_service.api.networks import Name, own_snapshot
from gsid_service.app import Service
from gsid_service.console.session import Viewer
from gsid_service.console.site import PageRoute, console_of, page
from gsid_service.store import scores, snapshots

router = APIRouter(prefix="/networks/{network}/snapshots", route_class=PageRoute)
SHOWN = 50
LEAST = 0.1  # a score that is worth a line
END = datetime(9000, 1, 1, tzinfo=UTC)  # after all that is known
SnapshotId = Annotated[str | None, Query(max_length=20)]


@router.get("")
def show(
    request: Request,
    who: Viewer,
    network: Name,
    before: Annotated[str | None, Query(alias="from", max_length=20)] = None,
    after: Annotated[str | None, Query(alias="to", max_length=20)] = None,
    cursor: str | None = None,
) -> HTMLResponse:
    service = console_of(request).service
    found = networks.list_snapshots(request, who, network, limit=SHOWN, cursor=cursor)
    if before is None and after is None and len(found.items) > 1:
        after, before = (item.snapshot_id for item in found.items[:2])
    compared, then = None, None
    if before and after:
        with service.database.read() as connection:
            numbers = [own_snapshot(connection, network, name) for name in (before, after)]
        compared = networks.differences(*(service.state_at(network, n).facts for n in numbers))
        then = _scores_then(service, network, numbers[1])
    return page(
        request,
        "snapshots.html",
        who,
        network=network,
        snapshots=found,
        before=before,
        after=after,
        differences=compared,
        scores=then,
        shown=SHOWN,
    )


def _scores_then(service: Service, network: str, number: int) -> list[dict[str, Any]]:
    """The scores when the next snapshot came in, which are those of this one."""
    facts = {fact.key.digest: fact.key for fact in service.state_at(network, number).facts}
    with service.database.read() as connection:
        until = snapshots.next_received(connection, network, number)
        found = scores.at(connection, network, until or END, LEAST)
    shown = [row for row in found if row.fact in facts][:SHOWN]
    return [
        {
            "fact": facts[row.fact],
            "parameter": row.parameter,
            "observed": row.observed,
            "score": row.score,
        }
        for row in shown
    ]
