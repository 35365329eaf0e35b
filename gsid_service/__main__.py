"""The command line: `gsid --help` lists what there is."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

app = typer.Typer(
    help="Finds configuration mistakes that are inside every valid range, "
    "and proves what they break.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
bench = typer.Typer(
    help="Measure this machine's speed, each figure against something named, in one run.",
    no_args_is_help=True,
)
app.add_typer(bench, name="bench")

OUT = Console()
ERR = Console(stderr=True)
BAD_INPUT = 2

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
SnapshotFile = Annotated[Path, typer.Argument(help="A snapshot (JSON), or - for standard input.")]


@app.command()
def simulate(
    split: Annotated[
        str,
        typer.Option(help="Data set: standard, larger, real, or operations-… of one of these."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the cases, one numbered folder each.")],
    count: Annotated[int, typer.Option(min=1, help="How many cases.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed makes the same cases.")] = 0,
    rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of values replaced (not for operations).")
    ] = 0.4,
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
        _refuse(f"--split: unknown split {split!r}; known: operations, {', '.join(SPLITS)}")
    if topology is not None and topology not in topologies.names():
        _refuse(f"--topology: no topology named {topology!r}; see `gsid topologies`")
    chosen = topologies.real(topology) if topology else None
    for index in track(range(count), "simulating", console=ERR, disable=not ERR.is_terminal):
        case = SPLITS[name].case(f"seed {seed}", index, chosen)
        if case.baseline is None:
            case = case.with_faults(rate, random.Random(f"gsid faults {seed} {index}"))
        write_folder(case, out / f"{index:04}", f"{name}-{seed}-{index}")
    ERR.print(f"{count} cases of {name} in {out}", highlight=False)


@app.command()
def topologies(as_json: AsJson = False) -> None:
    """List the real topologies that `simulate --topology` takes."""
    from gsid_service.simulate.topologies import names, real

    rows = [
        {"name": name, "routers": real(name).routers, "links": len(real(name).links)}
        for name in names()
    ]
    _print(rows, as_json)


@app.command()
def forwarding(
    file: SnapshotFile,
    as_json: AsJson = False,
    always_compare_med: Annotated[
        bool, typer.Option(help="Compare med across neighbouring ASes too.")
    ] = False,
    equal: Annotated[
        bool, typer.Option(help="List all equal next hops, not only the lowest-numbered.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="Another snapshot: show only what differs from it.")
    ] = None,
) -> None:
    """Show the next hops that a snapshot's values lead to.

    JSON is {network: {router: next hop}}, with null for a router that cannot reach the network,
    and null for a network whose routers have no stable outcome, or more than one.
    """
    table = _next_hops(file, always_compare_med, equal)
    if against is None:
        rows = [
            {"network": network, "router": router, "next hop": _text(hop)}
            for network, hops in table.items()
            for router, hop in (hops or {}).items()
        ]
    else:
        before = _next_hops(against, always_compare_med, equal)
        rows = _differences(before, table)
        table = _only(table, rows)
    if as_json:
        OUT.print_json(data=table)
    elif rows:
        _print(rows, as_json=False)
    else:
        OUT.print("nothing moved" if against else "no network has a route", highlight=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of a snapshot."""
    from gsid_service.ingest.wire import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=1) + "\n")


@bench.command("simulate")
def bench_simulate(as_json: AsJson = False) -> None:
    """Making networks, and forwarding of large ones, against the same work with networkx."""
    from gsid_service.bench.simulate import measure

    rows = [row._asdict() for row in track(measure(), "measuring", 4, console=ERR)]
    _print(rows, as_json)


Hops = dict[str, dict[str, Any] | None]


def _next_hops(file: Path, always_compare_med: bool, equal: bool) -> Hops:
    """{network: {router: next hop}}; says which networks have not one outcome."""
    from gsid_service.ingest.wire import InvalidSnapshot, parse_snapshot
    from gsid_service.simulate.forwarding import forward
    from gsid_service.simulate.plane import build

    try:
        document = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        snapshot = parse_snapshot(document)
    except OSError as error:
        _refuse(f"{file}: {error.strerror}")
    except InvalidSnapshot as error:
        _refuse(f"{file}: not a snapshot\n{error}")
    state = forward(build(snapshot.entities, snapshot.facts), always_compare_med)
    for network, outcome in state.unsettled().items():
        ERR.print(f"{file}: {network} has {outcome.value}", style="yellow", highlight=False)
    return dict(state.by_name(equal))


def _differences(before: Hops, after: Hops) -> list[dict[str, str]]:
    return [
        {"network": network, "router": router, "before": _text(old), "after": _text(new)}
        for network, hops in after.items()
        for router, new in (hops or {}).items()
        if (old := (before.get(network) or {}).get(router)) != new
    ]


def _only(table: Hops, rows: list[dict[str, str]]) -> Hops:
    kept = {(row["network"], row["router"]) for row in rows}
    return {
        network: {router: hop for router, hop in (hops or {}).items() if (network, router) in kept}
        for network, hops in table.items()
        if any(network == moved for moved, _ in kept)
    }


def _text(hop: Any) -> str:
    if isinstance(hop, list):
        return ", ".join(hop) or "unreachable"
    return hop or "unreachable"


def _print(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Rows as JSON, or as a table whose columns are the keys of the first."""
    if as_json:
        OUT.print_json(data=rows)
        return
    table = Table(*(rows[0] if rows else ()))
    for row in rows:
        table.add_row(*(f"{v:,.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    OUT.print(table)


def _refuse(message: str) -> NoReturn:
    ERR.print(message, style="red", highlight=False, markup=False)
    raise typer.Exit(BAD_INPUT)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
