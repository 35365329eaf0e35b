"""The command line: `gsid --help` lists what there is."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import track

from gsid_service.command import client, daemon
from gsid_service.terminal import BAD_INPUT, ERR, OUT, print_json, print_rows, refuse, say

if TYPE_CHECKING:
    from gsid_service.evaluate.evaluation import Detector
    from gsid_service.simulate.forwarding import Forwarding

PAPER_RATE = 0.4
MODEL = Path("models/gsid-1")

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
app.command()(daemon.serve)
app.command()(daemon.settings)
app.command()(daemon.migrate)
app.add_typer(daemon.token, name="token")
for speak in (client.push, client.status, client.alerts, client.ack):
    app.command()(speak)
app.add_typer(client.baseline, name="baseline")
app.add_typer(client.intents, name="intents")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
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
            case = case.with_faults(PAPER_RATE if rate is None else rate, faults)
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


@app.command()
def train(
    plan: Annotated[
        str,
        typer.Argument(
            help="What to train: shipped, or gsid, lkp-gat, lkp-ida, "
            "ace-gat, ace-gcn as the comparison has them."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the run; one that was begun goes on.")],
    seed: Annotated[int, typer.Option(help="Of the weights and of the data's order.")] = 0,
    steps: Annotated[int | None, typer.Option(min=1, help="Instead of the plan's.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Cores for the arithmetic.")] = 1,
) -> None:
    """Train a model, or go on with a run that was stopped."""
    from dataclasses import replace

    from gsid_service.score.scorer import save, use_cores
    from gsid_service.train.calibrating import calibrate
    from gsid_service.train.plans import PLANS
    from gsid_service.train.training import train as run

    if plan not in PLANS:
        refuse(f"unknown plan {plan!r}; known: {', '.join(PLANS)}")
    use_cores(threads)
    chosen = replace(PLANS[plan], seed=seed)
    if steps is not None:
        chosen = replace(chosen, steps=steps)
    try:
        model = run(chosen, out, report=_report_epoch)
    except ValueError as error:
        refuse(f"--out: {error}")
    say("calibrating")
    save(out / "model", plan, model, calibrate(model), {"trained": {"plan": plan, "seed": seed}})
    say(f"the model is in {out / 'model'}")


def _report_epoch(epoch: dict[str, Any]) -> None:
    parts = [f"{n} loss {epoch['loss'][n]:.3f} F1 {epoch['f1'][n]:.3f}" for n in epoch["loss"]]
    say(f"step {epoch['step']:>6}  {epoch['seconds']:>6.0f} s  " + " · ".join(parts))


@app.command()
def evaluate(
    setting: Annotated[
        list[str], typer.Option(help="snapshot, reference or operations; may be repeated.")
    ],
    split: Annotated[
        list[str] | None, typer.Option(help="standard, larger or real; may be repeated.")
    ] = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="Share of values replaced; may be repeated."),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Among gsid, diff, sibling, and folders of models; comma-separated.")
    ] = "gsid,diff,sibling",
    seeds: Annotated[str, typer.Option(help="Each draws other faults; comma-separated.")] = "0",
    scope: Annotated[
        list[str] | None,
        typer.Option(help="all, harmful (slow at high rates), or both, which is the default."),
    ] = None,
    model: Annotated[Path, typer.Option(help="Folder of the model that gsid stands for.")] = MODEL,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw F1 by rate, data set and parameter into this .svg or .png."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure detectors on the frozen test networks, which training never sees."""
    from gsid_service.evaluate.evaluation import SCOPES, summary
    from gsid_service.evaluate.evaluation import evaluate as run
    from gsid_service.evaluate.settings import OPERATIONS, SETTINGS
    from gsid_service.evaluate.splits import DATA_SETS

    split, rate, scope = split or ["standard"], rate or [PAPER_RATE], scope or list(SCOPES)
    if plot is not None:
        if plot.suffix not in {".svg", ".png"}:
            refuse(f"--plot: {plot} ends in neither .svg nor .png")
        if setting == [OPERATIONS]:
            refuse("--plot: operations cases have no rate to draw against")
        _plots()
    for option, given, known in (
        ("--setting", setting, SETTINGS),
        ("--split", split, tuple(DATA_SETS)),
        ("--scope", scope, SCOPES),
    ):
        for name in given:
            if name not in known:
                refuse(f"{option}: {name!r} is none of {', '.join(known)}")
    if not all(seed.strip().isdecimal() for seed in seeds.split(",")):
        refuse(f"--seeds: {seeds!r} is not a list of whole numbers")
    detectors = _detectors(methods, model)
    runs = [
        (wanted, name, share, int(seed))
        for wanted in setting
        for name in split
        # Operations cases bring their anomalies along: no rate and no seed to vary.
        for share in (rate[:1] if wanted == OPERATIONS else rate)
        for seed in (seeds.split(",")[:1] if wanted == OPERATIONS else seeds.split(","))
    ]
    rows = [
        row
        for arguments in track(runs, "evaluating", console=ERR, disable=not ERR.is_terminal)
        for row in run(*arguments, detectors, scope)
    ]
    if plot is not None:
        shown = [row.document() for row in rows if row.scope == scope[0] and row.rate is not None]
        _plots().by_rate(shown, plot)
        say(f"the plot is in {plot}")
    if as_json:
        print_json([row.document() for row in rows])
        return
    titles = ("setting", "split", "rate", "method", "parameter", "scope")
    table = [
        dict(zip(titles, key, strict=True))
        | {name: f"{mean:.3f} ± {deviation:.3f}" for name, (mean, deviation) in figures.items()}
        for key, figures in summary(rows).items()
    ]
    print_rows(table, as_json=False)


