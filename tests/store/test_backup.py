"""A backup of either kind of database, restored into either kind, is the same in every row."""

import os
import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Boolean, Column, Float, LargeBinary, String, insert, select, text

from gsid_service.store import backup, snapshots
from gsid_service.store.database import BadDatabase, Database, connect
from gsid_service.store.tables import Instant, metadata
from tests import postgres
from tests.store.making import NOW, incoming, snapshot

ROWS = 3
Rows = dict[str, list[Any]]


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An empty database of either kind."""
    url = f"sqlite:///{tmp_path / 'target.db'}"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        url = postgres.new_database(server)
    opened = connect(url, migrate=True)
    yield opened
    opened.close()


def value(column: Column[Any], row: int) -> Any:
    """Something that differs from row to row and is hard on encodings; the first is empty."""
    for key in column.foreign_keys:
        return value(key.column, row)
    if column.nullable and row == 0:
        return None
    kinds: list[tuple[Any, Any]] = [
        (Instant, NOW + timedelta(microseconds=row)),
        (JSON, {"é": [row, None, "\U0001f310"]}),
        (Boolean, row % 2 == 1),
        (Float, 0.1 + row),
        (LargeBinary, bytes([row, 0, 255])),
        (String, f"{row}é'\"\\"),
    ]
    return next((made for kind, made in kinds if isinstance(column.type, kind)), row + 1)


def fill(database: Database) -> None:
    """Some rows in every table, in every column."""
    with database.write() as connection:
        for table in metadata.sorted_tables:
            rows = [{c.name: value(c, row) for c in table.columns} for row in range(ROWS)]
            connection.execute(insert(table), rows)


def rows(database: Database) -> Rows:
    with database.read() as connection:
        return {
            table.name: [
                dict(row._mapping)
                for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in metadata.sorted_tables
        }


def test_every_row_of_every_table_comes_back(
    database: Database, target: Database, tmp_path: Path
) -> None:
    fill(database)
    counts = backup.backup(database, tmp_path / "gsid.backup")
    assert counts == dict.fromkeys(metadata.tables, ROWS)
    assert backup.restore(tmp_path / "gsid.backup", target) == counts
    assert rows(target) == rows(database)


def test_numbers_that_were_given_are_not_given_again(
    database: Database, target: Database, tmp_path: Path
) -> None:
    """Also where the rows are gone: an id stands in tickets and messages."""
    with database.write() as connection:
        snapshots.add(connection, [incoming(snapshot(n)) for n in range(5)], NOW)
        connection.execute(text("DELETE FROM snapshots WHERE sequence >= 2"))
    backup.backup(database, tmp_path / "gsid.backup")
    backup.restore(tmp_path / "gsid.backup", target)
    given = []
    for each in (database, target):
        with each.write() as connection:
            (receipt,) = snapshots.add(connection, [incoming(snapshot(9))], NOW)
            given.append(receipt.number)
    assert given[0] == given[1]


def test_the_service_could_run_on_a_backup(database: Database, tmp_path: Path) -> None:
    fill(database)
    backup.backup(database, tmp_path / "gsid.backup")
    opened = connect(f"sqlite:///{tmp_path / 'gsid.backup'}", migrate=False)
    assert rows(opened) == rows(database)
    opened.close()


def test_a_backup_is_one_file_for_its_owner_alone(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "gsid.backup"
    backup.backup(database, file)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(BadDatabase, match="is there already"):
        backup.backup(database, file)


def test_a_backup_that_fails_leaves_nothing_behind(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(backup, "_sync", full)
    with pytest.raises(OSError, match="No space left"):
        backup.backup(database, tmp_path / "gsid.backup")
    assert list(tmp_path.iterdir()) == []


def test_a_restore_goes_only_into_an_empty_database(database: Database, tmp_path: Path) -> None:
    fill(database)
    backup.backup(database, tmp_path / "gsid.backup")
    before = rows(database)
    with pytest.raises(BadDatabase, match="is not empty"):
        backup.restore(tmp_path / "gsid.backup", database)
    assert rows(database) == before


def broken(kind: str, file: Path) -> None:
    """Something in place of a backup."""
    if kind == "text":
        file.write_text("not a database, and long enough for a header\n" * 99)
    elif kind == "other":
        with closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE notes (text)")
    elif kind == "newer":
        with closing(sqlite3.connect(file)) as newer:
            newer.execute("UPDATE alembic_version SET version_num = 'f00d'")
            newer.commit()
    elif kind == "damaged":
        content = bytearray(file.read_bytes())
        content[len(content) // 2 :] = b"\xff" * (len(content) - len(content) // 2)
        file.write_bytes(content)
    else:
        file.unlink()


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("missing", "there is no such file"),
        ("text", "not a backup: file is not a database"),
        ("other", "not a backup: it has no tables of ours"),
        ("newer", "is at version f00d, this release needs"),
        ("damaged", "damaged|not a backup"),
    ],
)
def test_what_is_no_good_backup_is_refused(
    kind: str, reason: str, database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "gsid.backup"
    if kind in {"newer", "damaged", "missing"}:
        backup.backup(database, file)
    broken(kind, file)
    with pytest.raises(BadDatabase, match=reason):
        backup.restore(file, database)
    assert not any(rows(database).values())
