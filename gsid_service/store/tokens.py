"""Tokens: who may do what, on which networks. Only a digest of each is kept."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, func, select

from gsid_service.store.tables import tokens

# Asked with every request, and so made once.
_COUNT = select(func.count()).select_from(tokens)
_FIND = select(tokens).where(tokens.c.digest == bindparam("wanted"))

PREFIX = "gsid_"
SHORTEST = 32  # characters of a secret that somebody else made
ROLES = INGEST, READ, OPERATE = "ingest", "read", "operate"


class Token(NamedTuple):
    """Whom a token stands for."""

    name: str
    role: str
    networks: Sequence[str]  # an empty list is all

    def may(self, role: str, network: str | None) -> bool:
        """Whoever operates may also read; nobody else may do another's work."""
        allowed = self.role == role or (self.role, role) == (OPERATE, READ)
        return allowed and (network is None or not self.networks or network in self.networks)


def digest(secret: str) -> bytes:
    """A token is long and random, so one round of a hash makes it useless to a thief."""
    return hashlib.sha256(secret.encode()).digest()


def create(
    connection: Connection,
    name: str,
    role: str,
    networks: Sequence[str],
    now: datetime,
    secret: str | None = None,
) -> str:
    """Make a token of a secret, or of a new one; it is returned here and kept nowhere."""
    secret = secret or PREFIX + secrets.token_urlsafe(32)
    connection.execute(
        tokens.insert().values(
            name=name,
            role=role,
            networks=list(networks),
            digest=digest(secret),
            created_at=now,
        )
    )
    return secret


def find(connection: Connection, secret: str) -> Token | None:
    """Whom a secret stands for; it is looked up by its digest, which tells a watch nothing."""
    wanted = digest(secret)
    row = connection.execute(_FIND, {"wanted": wanted}).first()
    if row is None or not secrets.compare_digest(row.digest, wanted):
        return None
    return Token(row.name, row.role, row.networks)


def every(connection: Connection) -> list[dict[str, Any]]:
    columns = tokens.c.name, tokens.c.role, tokens.c.networks, tokens.c.created_at
    return [
        dict(row._mapping) for row in connection.execute(select(*columns).order_by(tokens.c.name))
    ]


def count(connection: Connection) -> int:
    return connection.scalar(_COUNT) or 0


def revoke(connection: Connection, name: str) -> bool:
    return connection.execute(delete(tokens).where(tokens.c.name == name)).rowcount > 0
