"""POST …/check: a candidate in, what it would break and move out; nothing is kept."""

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool

from gsid_service import check as checks
from gsid_service.api.access import Reader
from gsid_service.api.bodies import body_of, refused
from gsid_service.api.change_documents import CheckDocument
from gsid_service.api.ingest import component
from gsid_service.api.networks import WRITE, Name, known, service_of
from gsid_service.api.problems import Problem, about, answers
from gsid_service.app import Service
from gsid_service.ingest.candidate import WireAnnouncement, WireChanges, parse_candidate
from gsid_service.ingest.problems import InvalidSnapshot
from gsid_service.store.tokens import Token

router = APIRouter(prefix="/networks", tags=["check"])
BUSY_SECONDS = 5
Answer = TypeVar("Answer")
CANDIDATE = {"anyOf": [{"$ref": f"#/components/schemas/{n}"} for n in ("Changes", "Snapshot")]}


def components() -> dict[str, Any]:
    announcement = component("Announcement", WireAnnouncement.model_json_schema())
    return announcement | component("Changes", WireChanges.model_json_schema())


def taking(schema: dict[str, Any]) -> dict[str, Any]:
    """A body that the route reads itself, for OpenAPI."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def apart(service: Service, work: Callable[[], Answer]) -> Answer:
    """Run a check on a thread of its own, a few at once; bad documents are refused by field."""

    def run() -> Answer:
        if not service.checking.acquire(blocking=False):
            detail = "too many checks are under way; try again later"
            raise Problem(429, detail, (), {"Retry-After": str(BUSY_SECONDS)})
        try:
            return work()
        except InvalidSnapshot as error:
            raise refused(error) from None
        except checks.OtherNetwork as error:
            raise about(422, "network", str(error)) from None
        except checks.NotScored as error:
            retry = {"Retry-After": str(BUSY_SECONDS)}
            raise Problem(503, f"not scored: {error}", (), retry) from None
        finally:
            service.checking.release()

    return await run_in_threadpool(run)


@router.post(
    "/{network}/check", responses=WRITE | answers(429, 503), openapi_extra=taking(CANDIDATE)
)
async def check(request: Request, who: Reader, network: Name) -> CheckDocument:
    """Say what a candidate would break and whose traffic would move; nothing is kept.

    The body is one collector's snapshot as it would be, or a list of new values.
    """
    service = service_of(request)
    body = await body_of(request, service.settings.server.body_bytes)
    return await checked(service, who, network, body)


async def checked(service: Service, who: Token, network: str, body: bytes) -> CheckDocument:
    """What the candidate in a body would do."""

    def work() -> CheckDocument:
        with service.database.read() as connection:
            found = known(connection, network, who)
        live, candidate = checks.lay(service, network, parse_candidate(body))
        return CheckDocument.of(network, checks.check(service, found, live, candidate))

    return await apart(service, work)
