"""The study behind docs/results.md: the five methods compared, and what the shape of GSID does.

Every run gets the same budget in the reference setting, without reverts, which the paper does not
have. The comparison has three seeds, the shapes have one. Each is a folder of its own that training
resumes and that its figures are kept in, so a study that was stopped goes on where it was.
"""

import json
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from gsid_service.evaluate import evaluation, splits
from gsid_service.evaluate.evaluation import ALL, Row, evaluate
from gsid_service.evaluate.settings import REFERENCE, Sample
from gsid_service.score.calibration import Calibration
from gsid_service.score.gsid import Shape
from gsid_service.score.rivals import diff
from gsid_service.score.scorer import Scorer, use_cores
from gsid_service.train.diet import Diet
from gsid_service.train.plans import COMPARED
from gsid_service.train.training import Plan, train

SEEDS = (0, 1, 2)
RATES = (0.4, 0.2)  # that are trained on
SHAPES = {
    "n = 128": Shape(),
    "n = 64": Shape(width=64),
    "n = 256": Shape(width=256),
    "H = 4": Shape(heads=4),
    "H = 16": Shape(heads=16),
    "L = 1": Shape(layers=1),
    "L = 4": Shape(layers=4),
}
FIGURES = "figures.json"


class Run(NamedTuple):
    """One model to train, and the data sets and rates on which it is then measured."""

    method: str
    plan: Plan
    measured: tuple[tuple[str, float], ...]

    @property
    def folder(self) -> str:
        rate, seed = round(100 * self.plan.diet.rate), self.plan.seed
        return f"{self.method.replace(' = ', '')}-{rate}-{seed}"


def runs(seeds: Sequence[int] = SEEDS) -> Iterator[Run]:
    """All runs, one seed after the other, so that a study cut short has seen every method."""
    for seed in seeds:
        for rate in RATES:
            # The rate that the paper shows in full is measured at all rates.
            tested = splits.RATES if rate == RATES[0] else (rate,)
            measured = tuple((name, r) for name in splits.DATA_SETS for r in tested)
            for method, shape in COMPARED.items():
                yield Run(method, Plan(shape, Diet(rate=rate), seed=seed), measured)
        if seed == seeds[0]:
            for name, shape in SHAPES.items():
                yield Run(name, Plan(shape, seed=seed), (("standard", RATES[0]),))


def study(out: Path, wanted: Sequence[Run], jobs: int) -> Iterator[dict[str, Any]]:
    """The figures of each run as it is done; runs that were done before come first."""
    known = {run: found for run in wanted if (found := _figures(out / run.folder)) is not None}
    yield from known.values()
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        pending = [pool.submit(finish, run, out / run.folder) for run in wanted if run not in known]
        try:
            for done in as_completed(pending):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def finish(run: Run, folder: Path) -> dict[str, Any]:
    """Train what is left to train, then measure."""
    use_cores(1)
    model = train(run.plan, folder)
    scorer = Scorer(run.method, model, Calibration.none())
    rows = [row for where in run.measured for row in _measure(run.method, scorer, *where)]
    state = json.loads((folder / "training.json").read_text())
    document = {
        "method": run.method,
        "rate": run.plan.diet.rate,
        "seed": run.plan.seed,
        "curve": state["progress"]["curve"],
        "rows": [row.document() for row in rows],
    }
    (folder / "figures.new").write_text(json.dumps(document))
    (folder / "figures.new").replace(folder / FIGURES)
    return document


def unlearned() -> list[dict[str, Any]]:
    """The rows of `diff` on what the comparison is measured on."""
    where = [(name, rate) for name in splits.DATA_SETS for rate in splits.RATES]
    return [row.document() for name, rate in where for row in _measure("diff", diff, name, rate)]


def in_order(figures: Sequence[dict[str, Any]], wanted: Sequence[Run]) -> list[dict[str, Any]]:
    """The figures in the order of the runs, whichever was done first."""
    found = {(f["method"], f["rate"], f["seed"]): f for f in figures}
    return [found[run.method, run.plan.diet.rate, run.plan.seed] for run in wanted]


def shortened(run: Run, steps: int) -> Run:
    """The same with fewer steps, to try the study out."""
    return run._replace(plan=replace(run.plan, steps=steps))


def _measure(method: str, detector: evaluation.Detector, split: str, rate: float) -> Iterator[Row]:
    shown = _samples(split, rate)
    return evaluate(REFERENCE, split, rate, 0, {method: detector}, (ALL,), shown)


@lru_cache(maxsize=len(splits.RATES) * len(splits.DATA_SETS))
def _samples(split: str, rate: float) -> list[Sample]:
    return list(evaluation.samples(REFERENCE, split, rate, 0, try_reverts=False))


def _figures(folder: Path) -> dict[str, Any] | None:
    try:
        document: dict[str, Any] = json.loads((folder / FIGURES).read_text())
    except FileNotFoundError:
        return None
    return document
