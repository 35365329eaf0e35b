"""Who may do what: bearer tokens with a role, bound to networks or not."""

import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from gsid_service.api.problems import Problem
from gsid_service.store import tokens
from gsid_service.store.database import Database
from gsid_service.store.tokens import OPERATE, Token

ANYONE = Token("anyone", OPERATE, ())
bearer = HTTPBearer(auto_error=False, description="A token from `gsid token create`.")
COOKIE = "gsid_token"  # in which the console's pages have it
KNOWN_SECONDS, KNOWN_AT_MOST = 1.0, 1000  # so long, and so many, without a look
CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Gate:
    """Knows whether tokens are asked for, and whom each stands for.

    A token that was known a moment ago still is: collectors send one snapshot after another, and a
    look into the database would be a fifth of what each of them costs.
    """

    def __init__(self, database: Database, required: bool) -> None:
        self.database = database
        self.required = required
        self._known: dict[bytes, tuple[Token, float]] = {}  # by digest, with the end of that

    def identify(self, secret: str | None) -> Token:
        return self._anyone() if secret is None else self._bearer(secret)

    def _anyone(self) -> Token:
        with self.database.read() as connection:
            if self.required or tokens.count(connection):
                raise Problem(401, "a token is needed: Authorization: Bearer …", (), CHALLENGE)
        return ANYONE

    def _bearer(self, secret: str) -> Token:
        digest, now = tokens.digest(secret), time.monotonic()
        known, until = self._known.get(digest, (None, 0.0))
        if known is not None and now < until:
            return known
        with self.database.read() as connection:
            found = tokens.find(connection, secret)
        if found is None:
            self._known.pop(digest, None)
            raise Problem(401, "the token is not known, or was revoked", (), CHALLENGE)
        if len(self._known) >= KNOWN_AT_MOST:
            self._known.clear()
        self._known[digest] = found, now + KNOWN_SECONDS
        return found


def is_known(gate: Gate, request: Request) -> bool:
    """Whether whoever sends a request may do anything here; what, is asked later."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    given = secret if scheme.lower() == "bearer" else request.cookies.get(COOKIE)
    try:
        gate.identify(given)
    except Problem:
        return False
    return True


# All run on the event loop: a look into the database takes less than a change of threads.
async def caller(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Token:
    """Whom the request comes from."""
    gate: Gate = request.app.state.gate
    who = gate.identify(credentials.credentials if credentials else None)
    if who is ANYONE:
        check_anyone(request)
    return who


def check_anyone(request: Request) -> None:
    """Where no token is asked for, a browser must not act for the pages of others: neither by a
    form that they send, nor by a name of theirs that leads to this machine."""
    host = request.headers.get("host", "")
    name = urlsplit(f"//{host}").hostname or ""
    ours = urlsplit(request.app.state.service.settings.notify.external_url).hostname
    if name not in {"localhost", ours} and not _is_address(name):
        reason = f"{name!r} is not a name of this service: set notify.external_url, or make tokens"
        raise Problem(403, f"Host: {reason}", [("Host", reason)])
    if request.method not in {"GET", "HEAD"} and comes_from_here(request) is False:
        raise Problem(403, "the request comes from a page of another site")


def comes_from_here(request: Request) -> bool | None:
    """Whether a page of this service sends it, as browsers say; None where nobody says."""
    site, page = request.headers.get("sec-fetch-site"), request.headers.get("Origin")
    if site is not None:  # Origin is null where the page lets nobody know its address
        return site in {"same-origin", "none"}
    return None if page is None else urlsplit(page).netloc == request.headers.get("host")


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


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
