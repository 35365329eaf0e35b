"""The command line: `gsid --help` lists what there is."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import track

from gsid_service.command import client, collect, daemon, demo, notices, research
from gsid_service.terminal import BAD_INPUT, ERR, OUT, AsJson, print_json, print_rows, refuse, say

if TYPE_CHECKING:
    from gsid_service.simulate.forwarding import Forwarding

app = typer.Typer(
    help="Finds configuration mistakes that are inside every valid range, "
    "and proves what they break.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo.demo)
app.command()(daemon.serve)
app.command()(collect.collect)
app.command()(daemon.settings)
app.command()(daemon.migrate)
app.command()(daemon.backup)
app.command()(daemon.restore)
app.add_typer(daemon.token, name="token")
for study in (research.train, research.evaluate, research.study):
    app.command()(study)
app.add_typer(research.bench, name="bench")
for speak in (client.push, client.check, client.status, client.alerts, client.ack):
    app.command()(speak)
app.add_typer(client.baseline, name="baseline")
app.add_typer(client.intents, name="intents")
app.add_typer(client.change, name="change")
app.add_typer(notices.receivers, name="receivers")
app.add_typer(notices.deliveries, name="deliveries")
app.add_typer(notices.silences, name="silences")
app.add_typer(notices.maintenance, name="maintenance")

SnapshotFile = Annotated[Path, typer.Argument(help="A snapshot (JSON), or - for standard input.")]


def _print_version(wanted: bool) -> None:
    from importlib.metadata import version

    if wanted:
        OUT.print(version("gsid-service"))
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """What all commands share."""


@app.command()
def simulate(
    split: Annotated[
        str,
        typer.Option(
            help="Data set: standard, larger, real, or operations-standard, -larger, -real "
            "(operations is short for operations-standard)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="New folder for the cases, a numbered folder each.")],
    count: Annotated[int, typer.Option(min=1, help="How many cases.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed makes the same cases.")] = 0,
    rate: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of values replaced; 0.4, and not for operations."),
    ] = None,
    topology: Annotated[
        str | None, typer.Option(help="A real topology, such as topozoo/Abilene.")
    ] = None,
) -> None:
    """Write simulated networks: snapshot, intents, labels, and for operations the baseline."""
    import random

    from gsid_service.evaluate.documents import write_folder
    from gsid_service.evaluate.splits import SPLITS
    from gsid_service.simulate import topologies

    name = "operations-standard" if split == "operations" else split
    if name not in SPLITS:
        refuse(f"--split: unknown split {split!r}; known: operations, {', '.join(SPLITS)}")
    if rate is not None and name.startswith("operations"):
        refuse("--rate: operations cases have 0 to 4 mistakes, not a rate")
    if topology is not None and topology not in topologies.names():
        refuse(f"--topology: no topology named {topology!r}; see `gsid topologies`")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        refuse(f"--out: {out} exists and is not an empty folder")
    chosen = topologies.real(topology) if topology else None
    for index in track(range(count), "simulating", console=ERR, disable=not ERR.is_terminal):
        case = SPLITS[name].case(f"seed {seed}", index, chosen)
        if case.baseline is None:
            faults = random.Random(f"gsid faults {seed} {index}")
            case = case.with_faults(research.PAPER_RATE if rate is None else rate, faults)
        write_folder(case, out / f"{index:04}", f"{name}-{seed}-{index}")
    say(f"{count} case{'s' * (count > 1)} of {name} in {out}")


@app.command()
def topologies(as_json: AsJson = False) -> None:
    """List the real topologies that `simulate --topology` takes."""
    from gsid_service.simulate.topologies import names, real

    rows = [
        {"name": name, "routers": real(name).routers, "links": len(real(name).links)}
        for name in names()
    ]
    print_rows(rows, as_json)


@app.command()
def forwarding(
    file: SnapshotFile,
    as_json: AsJson = False,
    always_compare_med: Annotated[
        bool, typer.Option(help="Compare med across neighbouring ASes too.")
    ] = False,
    equal: Annotated[
        bool, typer.Option(help="List all equal next hops, not only the first of them.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="An earlier snapshot: show only what differs from it.")
    ] = None,
) -> None:
    """Show the next hops that a snapshot's values lead to.

    JSON is {network: {router: next hop}}, the next hop null where a router cannot reach the
    network; with --equal it is a list, empty there. A network whose routers have no stable outcome,
    or more than one, has null in place of its routers. With --against, JSON is a list of
    {network, router, before, after}, and all equal next hops count.
    """
    if str(file) == str(against) == "-":
        refuse("--against: standard input cannot be both snapshots")
    state = _forwarding_state(file, always_compare_med)
    if against is not None:
        before = _forwarding_state(against, always_compare_med)
        rows = differences(before.by_name(equal=True), state.by_name(equal=True))
        print_rows(rows if as_json else _readable(rows), as_json)
    elif as_json:
        print_json(state.by_name(equal))
    else:
        print_rows(_readable(_next_hops(state.by_name(equal))), as_json=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of a snapshot."""
    from gsid_service.ingest.json_schema import json_schema

    print_json(json_schema())


def _forwarding_state(file: Path, always_compare_med: bool) -> "Forwarding":
    """Read a snapshot and simulate it; says what the reader should know of the result."""
    from gsid_service.ingest.problems import InvalidSnapshot
    from gsid_service.ingest.wire import parse_snapshot
    from gsid_service.simulate.forwarding import forward
    from gsid_service.simulate.plane import build

    try:
        snapshot = parse_snapshot(
            sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        )
    except InvalidSnapshot as error:
        refuse(f"{file}: not a snapshot\n{error}")
    if not snapshot.complete:
        say(f"{file}: not complete, and simulated as if this were the whole network")
    state = forward(build(snapshot.entities, snapshot.facts), always_compare_med)
    for network, outcome in state.unsettled().items():
        say(f"{file}: {network} has {outcome.value}")
    return state


Hops = dict[str, dict[str, Any] | None]
UNDETERMINED = "undetermined"
ABSENT = "absent"


def _next_hops(table: Hops) -> list[dict[str, Any]]:
    return [
        {"network": network, "router": router, "next hop": hop}
        for network, hops in table.items()
        for router, hop in ({"": UNDETERMINED} if hops is None else hops).items()
    ]


def differences(before: Hops, after: Hops) -> list[dict[str, Any]]:
    """Every (network, router) whose next hops differ, also where one side has none of it."""
    rows = []
    for network in dict.fromkeys([*before, *after]):
        routers = [*(before.get(network) or {}), *(after.get(network) or {})]
        for router in dict.fromkeys(routers):
            old, new = _hops(before, network, router), _hops(after, network, router)
            if old != new:
                rows.append({"network": network, "router": router, "before": old, "after": new})
    return rows


def _readable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with next hops as a person reads them."""
    return [
        {
            name: (", ".join(hops) if isinstance(hops, list) else hops) or "unreachable"
            if name in {"next hop", "before", "after"}
            else hops
            for name, hops in row.items()
        }
        for row in rows
    ]


def _hops(table: Hops, network: str, router: str) -> Any:
    hops = table.get(network, {})
    return UNDETERMINED if hops is None else hops.get(router, ABSENT)


def main() -> None:
    try:
        app()
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        ERR.print(f"{named}{error.strerror or error}", style="red", soft_wrap=True)
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
