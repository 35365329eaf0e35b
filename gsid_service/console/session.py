"""Who looks at the console: a token, given once and held in a cookie that no script can read.

A form is taken from the console's own pages only: the browser says where a request comes from.
"""

from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from gsid_service.api.access import ANYONE, COOKIE, Gate, check_anyone, comes_from_here, having
from gsid_service.api.problems import Problem
from gsid_service.store import tokens
from gsid_service.store.tokens import Token

HOURS = 12
FIELDS_AT_MOST = 100


async def visitor(request: Request) -> Token:
    """Whom the cookie stands for; without tokens, anyone."""
    gate: Gate = request.app.state.gate
    who = gate.identify(request.cookies.get(COOKIE))
    if who is ANYONE:
        check_anyone(request)
    return who


async def viewer(who: Annotated[Token, Depends(visitor)]) -> Token:
    return await having(tokens.READ)(who)


async def acting(request: Request, who: Annotated[Token, Depends(visitor)]) -> Token:
    """Somebody who may operate, by a form of the console's own."""
    check_origin(request)
    return await having(tokens.OPERATE)(who)


Viewer = Annotated[Token, Depends(viewer)]
Acting = Annotated[Token, Depends(acting)]


def check_origin(request: Request) -> None:
    """Refuse a form that another site's page sends with this browser's cookie."""
    if not comes_from_here(request):
        raise Problem(403, "the form does not come from this console")


def sign_in(request: Request, response: Response, secret: str) -> None:
    response.set_cookie(
        COOKIE,
        secret,
        max_age=HOURS * 3600,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def may_operate(who: Token) -> bool:
    return who is ANYONE or who.may(tokens.OPERATE, None)


async def form(request: Request) -> dict[str, str]:
    """The fields of a form; the last counts where one is there twice."""
    body = await request.body()
    try:
        text = body.decode("utf-8")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS_AT_MOST))
    except ValueError as error:
        raise Problem(400, f"not a form: {error}") from None


Form = Annotated[dict[str, str], Depends(form)]


Wanted = TypeVar("Wanted", bound=BaseModel)


def read_form(kind: type[Wanted], **fields: Any) -> Wanted:
    """What a form asks for, checked as the API checks it."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        found = error.errors()[0]
        field = ".".join(str(part) for part in found["loc"])
        raise Problem(422, f"{field}: {found['msg']}") from None


def whole_number(name: str, fields: dict[str, str], at_most: int) -> int:
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= at_most):
        raise Problem(422, f"{name}: must be from 1 to {at_most}")
    return int(text)
