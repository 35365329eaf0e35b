"""`gsid demo`: a simulated network with its collectors, a mistake after a while, the console."""

import signal
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gsid_service.config import BadSettings
from gsid_service.terminal import OUT, refuse, say

if TYPE_CHECKING:
    from gsid_service.demo.stage import Played
    from gsid_service.simulate.topologies import Topology

NOT_FOUND = 1  # the exit code where a mistake was not found
ROUTERS_AT_LEAST = 10
EVERY_ONCE = 10.0  # seconds: with --once nobody looks around
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def demo(
    topology: Annotated[
        str, typer.Option(help="A real topology; gsid topologies lists them.")
    ] = "topozoo/Abilene",
    seed: Annotated[int, typer.Option(help="The same seed plays the same.")] = 0,
    mistake_after: Annotated[
        float, typer.Option(min=1, help="Seconds until the first mistake.")
    ] = 20,
    every: Annotated[float, typer.Option(min=20, help="Seconds from mistake to mistake.")] = 60,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="By default 8080, or any that is free.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="URL of a database that stays; by default one that goes.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Play against the service at this URL, and start none.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="The collectors' token there, of the role ingest.")
    ] = None,
    operator_token_file: Annotated[
        Path | None, typer.Option(help="The operator's token there, of the role operate.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="End after the first mistake; 1 if it is not found.")
    ] = False,
) -> None:
    """Watch a simulated network: changes that were meant, and mistakes that are found.

    A real service on loopback, and collectors at the reflectors and gateways that push what they
    see. Ctrl-C ends all of it.
    """
    say(
        f"playing against {against}, which has a minute to answer"
        if against
        else "starting the service"
    )
    chosen = _topology(topology)
    tokens = [_secret(file) for file in (token_file, operator_token_file)]
    if against and (port or database):
        refuse("--against: no service is started, so there is no --port and no --database")
    from gsid_service.demo.play import NothingToShow
    from gsid_service.demo.remote import Remote, Unwilling
    from gsid_service.demo.serving import serving
    from gsid_service.demo.stage import perform

    name = topology.rpartition("/")[2].lower() + (f"-{seed}" if seed else "")
    for number in ENDINGS:
        signal.signal(number, _interrupt)
    try:
        with nullcontext(against) if against else serving(port, database) as url:
            remote, pace = Remote(url, name, *tokens), EVERY_ONCE if once else every
            played = perform(remote, chosen, seed, mistake_after, pace, _tell)
            raise typer.Exit(0 if _ends_well(played, once) else NOT_FOUND)
    except (BadSettings, NothingToShow, Unwilling) as error:
        refuse(str(error))
    except KeyboardInterrupt:
        say("ended")


def _topology(name: str) -> "Topology":
    from gsid_service.simulate.topologies import real

    try:
        found = real(name)
    except KeyError as error:
        refuse(f"--topology: {error.args[0]}")
    if found.routers < ROUTERS_AT_LEAST:
        refuse(f"--topology: {name} has {found.routers} routers, fewer than {ROUTERS_AT_LEAST}")
    return found


def _secret(file: Path | None) -> str | None:
    return file.read_text().strip() if file else None


def _ends_well(played: "Iterable[Played]", once: bool) -> bool:
    """Whether the first mistake was found and resolved; without `once`, never known."""
    from gsid_service.demo.play import Kind

    for act, well in played:
        if once and act.kind is Kind.MISTAKE and not well:
            return False
        if once and act.kind is Kind.REPAIRED:
            return well
    return True


def _interrupt(*_: object) -> NoReturn:
    """End, and do not let a second Ctrl-C disturb that."""
    for number in ENDINGS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _tell(line: str) -> None:
    OUT.print(line, soft_wrap=True)
