"""What the operator approved and wants of a network: its baseline and its intents."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Request

from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader
from gsid_service.api.approval_documents import (
    ApprovableDocument,
    ApprovalDocument,
    ApprovalWanted,
    ApprovedDocument,
    BaselineDocument,
    IntentCount,
    IntentDocument,
    IntentsWanted,
)
from gsid_service.api.bodies import JSONRoute
from gsid_service.api.documents import Page
from gsid_service.api.networks import READ, WRITE, Name, known, own_snapshot, service_of
from gsid_service.api.paging import Cursor, Limit
from gsid_service.api.problems import Problem, about, answers
from gsid_service.api.text import Text
from gsid_service.app import Approvable
from gsid_service.ingest.problems import InvalidSnapshot
from gsid_service.ingest.wire import dump_entity, dump_fact, read_facts
from gsid_service.schema import Group
from gsid_service.store import approvals, snapshots
from gsid_service.store.networks import Network
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/networks", tags=["networks"], route_class=JSONRoute)


@router.get("/{network}/baseline", responses=READ)
def get_baseline(request: Request, who: Reader, network: Name) -> BaselineDocument:
    """What was approved, by whom and when."""
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        baseline = approvals.baseline(connection, network)
    if baseline is None:
        raise Problem(404, f"baseline: {network} has none yet", [("baseline", "none yet")])
    return BaselineDocument(
        **ApprovalDocument.of(baseline.approval).model_dump(),
        entities=[dump_entity(entity) for entity in baseline.entities],
        facts=[dump_fact(fact) for fact in baseline.facts],
    )


@router.put("/{network}/baseline", responses=WRITE | answers(409))
def approve(
    request: Request, who: Operator, network: Name, wanted: ApprovalWanted
) -> ApprovedDocument:
    """Approve the network as it is now, or as it was with a snapshot; clears what that allows."""
    if wanted.now == (wanted.snapshot_id is not None):
        reason = "either now: true or a snapshot_id"
        raise about(422, "now", reason)
    found, state = _approvable(request, who, network, wanted.snapshot_id)
    approval = service_of(request).approve(found, state, who.name)
    over = ApprovableDocument.of(state.number, state.clears)
    return ApprovedDocument(
        **ApprovalDocument.of(approval).model_dump(), cleared=over.cleared, clears=over.clears
    )


@router.get("/{network}/baseline/candidate", responses=READ | answers(409))
def get_candidate(
    request: Request,
    who: Reader,
    network: Name,
    snapshot: Annotated[
        Text | None, Query(max_length=20, description="As it was with this, not as it is now.")
    ] = None,
) -> ApprovableDocument:
    """What an approval would approve, and which open alerts it would make an end of."""
    _, state = _approvable(request, who, network, snapshot)
    return ApprovableDocument.of(state.number, state.clears)


def _approvable(
    request: Request, who: Token, network: str, snapshot: str | None
) -> tuple[Network, Approvable]:
    service = service_of(request)
    with service.database.read() as connection:
        found = known(connection, network, who)
        number = None if snapshot is None else own_snapshot(connection, network, snapshot)
    state = service.approvable(network, number)
    if state is None:
        raise Problem(409, f"{network} has no state to approve yet")
    return found, state


@router.get("/{network}/baseline/history", responses=READ)
def approval_history(
    request: Request, who: Reader, network: Name, limit: Limit = 100, cursor: Cursor = None
) -> Page[ApprovalDocument]:
    """Who approved what and when, the newest first."""
    (before,) = paging.decode(cursor, int) or (2**62,)
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        found = approvals.history(connection, network, before, limit + 1)
    items = [ApprovalDocument.of(a) for a in found[:limit]]
    return Page(items=items, next=paging.following(found, limit))


@router.get("/{network}/intents", responses=READ)
def list_intents(
    request: Request, who: Reader, network: Name, limit: Limit = 100, cursor: Cursor = None
) -> Page[IntentDocument]:
    """What is wanted of the network: stated intents, then derived ones."""
    (start,) = paging.decode(cursor, int) or (0,)
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        wanted = approvals.wanted(connection, network)
    everything = [IntentDocument.of(i, "stated") for i in wanted.stated]
    everything += [IntentDocument.of(i, "derived") for i in wanted.derived]
    end = max(start, 0) + limit
    following = paging.encode([end]) if end < len(everything) else None
    return Page(items=everything[max(start, 0) : end], next=following)


@router.put("/{network}/intents", responses=WRITE | answers(409))
def state_intents(
    request: Request, who: Operator, network: Name, wanted: Annotated[IntentsWanted, Body()]
) -> IntentCount:
    """State what is wanted of the network, in place of what was stated before."""
    service = service_of(request)
    with service.database.write() as connection:
        known(connection, network, who, to_change=True)
        baseline = approvals.baseline(connection, network)
        if baseline is None:
            raise Problem(409, f"{network} has no baseline yet, so its entities are not known")
        try:
            stated = read_facts(wanted.intents, baseline.entities, Group.INTENT)
        except InvalidSnapshot as error:
            errors = [(problem.field, problem.reason) for problem in error.problems]
            raise Problem(422, str(error.problems[0]), errors) from None
        before = approvals.wanted(connection, network)
        after = before._replace(stated=stated)
        approvals.want(connection, network, after, service.clock(), who.name)
        snapshots.touch(connection, [network])
    service.wake([network])
    return IntentCount(stated=len(after.stated), derived=len(after.derived))


@router.post("/{network}/intents/derive", responses=WRITE | answers(409))
def derive_intents(request: Request, who: Operator, network: Name) -> IntentCount:
    """Derive intents from the baseline anew, in place of those derived before."""
    service = service_of(request)
    with service.database.read() as connection:
        found = known(connection, network, who)
    after = service.expectations.derive_again(found, who.name)
    if after is None:
        raise Problem(409, f"{network} has no baseline yet")
    service.wake([network])
    return IntentCount(stated=len(after.stated), derived=len(after.derived))
