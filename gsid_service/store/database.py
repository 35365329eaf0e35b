"""The database: an engine for a URL, transactions, and migrations.

SQLite writes ahead and syncs at every commit, so that what was acknowledged survives a power loss;
it has one writer at a time, which a lock makes orderly. PostgreSQL does both by itself.
"""

import json
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, create_engine, event
from sqlalchemy import text as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

MIGRATIONS = Path(__file__).parent / "migrations"
COMPRESSION = 1


class BadDatabase(RuntimeError):
    """The database cannot be used; one line says why."""


class Database:
    """Transactions on one database."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError) as error:
            raise BadDatabase(f"database.url: {error}") from None
        self.shown = parsed.render_as_string(hide_password=True)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.engine = create_engine(parsed, connect_args={"timeout": 30})
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        else:
            encoding = {"client_encoding": "utf8"}
            self.engine = create_engine(
                parsed, pool_pre_ping=True, pool_size=10, connect_args=encoding
            )
        self._writing = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent look at the data."""
        with self.engine.connect() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: all of it is durable once this ends, or none of it is there."""
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        with self._writing, self.engine.connect() as connection:
            connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def close(self) -> None:
        self.engine.dispose()


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: one that began as a reader could not wait for it."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def connect(url: str, migrate: bool) -> Database:
    """Open a database whose tables are up to date; raises `BadDatabase` with one line."""
    database = Database(url)
    try:
        if migrate:
            _upgrade(database)
        _check(database)
    except SQLAlchemyError as error:
        database.close()
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise BadDatabase(f"database.url: {database.shown}: {reason}") from None
    except BadDatabase:
        database.close()
        raise
    return database


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def _upgrade(database: Database) -> None:
    with _migrating(database) as connection:
        if _version(connection) in {None, *_known()}:
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


@contextmanager
def _migrating(database: Database) -> Iterator[Connection]:
    """One process migrates at a time."""
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(sql("SELECT pg_advisory_xact_lock(7453298)"))
        yield connection


def _check(database: Database) -> None:
    with database.read() as connection:
        found, wanted = (
            _version(connection),
            ScriptDirectory.from_config(_config()).get_current_head(),
        )
    if found != wanted:
        state = "has no tables of ours" if found is None else f"is at version {found}"
        advice = "run gsid migrate" if found in {None, *_known()} else "it is of a newer release"
        raise BadDatabase(
            f"database.url: {database.shown} {state}, this release needs {wanted}: {advice}"
        )


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def _version(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def upsert(
    connection: Connection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    keep: Sequence[str] = (),
) -> None:
    """Insert rows, or replace all but the key and the columns to `keep` of those that are there."""
    if not rows:
        return
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = insert(table)
    key = [column.name for column in table.primary_key]
    changed = {
        name: getattr(statement.excluded, name)
        for name in rows[0]
        if name not in key and name not in keep
    }
    if changed:
        connection.execute(
            statement.on_conflict_do_update(index_elements=key, set_=changed), list(rows)
        )
    else:
        connection.execute(statement.on_conflict_do_nothing(index_elements=key), list(rows))


def packed(document: Any) -> bytes:
    """A JSON document, compressed."""
    text = json.dumps(document, separators=(",", ":"), default=dict)
    return zlib.compress(text.encode(), COMPRESSION)


def unpacked(body: bytes) -> Any:
    return json.loads(zlib.decompress(body))
