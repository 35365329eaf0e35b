"""Backup and restore: all rows of one consistent look at a database into a SQLite file, and back.

A backup is itself a database that the service could run on, whichever kind it was taken from. So a
restore can also move a service from one kind to the other.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Table, create_engine, func, insert, select
from sqlalchemy import text as sql
from sqlalchemy.exc import DatabaseError

from gsid_service.store.database import BadDatabase, Database, connect, head, version
from gsid_service.store.tables import metadata

ROWS = 500  # in memory at a time
NUMBER = "number"  # the key of tables whose rows the database numbers

Counts = dict[str, int]  # rows by table


def backup(source: Database, file: Path) -> Counts:
    """Write a backup of a database that may be in use; the file is there whole, or not at all."""
    if file.exists():
        raise BadDatabase(f"{file} is there already")
    partial = file.with_name(f"{file.name}.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)  # digests of tokens are in it
    try:
        counts = _write(source, partial)
        _sync(partial)
        partial.rename(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync(file.parent)
    return counts


def restore(file: Path, target: Database) -> Counts:
    """Fill an empty database, whose tables are up to date, with what is in a backup."""
    with _reading(file) as source, target.write() as writing:
        for table in metadata.sorted_tables:
            if writing.execute(select(table).limit(1)).first() is not None:
                raise BadDatabase(f"{target.shown} is not empty: {table.name} has rows")
        return _copy(source, writing)


def _write(source: Database, file: Path) -> Counts:
    target = connect(f"sqlite:///{file}", migrate=True)
    try:
        with source.read() as reading, target.write() as writing:
            counts = _copy(reading, writing)
    finally:
        target.close()
    with closing(sqlite3.connect(file)) as whole:
        whole.execute("PRAGMA journal_mode=DELETE")  # so that a reader needs no second file
    return counts


def _copy(source: Connection, target: Connection) -> Counts:
    """All rows, parents before their children, and how far each table is numbered."""
    counts = {table.name: _copy_rows(source, target, table) for table in metadata.sorted_tables}
    for name, last in _numbered(source).items():
        _number_from(target, name, last)
    return counts


def _copy_rows(source: Connection, target: Connection, table: Table) -> int:
    found = source.execute(select(table).execution_options(yield_per=ROWS))
    for rows in found.partitions():
        target.execute(insert(table), [dict(row._mapping) for row in rows])
    return target.scalar(select(func.count()).select_from(table)) or 0


def _numbered(connection: Connection) -> Counts:
    """The last number that each table gave: also that of a row which is gone is not given again."""
    names = [table.name for table in metadata.sorted_tables if NUMBER in table.c]
    if connection.dialect.name == "sqlite":
        found = connection.execute(sql("SELECT name, seq FROM sqlite_sequence"))
        return {name: last for name, last in found if name in names}
    asked = "SELECT last_value FROM pg_sequences WHERE schemaname = current_schema()"
    asked += " AND sequencename = :name"
    sequences = {name: f"{name}_{NUMBER}_seq" for name in names}
    last = {name: connection.scalar(sql(asked), {"name": s}) for name, s in sequences.items()}
    return {name: number for name, number in last.items() if number is not None}


def _number_from(connection: Connection, table: str, last: int) -> None:
    """Go on numbering a table after this one."""
    given = {"table": table, "last": last}
    if connection.dialect.name == "sqlite":
        connection.execute(sql("DELETE FROM sqlite_sequence WHERE name = :table"), given)
        connection.execute(sql("INSERT INTO sqlite_sequence VALUES (:table, :last)"), given)
    else:
        sequence = f"pg_get_serial_sequence(:table, '{NUMBER}')"
        connection.execute(sql(f"SELECT setval({sequence}, :last)"), given)


@contextmanager
def _reading(file: Path) -> Iterator[Connection]:
    """A backup, which is not changed: it may be on a medium that is read-only."""
    if not file.is_file():
        raise BadDatabase(f"{file}: there is no such file")
    url = f"sqlite:///file:{quote(str(file.resolve()))}?mode=ro&uri=true"
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            try:
                _check(connection, file)
            except DatabaseError as error:
                raise BadDatabase(f"{file}: not a backup: {error.orig}") from None
            yield connection
    finally:
        engine.dispose()


def _check(connection: Connection, file: Path) -> None:
    found, wanted = version(connection), head()
    if found is None:
        raise BadDatabase(f"{file}: not a backup: it has no tables of ours")
    if found != wanted:
        raise BadDatabase(
            f"{file} is at version {found}, this release needs {wanted}: bring a copy of it up to "
            f"date with GSID_DATABASE_URL=sqlite:///COPY gsid migrate"
        )
    damage = connection.scalar(sql("PRAGMA integrity_check"))
    if damage != "ok":
        raise BadDatabase(f"{file}: damaged: {damage}")


def _sync(path: Path) -> None:
    """A file's content, or a folder's names, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
