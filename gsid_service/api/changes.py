"""Announced changes: what is meant to change, in which window, and how far it is."""

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request

from gsid_service import check as checks
from gsid_service.alert.changes import by_key, cancelled, steps, value_of
from gsid_service.api import paging
from gsid_service.api.access import Operator, Reader
from gsid_service.api.bodies import body_of
from gsid_service.api.change_documents import AnnouncedDocument, ChangeDocument, CheckDocument
from gsid_service.api.check import apart, taking
from gsid_service.api.documents import Page
from gsid_service.api.networks import READ, WRITE, Name, known, service_of
from gsid_service.api.paging import Cursor, Limit
from gsid_service.api.problems import Problem, about, answers, unknown
from gsid_service.app import Service
from gsid_service.assemble.merge import Merged
from gsid_service.ingest.candidate import Announcement, parse_announcement, read_values
from gsid_service.records import Change, Step
from gsid_service.store import changes, snapshots
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/networks", tags=["changes"])
ChangeId = Annotated[str, Path(max_length=20, examples=["c3"])]
UNCLOSED_AT_MOST = 100
WINDOW_AT_MOST = timedelta(days=31)
ANNOUNCEMENT = {"$ref": "#/components/schemas/Announcement"}


@router.post(
    "/{network}/changes",
    status_code=201,
    responses=WRITE | answers(409, 429, 503),
    openapi_extra=taking(ANNOUNCEMENT),
)
async def announce(request: Request, who: Operator, network: Name) -> AnnouncedDocument:
    """Announce a meant change; it is checked at once, and kept whatever the check finds.

    In its window each value may be the old or the announced one. What was applied by the end
    becomes part of the baseline.
    """
    service = service_of(request)
    body = await body_of(request, service.settings.server.body_bytes)

    def work() -> AnnouncedDocument:
        with service.database.read() as connection:
            found = known(connection, network, who)
        wanted = parse_announcement(body)
        live, candidate = checks.lay(service, network, wanted.candidate)
        change = _announced(service, network, wanted, _steps(wanted, live, candidate), who)
        checked = CheckDocument.of(network, checks.check(service, found, live, candidate))
        return AnnouncedDocument.of(_kept(service, change, who), check=checked)

    return await apart(service, work)


def _steps(wanted: Announcement, live: Merged, candidate: Merged) -> tuple[Step, ...]:
    """A listed value counts even where it is there already; of a snapshot, what differs."""
    before = by_key(live.facts)
    if not isinstance(wanted.candidate, list):
        return steps(before, by_key(candidate.facts))
    values = read_values(wanted.candidate, before)
    return tuple(
        Step(key, parameter, value_of(before[key], parameter), value)
        for (key, parameter), value in values.items()
    )


def _announced(
    service: Service, network: str, wanted: Announcement, found: tuple[Step, ...], who: Token
) -> Change:
    now = service.clock()
    begins_at = wanted.begins_at or now
    if not found:
        raise about(422, "candidate", "differs in nothing from the network as it is")
    _check_window(begins_at, wanted.ends_at, now)
    return Change(
        id="",
        network=network,
        author=wanted.author or who.name,
        announced_by=who.name,
        announced_at=now,
        ticket=wanted.ticket,
        comment=wanted.comment,
        begins_at=begins_at,
        ends_at=wanted.ends_at,
        steps=found,
    )


def _check_window(begins_at: datetime, ends_at: datetime, now: datetime) -> None:
    if ends_at <= begins_at:
        raise about(422, "ends_at", "is not after begins_at")
    if ends_at <= now:
        raise about(422, "ends_at", "has passed")
    if ends_at - begins_at > WINDOW_AT_MOST:
        raise about(422, "ends_at", f"is more than {WINDOW_AT_MOST.days} days after begins_at")


def _kept(service: Service, change: Change, who: Token) -> Change:
    with service.database.write() as connection:
        known(connection, change.network, who, to_change=True)
        if changes.count_unclosed(connection, change.network) >= UNCLOSED_AT_MOST:
            raise Problem(409, f"{change.network} has {UNCLOSED_AT_MOST} changes that are not over")
        number = changes.announce(connection, change)
        snapshots.touch(connection, [change.network])
        kept = _found(changes.find(connection, change.network, f"c{number}"), f"c{number}")
    service.wake([change.network])
    return kept


@router.get("/{network}/changes", responses=READ)
def list_changes(
    request: Request, who: Reader, network: Name, limit: Limit = 100, cursor: Cursor = None
) -> Page[ChangeDocument]:
    """Announced changes, the newest first."""
    (before,) = paging.decode(cursor, int) or (2**62,)
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        found = changes.page(connection, network, before, limit + 1)
    items = [ChangeDocument.of(change) for change in found[:limit]]
    following = paging.encode([int(items[-1].id[1:])]) if len(found) > limit else None
    return Page(items=items, next=following)


@router.get("/{network}/changes/{change_id}", responses=READ)
def get_change(request: Request, who: Reader, network: Name, change_id: ChangeId) -> ChangeDocument:
    """One announced change, with each of its values."""
    with service_of(request).database.read() as connection:
        known(connection, network, who)
        return ChangeDocument.of(_found(changes.find(connection, network, change_id), change_id))


@router.delete("/{network}/changes/{change_id}", responses=READ | answers(409))
def cancel(request: Request, who: Operator, network: Name, change_id: ChangeId) -> ChangeDocument:
    """Cancel a change: what it announced is expected no longer. It stays as history."""
    service = service_of(request)
    with service.database.write() as connection:
        known(connection, network, who, to_change=True)
        before = _found(changes.find(connection, network, change_id), change_id)
        if before.closed_at is not None:
            raise Problem(409, f"{change_id} is {before.status.value} already")
        after = cancelled(before, who.name, service.clock())
        changes.save(connection, after)
        snapshots.touch(connection, [network])
    service.wake([network])
    return ChangeDocument.of(after)


def _found(change: Change | None, change_id: str) -> Change:
    if change is None:
        raise unknown("change", change_id)
    return change
