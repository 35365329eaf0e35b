"""Who may do what: bearer tokens with a role, bound to networks or not."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gsid_service.api.problems import Problem
from gsid_service.store import tokens
from gsid_service.store.database import Database
from gsid_service.store.tokens import OPERATE, Token

ANYONE = Token("anyone", OPERATE, ())
bearer = HTTPBearer(auto_error=False, description="A token from `gsid token create`.")
CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Gate:
    """Knows whether tokens are asked for, and whom each stands for."""

    def __init__(self, database: Database, required: bool) -> None:
        self.database = database
        self.required = required

    def identify(self, secret: str | None) -> Token:
        with self.database.read() as connection:
            if secret is None:
                if self.required or tokens.count(connection):
                    raise Problem(401, "a token is needed: Authorization: Bearer …", (), CHALLENGE)
                return ANYONE
            found = tokens.find(connection, secret)
        if found is None:
            raise Problem(401, "the token is not known, or was revoked", (), CHALLENGE)
        return found


# All run on the event loop: a look into the database takes less than a change of threads.
async def caller(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Token:
    """Whom the request comes from."""
    gate: Gate = request.app.state.gate
    return gate.identify(credentials.credentials if credentials else None)


Caller = Annotated[Token, Depends(caller)]


def having(role: str) -> Callable[[Token], Awaitable[Token]]:
    """A dependency: the caller, who has a role."""

    async def check(who: Caller) -> Token:
        if role == tokens.INGEST and who is ANYONE:
            return who
        if not who.may(role, None):
            raise Problem(403, f"the token {who.name} has the role {who.role}, not {role}")
        return who

    return check


Reader = Annotated[Token, Depends(having(tokens.READ))]
Operator = Annotated[Token, Depends(having(tokens.OPERATE))]
_sending = having(tokens.INGEST)


async def sender(request: Request) -> Token:
    """Whom a snapshot comes from; asked directly, since dependencies cost more than the answer."""
    return await _sending(await caller(request, await bearer(request)))


def author(who: Token, named: str | None) -> str:
    """Who does something: whom the token stands for, or without tokens whoever is named."""
    return (named or who.name) if who is ANYONE else who.name


def unbound(who: Token) -> None:
    """Refuse a caller who is bound to some networks what concerns all."""
    if who.networks:
        raise Problem(403, f"the token {who.name} is bound to {', '.join(who.networks)}")


def bound(who: Token, network: str) -> None:
    """Refuse a caller who is bound to other networks."""
    if who.networks and network not in who.networks:
        raise Problem(403, f"the token {who.name} is not for the network {network}")
