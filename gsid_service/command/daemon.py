"""Commands on the machine of the service: serve, migrate, token."""

import os
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy.exc import IntegrityError

from gsid_service import config
from gsid_service.config import BadSettings, Settings
from gsid_service.store import tokens
from gsid_service.store.database import BadDatabase, Database, connect
from gsid_service.terminal import OUT, AsJson, print_json, print_rows, refuse, say

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="A TOML file with settings.")
]
token = typer.Typer(help="Who may speak to the service.", no_args_is_help=True)


def serve(
    config_file: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes a free one.")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Off loopback without tokens or TLS.")
    ] = None,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Check the settings, print them, and end.")
    ] = False,
) -> None:
    """Run the service."""
    flags = {"server.host": host, "server.port": port, "server.insecure": insecure}
    found = _settings(config_file, flags)
    from gsid_service.serve import Refused, check
    from gsid_service.serve import serve as run

    if check_config:
        try:
            check(found)
        except BadSettings as error:
            refuse(str(error))
        shown = found.model_dump(mode="json")
        shown["database"]["url"] = Database(found.database.url).shown
        for receiver in shown["receivers"]:
            receiver.pop("url")  # which may hold a token
        print_json(shown)
        return

    def read_again() -> Settings:
        return config.load(config_file, os.environ, flags)

    try:
        run(found, read_again, version("gsid-service"))
    except (BadSettings, BadDatabase, Refused) as error:
        refuse(str(error))


def settings() -> None:
    """Print a settings file with every setting at its default."""
    typer.echo(config.sample(), nl=False)


def migrate(config_file: ConfigFile = None) -> None:
    """Bring the tables of the database up to date."""
    database = _database(config_file, migrate=True)
    say(f"{database.shown} is up to date")
    database.close()


@token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="Whom it is for; appears in the audit trail.")],
    role: Annotated[str, typer.Option(help="ingest, read or operate (which may read, too).")],
    network: Annotated[
        list[str] | None, typer.Option(help="Only for this network; may be repeated.")
    ] = None,
    config_file: ConfigFile = None,
) -> None:
    """Make a token and print it, once: only a digest is kept."""
    if role not in tokens.ROLES:
        refuse(f"--role: {role!r} is none of {', '.join(tokens.ROLES)}")
    if not name or len(name) > 200 or not name.isprintable():
        refuse("NAME: 1 to 200 printable characters")
    database = _database(config_file)
    try:
        with database.write() as connection:
            secret = tokens.create(connection, name, role, network or (), datetime.now(UTC))
    except IntegrityError:
        refuse(f"NAME: there is a token {name!r} already; revoke it first")
    finally:
        database.close()
    where = database.engine.url.render_as_string(hide_password=True)
    say(f"{name} may {role} at a service whose database is {where}")
    OUT.print(secret, soft_wrap=True)


@token.command("list")
def list_tokens(
    config_file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show the tokens there are, without their secrets."""
    database = _database(config_file)
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
    database = _database(config_file)
    with database.write() as connection:
        gone = tokens.revoke(connection, name)
    database.close()
    if not gone:
        refuse(f"NAME: there is no token {name!r}")
    say(f"{name} is revoked")


def _settings(file: Path | None, flags: dict[str, Any] | None = None) -> Settings:
    try:
        return config.load(file, os.environ, flags)
    except BadSettings as error:
        refuse(str(error))


def _database(file: Path | None, migrate: bool | None = None) -> Database:
    found = _settings(file).database
    try:
        return connect(found.url, found.migrate if migrate is None else migrate)
    except BadDatabase as error:
        refuse(str(error))
