"""Commands beside the daemon: train, evaluate, study and bench."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import track

from gsid_service.config import Model
from gsid_service.terminal import ERR, AsJson, print_json, print_rows, refuse, say

if TYPE_CHECKING:
    from gsid_service.evaluate.evaluation import Detector

PAPER_RATE = 0.4
VERIFIED = "+verifier"  # after the name of a method
MODEL = Model().place

bench = typer.Typer(
    help="Measure this machine's speed, each figure against something named, in one run.",
    no_args_is_help=True,
)


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

    from gsid_service import drift
    from gsid_service.score.scorer import Scorer, save, use_cores
    from gsid_service.train.calibrating import calibrate, spread
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
    name = MODEL.name if plan == "shipped" else plan
    calibration = calibrate(model)
    notes = {
        "trained": {"plan": plan, "seed": seed},
        drift.KEY: spread(Scorer(name, model, calibration)),
    }
    save(out / "model", name, model, calibration, notes)
    say(f"the model is in {out / 'model'}")


def _report_epoch(epoch: dict[str, Any]) -> None:
    parts = [f"{n} loss {epoch['loss'][n]:.3f} F1 {epoch['f1'][n]:.3f}" for n in epoch["loss"]]
    say(f"step {epoch['step']:>6}  {epoch['seconds']:>6.0f} s  " + " · ".join(parts))


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
        str,
        typer.Option(
            help="Among gsid, verifier, gsid+verifier, diff, sibling, and folders of models; "
            "comma-separated."
        ),
    ] = "gsid+verifier,gsid,verifier,diff,sibling",
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
    pages: Annotated[
        bool,
        typer.Option("--pages", help="Of methods with the verifier, what the service would page."),
    ] = False,
    open_score: Annotated[
        float | None,
        typer.Option(min=0.35, max=1, help="For --pages: from this score on, instead of 0.65."),
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
    if pages and setting != [OPERATIONS]:
        refuse(f"--pages: needs --setting {OPERATIONS}, and that alone")
    if open_score is not None and not pages:
        refuse("--open-score: needs --pages")
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
    if pages:
        print_rows(_pages(split, detectors, open_score), as_json)
        return
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


def _pages(
    split: list[str], detectors: "dict[str, Detector]", open_score: float | None
) -> list[dict[str, Any]]:
    from dataclasses import replace

    from gsid_service.evaluate.pages import pages
    from gsid_service.evaluate.splits import SPLITS, TEST, load
    from gsid_service.evaluate.verified import NO_HURRY, Verified

    proving = {name: d.detector for name, d in detectors.items() if isinstance(d, Verified)}
    if not proving:
        refuse("--pages: none of the methods has the verifier")
    limits = NO_HURRY if open_score is None else replace(NO_HURRY, certain=open_score)
    runs = [(name, method) for name in split for method in proving]
    return [
        {"split": name, "method": method}
        | pages(load(SPLITS[f"operations-{name}"], TEST), proving[method], limits).document()
        for name, method in track(runs, "diagnosing", console=ERR, disable=not ERR.is_terminal)
    ]


def _detectors(methods: str, model: Path) -> "dict[str, Detector]":
    from gsid_service.evaluate.verified import Verified, verifier
    from gsid_service.score.rivals import diff, sibling
    from gsid_service.score.scorer import BadModel, load, use_cores

    use_cores(1)
    known: dict[str, Detector] = {"diff": diff, "sibling": sibling, "verifier": verifier}
    found: dict[str, Detector] = {}
    for name in map(str.strip, methods.split(",")):
        plain = name.removesuffix(VERIFIED)
        if plain not in known:
            try:
                known[plain] = load(model if plain == "gsid" else Path(plain))
            except BadModel as error:
                refuse(f"--methods: {error}")
        found[name] = known[plain] if plain == name else Verified(known[plain])
    return found


def study(
    out: Annotated[Path, typer.Option(help="Folder of the runs; those that were begun go on.")],
    figures: Annotated[Path, typer.Option(help="Folder for the plots and study.json.")],
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, a core each.")] = 2,
    seeds: Annotated[int, typer.Option(min=1, max=3, help="How many of the three seeds.")] = 3,
    steps: Annotated[int | None, typer.Option(min=1, help="Fewer, to try it out.")] = None,
) -> None:
    """Compare GSID with the paper's rivals, and vary its shape: 36 training runs, hours of work.

    What was found is kept in study.json beside the plots: runs that are in it are not done again,
    and a study that was stopped goes on where it was.
    """
    from gsid_service.train import study as runs

    plots = _plots()
    wanted = list(runs.runs(runs.SEEDS[:seeds]))
    if steps is not None:
        wanted = [runs.shortened(run, steps) for run in wanted]
    record = figures / "study.json"
    kept = json.loads(record.read_text())["runs"] if record.exists() else []
    found = runs.in_order(kept, wanted)
    left = [run for run in wanted if not any(map(run.is_same, found))]
    say(f"{len(found)} of {len(wanted)} runs were done before")
    figures.mkdir(parents=True, exist_ok=True)
    diff = runs.unlearned()
    try:
        for run in runs.study(out, left, jobs):
            found = runs.in_order([*found, run], wanted)
            record.write_text(json.dumps({"runs": found, "diff": diff}) + "\n")
            plots.study(found, diff, figures)
            last = ", ".join(f"{name} {f1:.3f}" for name, f1 in run["curve"][-1]["f1"].items())
            say(
                f"{len(found)} of {len(wanted)}: {run['method']} at {run['rate']:.0%}, "
                f"seed {run['seed']}: F1 {last}"
            )
    except ValueError as error:
        refuse(f"--out: {error}")
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


@bench.command("verify")
def bench_verify(as_json: AsJson = False) -> None:
    """Proving what changed values break, against computing every state anew."""
    _bench("verify", as_json)


@bench.command("serve")
def bench_serve(
    hour: Annotated[
        bool, typer.Option("--hour", help="Memory alone, for an hour at one snapshot a second.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The service under load: acknowledgements, time to an alert, memory."""
    _bench("serve", as_json, hour=hour)


@bench.command("large")
def bench_large(
    facts: Annotated[int, typer.Option(min=100, help="About how many facts.")] = 100_000,
    only_round: Annotated[
        bool, typer.Option(help="One round alone, without requests and a store.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """One large network: scored first, after one value changed, and anew; and memory."""
    _bench("large", as_json, facts=facts, only_round=only_round)


@bench.command("notify")
def bench_notify(as_json: AsJson = False) -> None:
    """Deliveries a second with 1, 10 and 50 receivers, and memory with 100,000 pending."""
    _bench("notify", as_json)


@bench.command("cluster")
def bench_cluster(as_json: AsJson = False) -> None:
    """Snapshots scored a second by 1 to 3 scorers on PostgreSQL, and as networks grow."""
    _bench("cluster", as_json)


@bench.command("collect")
def bench_collect(as_json: AsJson = False) -> None:
    """A collector's start-up and memory."""
    _bench("collect", as_json)


@bench.command("classes")
def bench_classes(as_json: AsJson = False) -> None:
    """A collector's classes of prefixes: 1,000,000 of them at 4 gateways."""
    _bench("classes", as_json)


def _bench(name: str, as_json: bool, **options: Any) -> None:
    from importlib import import_module

    try:
        measure = import_module(f"gsid_service.bench.{name}").measure
    except ModuleNotFoundError as missing:
        refuse(f"gsid bench needs {missing.name}, which comes with gsid-service[dev]")
    figures = track(measure(**options), "measuring", 4, console=ERR, disable=not ERR.is_terminal)
    print_rows([figure._asdict() for figure in figures], as_json)
