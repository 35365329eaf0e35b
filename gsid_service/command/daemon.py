"""Commands on the machine of the service: serve, migrate, backup, restore, token."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gsid_service import config
from gsid_service.command import settings_page
from gsid_service.config import BadSettings, Settings
from gsid_service.terminal import OUT, AsJson, print_json, print_rows, refuse, say

if TYPE_CHECKING:
    from gsid_service.store.database import Database

# The store is imported where it is used: a collector, which has none, starts faster and smaller.

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="A TOML file with settings.")
]
token = typer.Typer(help="Who may speak to the service.", no_args_is_help=True)


def serve(
    config_file: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    role: Annotated[
        str | None, typer.Option(help="api, scorer, notifier or all; see docs/scaling.md.")
    ] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Off loopback without tokens or TLS.")
    ] = None,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Check the settings, print them, and end.")
    ] = False,
) -> None:
    """Run the service."""
    flags = {
        "server.host": host,
        "server.port": port,
        "server.role": role,
        "server.insecure": insecure,
    }
    found = _settings(config_file, flags)
    from gsid_service.serve import Refused, check, check_model
    from gsid_service.serve import serve as run
    from gsid_service.store.database import BadDatabase

    def read_again() -> Settings:
        return config.load(config_file, os.environ, flags)

    try:
        if check_config:
            check(found)
            check_model(found)
            print_json(_shown(found))
        else:
            run(found, read_again, version("gsid-service"))
    except (BadSettings, BadDatabase, Refused) as error:
        refuse(str(error))


def _shown(found: Settings) -> dict[str, Any]:
    """Settings without what is secret in them."""
    from gsid_service.store.database import Database

    shown = found.model_dump(mode="json")
    shown["database"]["url"] = Database(found.database.url).shown
    for receiver in shown["receivers"]:
        receiver.pop("url")  # which may hold a token
    return shown


def settings(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="A page about them in place of a file.")
    ] = False,
) -> None:
    """Print a settings file with every setting at its default."""
    typer.echo(settings_page.page() if markdown else config.sample(), nl=False)


def migrate(config_file: ConfigFile = None) -> None:
    """Bring the tables of the database up to date."""
    database = _database(config_file, migrate=True)
    say(f"{database.shown} is up to date")
    database.close()


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write it; must not be there yet.")],
    config_file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write a backup of the database, whether the service runs or not."""
    from gsid_service.store import backup as store_backup

    database = _database(config_file, migrate=False)
    with _refusing(database):
        counts = store_backup.backup(database, file)
    say(f"{file} has all of {database.shown}")
    print_rows([{"table": name, "rows": count} for name, count in counts.items()], as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    config_file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Fill an empty database, of either kind, with what is in a backup."""
    from gsid_service.store import backup as store_backup

    database = _database(config_file, migrate=True)
    with _refusing(database):
        counts = store_backup.restore(file, database)
    say(f"{database.shown} has all of {file}")
    print_rows([{"table": name, "rows": count} for name, count in counts.items()], as_json)


@contextmanager
def _refusing(database: "Database") -> Iterator[None]:
    """Work with a database, and end with one line where it cannot be done."""
    from sqlalchemy.exc import SQLAlchemyError

    from gsid_service.store.database import BadDatabase

    try:
        yield
    except BadDatabase as error:
        refuse(str(error))
    except SQLAlchemyError as error:
        refuse(f"{database.shown}: {getattr(error, 'orig', None) or error}")
    finally:
        database.close()


@token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Whom it is for; appears in the audit trail.")],
    role: Annotated[str, typer.Option(help="ingest, read or operate (which may read, too).")],
    network: Annotated[
        list[str] | None, typer.Option(help="Only for this network; may be repeated.")
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="Take the secret in this file, in place of the one that a token of that name has."
        ),
    ] = None,
    config_file: ConfigFile = None,
) -> None:
    """Make a token and print it, once: only a digest is kept."""
    from sqlalchemy.exc import IntegrityError

    from gsid_service.ingest.shapes import is_name
    from gsid_service.store import tokens

    if role not in tokens.ROLES:
        refuse(f"--role: {role!r} is none of {', '.join(tokens.ROLES)}")
    if not name or len(name) > 200 or not name.isprintable():
        refuse("NAME: 1 to 200 printable characters")
    for one in network or ():
        if not is_name(one):
            refuse(f"--network: {one!r} cannot be the name of a network")
    given = None if secret_file is None else _secret(secret_file)
    database = _database(config_file)
    try:
        with database.write() as connection:
            if given is not None:
                tokens.revoke(connection, name)
            secret = tokens.create(connection, name, role, network or (), datetime.now(UTC), given)
    except IntegrityError:
        refuse(
            f"NAME: there is a token {name!r} already; revoke it first"
            if given is None
            else f"--secret-file: the secret in {secret_file} is another token's"
        )
    finally:
        database.close()
    where = database.engine.url.render_as_string(hide_password=True)
    say(f"{name} may {role} at a service whose database is {where}")
    if given is None:
        OUT.print(secret, soft_wrap=True)


def _secret(file: Path) -> str:
    from gsid_service.store import tokens

    found = file.read_bytes().strip()
    if len(found) < tokens.SHORTEST:
        refuse(f"--secret-file: {file} has less than {tokens.SHORTEST} characters")
    if not re.fullmatch(rb"[!-~]+", found):
        refuse(f"--secret-file: {file} has more than one line of printable ASCII without spaces")
    return found.decode()


@token.command("list")
def list_tokens(
    config_file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the tokens there are, without their secrets."""
    from gsid_service.store import tokens

    database = _existing(config_file)
    with database.read() as connection:
        found = tokens.every(connection)
    database.close()
    rows = [
        row
        | {
            "networks": row["networks"] if as_json else ", ".join(row["networks"]) or "all",
            "created_at": row["created_at"].isoformat(timespec="seconds"),
        }
        for row in found
    ]
    print_rows(rows, as_json)


@token.command("revoke")
def revoke_token(
    name: Annotated[str, typer.Argument(help="Its name.")], config_file: ConfigFile = None
) -> None:
    """Make a token useless, at once."""
    from gsid_service.store import tokens

    database = _existing(config_file)
    with database.write() as connection:
        gone, left = tokens.revoke(connection, name), tokens.count(connection)
    database.close()
    if not gone:
        refuse(f"NAME: there is no token {name!r}")
    say(f"{name} is revoked")
    if not left:
        say(
            "no token is left: a service that runs with tokens now refuses everybody; once it is "
            "started again, one on loopback lets everybody do everything"
        )


def _settings(file: Path | None, flags: dict[str, Any] | None = None) -> Settings:
    try:
        found = config.load(file, os.environ, flags)
    except BadSettings as error:
        refuse(str(error))
    for line in config.ignored(os.environ, found):
        say(f"warning: {line}")
    return found


def _database(file: Path | None, migrate: bool | None = None) -> "Database":
    from gsid_service.store.database import BadDatabase, connect

    found = _settings(file).database
    try:
        wanted = found.migrate if migrate is None else migrate
        return connect(found.url, wanted, found.password_file)
    except BadDatabase as error:
        refuse(str(error))


def _existing(file: Path | None) -> "Database":
    """A database that is there already: asked in the wrong folder, no empty one is made."""
    from gsid_service.store.database import BadDatabase, look

    wanted = _settings(file).database
    try:
        with look(wanted.url, wanted.migrate, wanted.password_file) as found:
            is_new = found is None
    except BadDatabase as error:
        refuse(str(error))
    if is_new:
        refuse("database.url: no service has used this database yet; is this the right folder?")
    return _database(file)
