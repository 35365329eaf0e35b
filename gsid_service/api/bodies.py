"""Bodies of requests: bounded, unpacked, and JSON in which no key is given twice."""

import zlib
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from gsid_service.api.problems import Problem
from gsid_service.ingest.problems import InvalidSnapshot, NotJSON
from gsid_service.ingest.strict import read

SMALL_BODY = 16 << 20  # of anything but a snapshot, which has a limit of its own


class Packed(NamedTuple):
    """A body as it came."""

    body: bytes
    zipped: bool
    limit: int  # bytes, also once it is unpacked

    def unpacked(self) -> bytes:
        return _unzipped(self.body, self.limit) if self.zipped else self.body


async def body_of(request: Request, limit: int) -> bytes:
    """The body, unpacked; never more of it in memory than is allowed."""
    return await run_in_threadpool((await packed_body(request, limit)).unpacked)


async def packed_body(request: Request, limit: int) -> Packed:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, f"content-type: {kind or 'none'} is not application/json")
    zipped = _is_zipped(request)
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise too_large(limit)
    packed = bytearray()
    async for chunk in request.stream():
        packed += chunk
        if len(packed) > limit:
            raise too_large(limit)
    return Packed(bytes(packed), zipped, limit)


def _is_zipped(request: Request) -> bool:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip"}:
        raise Problem(415, f"content-encoding: {encoding} is neither gzip nor identity")
    return encoding == "gzip"


def _unzipped(packed: bytes, limit: int) -> bytes:
    unzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        body = unzip.decompress(packed, limit + 1)
    except zlib.error as error:
        raise Problem(400, f"the body is not gzip: {error}") from None
    if len(body) > limit:
        raise too_large(limit)
    if not unzip.eof:
        raise Problem(400, "the body ends in the middle of its gzip stream")
    if unzip.unused_data:
        raise Problem(400, "the body goes on after the end of its gzip stream: send a single one")
    return body


def too_large(limit: int) -> Problem:
    return Problem(413, f"the body is larger than {limit:,} bytes")


def refused(error: InvalidSnapshot) -> Problem:
    """What is wrong with a document, by field; the first ones, and how many more there are."""
    if isinstance(error, NotJSON):
        return Problem(400, f"not JSON: {error}")
    more = error.total - len(error.problems)
    others = f" (and {error.total - 1} more)" if error.total > 1 else ""
    errors = [(problem.field, problem.reason) for problem in error.problems]
    if more:
        errors.append(("", f"and {more} more problems"))
    return Problem(422, f"{error.problems[0]}{others}", errors)


class _JSONRequest(Request):
    async def json(self) -> Any:
        """What the framework asks for, and lets nothing but its own exceptions through."""
        try:
            packed = Packed(await self.body(), _is_zipped(self), SMALL_BODY)
            return read(await run_in_threadpool(packed.unpacked) if packed.zipped else packed.body)
        except InvalidSnapshot as error:
            problem = refused(error)
        except Problem as error:
            problem = error
        raise HTTPException(problem.status, problem.detail) from problem


class JSONRoute(APIRoute):
    """A route whose body is a small JSON document."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(_JSONRequest(request.scope, request.receive))

        return handle_json