def _detectors(methods: str, model: Path) -> "dict[str, Detector]":
    from gsid_service.score.rivals import diff, sibling
    from gsid_service.score.scorer import BadModel, load, use_cores

    use_cores(1)
    known: dict[str, Detector] = {"diff": diff, "sibling": sibling}
    found: dict[str, Detector] = {}
    for name in map(str.strip, methods.split(",")):
        if name in known:
            found[name] = known[name]
            continue
        folder = model if name == "gsid" else Path(name)
        try:
            found[name] = load(folder)
        except BadModel as error:
            refuse(f"--methods: {error}")
    return found


@app.command()
def study(
    out: Annotated[Path, typer.Option(help="Folder of the runs; those that were begun go on.")],
    figures: Annotated[Path, typer.Option(help="Folder for the plots and study.json.")],
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, a core each.")] = 2,
    seeds: Annotated[int, typer.Option(min=1, max=3, help="How many of the three seeds.")] = 3,
    steps: Annotated[int | None, typer.Option(min=1, help="Fewer, to try it out.")] = None,
) -> None:
    """Compare GSID with the paper's rivals, and vary its shape: 37 training runs, hours of work."""
    from gsid_service.train import study as runs

    plots = _plots()
    wanted = list(runs.runs(runs.SEEDS[:seeds]))
    if steps is not None:
        wanted = [runs.shortened(run, steps) for run in wanted]
    found = []
    try:
        for number, run in enumerate(runs.study(out, wanted, jobs), 1):
            found.append(run)
            last = ", ".join(f"{name} {f1:.3f}" for name, f1 in run["curve"][-1]["f1"].items())
            say(
                f"{number} of {len(wanted)}: {run['method']} at {run['rate']:.0%}, "
                f"seed {run['seed']}: F1 {last}"
            )
    except ValueError as error:
        refuse(f"--out: {error}")
    say("measuring diff")
    plots.study(runs.in_order(found, wanted), runs.unlearned(), figures)
    say(f"the plots and study.json are in {figures}")


def _plots() -> Any:
    try:
        from gsid_service.evaluate import plots
    except ModuleNotFoundError as missing:
        refuse(f"plots need {missing.name}, which comes with gsid-service[dev]")
    return plots


@bench.command("simulate")
def bench_simulate(as_json: AsJson = False) -> None:
    """Making networks, and forwarding of large ones, against the same work with networkx."""
    _bench("simulate", as_json)


@bench.command("score")
def bench_score(as_json: AsJson = False) -> None:
    """The model, against the same function from stock torch-geometric layers."""
    _bench("score", as_json)


@bench.command("serve")
def bench_serve(as_json: AsJson = False) -> None:
    """The service under load: acknowledgements, time to an alert, memory."""
    _bench("serve", as_json)


def _bench(name: str, as_json: bool) -> None:
    from importlib import import_module

    try:
        measure = import_module(f"gsid_service.bench.{name}").measure
    except ModuleNotFoundError as missing:
        refuse(f"gsid bench needs {missing.name}, which comes with gsid-service[dev]")
    figures = track(measure(), "measuring", 4, console=ERR, disable=not ERR.is_terminal)
    print_rows([figure._asdict() for figure in figures], as_json)


def _forwarding_state(file: Path, always_compare_med: bool) -> "Forwarding":
    """Read a snapshot and simulate it; says what the reader should know of the result."""
    from gsid_service.ingest.wire import InvalidSnapshot, parse_snapshot
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
