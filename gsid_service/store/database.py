"""The database: an engine for a URL, transactions, and migrations.

SQLite writes ahead and syncs at every commit, so that what was acknowledged survives a power loss;
it has one writer at a time, which a lock makes orderly. PostgreSQL does both by itself.
"""

import json
import os
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, create_engine, event, exc, inspect
from sqlalchemy import text as sql
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

MIGRATIONS = Path(__file__).parent / "migrations"
COMPRESSION = 1
# What a database does that is away, full or read-only; it may be well again later.
UNAVAILABLE = (exc.OperationalError, exc.InternalError, exc.TimeoutError)


class BadDatabase(RuntimeError):
    """The database cannot be used; one line says why."""


class Database:
    """Transactions on one database."""

    def __init__(self, url: str, password_file: Path | None = None) -> None:
        parsed = _parsed(url, password_file)
        self.shown = _shown(parsed)
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
        self._failed = False  # to write, when last tried
        self._steady = threading.local()

    @contextmanager
    def steady(self) -> Iterator[None]:
        """All that this thread reads meanwhile is one consistent look.

        PostgreSQL is asked over a network, and every look on its own costs several ways there and
        back. SQLite is not, and has only the one file to hold.
        """
        if self.is_sqlite:
            yield
            return
        with self.read() as connection:
            self._steady.connection = connection
            try:
                yield
            finally:
                del self._steady.connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent look at the data."""
        steady: Connection | None = getattr(self._steady, "connection", None)
        if steady is not None:
            yield steady
            return
        with self.engine.connect() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: all of it is durable once this ends, or none of it is there."""
        try:
            with self._transaction() as connection:
                yield connection
        except UNAVAILABLE:
            self._failed = True
            raise

    def check(self) -> None:
        """Raise what keeps it from being read or, where that failed before, written to."""
        with self.read() as connection:
            connection.exec_driver_sql("SELECT 1")
        if self._failed:
            with self.write() as connection:
                connection.execute(sql("UPDATE alembic_version SET version_num = version_num"))
            self._failed = False

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        with self._writing, self.engine.connect() as connection:
            connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    @property
    def place(self) -> str:
        """Where PostgreSQL is, password included, for who speaks to it past SQLAlchemy."""
        plain = self.engine.url.set(drivername="postgresql")
        return plain.render_as_string(hide_password=False)

    def close(self) -> None:
        self.engine.dispose()


def _parsed(url: str, password_file: Path | None) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise BadDatabase(f"database.url: {error}") from None
    return parsed.set(password=_read_password(password_file)) if password_file else parsed


def _read_password(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadDatabase(f"database.password_file: cannot be read: {error}") from None


def _shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-64"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes its lock at once: one that began as a reader could not wait for it."""
    if connection.get_execution_options().get("writes", False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    # With every request, cannot fail, and costs a tenth of what it costs through SQLAlchemy.
    sqlite3: Any = connection.connection.driver_connection
    sqlite3.execute("BEGIN")


def connect(url: str, migrate: bool, password_file: Path | None = None) -> Database:
    """Open a database whose tables are up to date; raises `BadDatabase` with one line."""
    database = Database(url, password_file)
    file = Path(database.engine.url.database or "")
    if database.is_sqlite and not migrate and not file.exists():
        reason = "has no tables of ours: there is no such file; if it is the right one"
        raise BadDatabase(f"database.url: {database.shown} {reason}, run gsid migrate")
    try:
        with _explaining(database.shown):
            if migrate:
                _upgrade(database)
            with database.read() as connection:
                _check(database.shown, _state(connection), migrate=False)
    except BadDatabase:
        database.close()
        raise
    return database


@contextmanager
def look(url: str, migrate: bool, password_file: Path | None = None) -> Iterator[Connection | None]:
    """A database as it is before `connect`, which leaves it so; None where there are no tables yet.

    Raises `BadDatabase` where `connect` would.
    """
    parsed = _parsed(url, password_file)
    shown = _shown(parsed)
    if parsed.get_backend_name() == "sqlite" and not _is_there(Path(parsed.database or ""), shown):
        _check(shown, NOTHING, migrate)
        yield None
        return
    engine = create_engine(parsed)
    try:
        with _explaining(shown), engine.connect() as connection:
            found = _state(connection)
            _check(shown, found, migrate)
            yield None if found.version is None else connection
    finally:
        engine.dispose()


def _is_there(file: Path, shown: str) -> bool:
    """Whether a file is there, which can be written to; if not, it can be made."""
    folder = file.absolute().parent
    if not folder.is_dir():
        raise BadDatabase(f"database.url: {shown}: there is no folder {folder}")
    # SQLite also writes files beside it.
    for path in (folder, file) if file.exists() else (folder,):
        if not os.access(path, os.W_OK):
            raise BadDatabase(f"database.url: {shown}: {path} cannot be written to")
    return file.exists()


@contextmanager
def _explaining(shown: str) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise BadDatabase(f"database.url: {shown}: {reason(error)}") from None


def reason(error: SQLAlchemyError) -> str:
    """What a database says is wrong, in a line; for logs, since it may name hosts."""
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


def error_name(error: SQLAlchemyError) -> str:
    """What kind of error it is, as the database calls it; for anybody."""
    original = error.orig if isinstance(error, DBAPIError) else error
    return str(getattr(original, "sqlite_errorname", type(original).__name__))


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config


def _upgrade(database: Database) -> None:
    with _migrating(database) as connection:
        if version(connection) in {None, *_known()}:
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


class State(NamedTuple):
    """The version of the tables, and the oldest one whose release works on them."""

    version: str | None
    since: str | None


NOTHING = State(None, None)


def _state(connection: Connection) -> State:
    found = version(connection)
    if found is None or not inspect(connection).has_table("compatible"):
        return State(found, None)
    return State(found, connection.scalar(sql("SELECT since FROM compatible")))


def _check(shown: str, found: State, migrate: bool) -> None:
    """Refuse tables of another version than ours, unless they can be, and are, migrated; or are of
    a newer release that says that ours works on them, too: so two can run side by side."""
    wanted, known = head(), _known()
    can_migrate = found.version in {None, *known}
    if found.version == wanted or (migrate and can_migrate):
        return
    if not can_migrate and found.since in known:
        return
    state = "has no tables of ours" if found.version is None else f"is at version {found.version}"
    advice = "run gsid migrate" if can_migrate else "it is of a newer release"
    raise BadDatabase(f"database.url: {shown} {state}, this release needs {wanted}: {advice}")


def head() -> str | None:
    """The version that this release needs."""
    return ScriptDirectory.from_config(_config()).get_current_head()


def _known() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def version(connection: Connection) -> str | None:
    """Of the tables in a database; None where there are none of ours."""
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
