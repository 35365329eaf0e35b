"""Errors as RFC 9457 problem documents whose detail names the field."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from gsid_service.store.database import UNAVAILABLE, error_name, reason

log = structlog.get_logger()
MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = "5"  # for a database to be well again
REASONS = {"model_attributes_type": "must be a JSON object, sent as application/json"}


class FieldError(BaseModel):
    field: str = Field(examples=["facts[3].params.local_pref"])
    reason: str = Field(examples=["-1 is outside 0 to 4294967295"])


class ProblemDocument(BaseModel):
    """What went wrong, RFC 9457."""

    type: str = "about:blank"
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["facts[3].params.local_pref: -1 is outside 0 to 4294967295"])
    errors: list[FieldError] = []


class Problem(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        errors: Sequence[tuple[str, str]] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.errors, self.headers = status, detail, errors, headers


def about(status: int, field: str, reason: str) -> Problem:
    """A problem with one field of the request."""
    return Problem(status, f"{field}: {reason}", [(field, reason)])


def unknown(kind: str, name: str, field: str | None = None) -> Problem:
    """There is nothing of that kind with this name or id."""
    reason = f"{name!r} is not known"
    return Problem(404, f"{kind}: {reason}", [(field or f"{kind}_id", reason)])


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for OpenAPI."""
    schema = {"$ref": "#/components/schemas/ProblemDocument"}
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "content": {MEDIA_TYPE: {"schema": schema}},
        }
        for status in statuses
    }


def install(app: FastAPI) -> None:
    """Make every error of the app a problem document."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in UNAVAILABLE:
        app.add_exception_handler(kind, _unavailable)


def document(status: int, detail: str, errors: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    named = [FieldError(field=field, reason=reason) for field, reason in errors]
    title = HTTPStatus(status).phrase
    found = ProblemDocument(title=title, status=status, detail=detail, errors=named)
    return found.model_dump()


def answer(
    status: int,
    detail: str,
    errors: Sequence[tuple[str, str]] = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = document(status, detail, errors)
    return JSONResponse(body, status, headers=headers, media_type=MEDIA_TYPE)


async def _problem(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, Problem):
        raise error
    return answer(error.status, error.detail, error.errors, error.headers)


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    """The database is away, full or read-only: nothing is kept, and whoever asks may come back."""
    if not isinstance(error, UNAVAILABLE):
        raise error
    log.warning("the database does not do its work", problem=reason(error))
    detail = f"the database cannot be read or written to: {error_name(error)}; try again later"
    return answer(503, detail, headers={"Retry-After": RETRY_SECONDS})


async def _http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    errors = error.__cause__.errors if isinstance(error.__cause__, Problem) else ()
    return answer(error.status_code, str(error.detail), errors, headers)


def _methods(request: Request) -> set[str]:
    """All methods of a path: each route knows only its own."""
    routes = (route for route in request.app.routes if isinstance(route, APIRoute))
    there = (route for route in routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in there for method in route.methods or ()}


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    found = error.errors()
    if found and found[0]["type"] == "json_invalid":
        return answer(400, f"not JSON: {found[0].get('ctx', {}).get('error', found[0]['msg'])}")
    errors = [
        (_field(e["loc"]), REASONS.get(e["type"], e["msg"].removeprefix("Value error, ")))
        for e in found
    ]
    return answer(422, "; ".join(f"{field}: {reason}" for field, reason in errors[:3]), errors)


def _field(location: Sequence[int | str]) -> str:
    field = ""
    for part in location[1:] or location:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    return field
