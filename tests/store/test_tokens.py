"""Tokens: only a digest is kept, and it says who may do what where."""

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from gsid_service.store import tables, tokens
from gsid_service.store.database import Database
from gsid_service.store.tokens import INGEST, OPERATE, READ, Token
from tests.store.making import NOW


def test_a_secret_is_found_until_it_is_revoked(database: Database) -> None:
    with database.write() as connection:
        assert tokens.count(connection) == 0
        secret = tokens.create(connection, "rr1", INGEST, ["net", "other"], NOW)
        another = tokens.create(connection, "ann", OPERATE, [], NOW)
    assert secret != another
    with database.read() as connection:
        assert tokens.find(connection, secret) == Token("rr1", INGEST, ["net", "other"])
        assert tokens.find(connection, another) == Token("ann", OPERATE, [])
        assert tokens.find(connection, secret + "x") is None
        assert tokens.find(connection, "") is None
        assert tokens.count(connection) == 2
    with database.write() as connection:
        assert tokens.revoke(connection, "rr1")
        assert not tokens.revoke(connection, "rr1")
    with database.read() as connection:
        assert tokens.find(connection, secret) is None
        assert tokens.find(connection, another) is not None


def test_the_secret_is_kept_nowhere(database: Database) -> None:
    with database.write() as connection:
        secret = tokens.create(connection, "rr1", READ, [], NOW)
    with database.read() as connection:
        (row,) = connection.execute(select(tables.tokens))
        listed = tokens.every(connection)
    assert secret.startswith(tokens.PREFIX)
    assert len(secret) > 40
    assert not any(secret in str(value) or secret.encode() == value for value in row)
    assert listed == [{"name": "rr1", "role": READ, "networks": [], "created_at": NOW}]


def test_a_name_is_given_once(database: Database) -> None:
    with database.write() as connection:
        secret = tokens.create(connection, "rr1", READ, [], NOW)
    with pytest.raises(IntegrityError), database.write() as connection:
        tokens.create(connection, "rr1", OPERATE, [], NOW)
    with database.read() as connection:
        assert tokens.find(connection, secret) == Token("rr1", READ, [])


@pytest.mark.parametrize(
    ("role", "may"), [(INGEST, {INGEST}), (READ, {READ}), (OPERATE, {READ, OPERATE})]
)
def test_a_role_does_its_own_work_and_who_operates_may_read(role: str, may: set[str]) -> None:
    everywhere, bound = Token("x", role, []), Token("x", role, ["net"])
    assert {other for other in tokens.ROLES if everywhere.may(other, "any")} == may
    assert {other for other in tokens.ROLES if bound.may(other, "net")} == may
    assert not any(bound.may(other, "any") for other in tokens.ROLES)
