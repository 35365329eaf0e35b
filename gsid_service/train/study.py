"""The study behind docs/results.md: the five methods compared, and what the shape of GSID does.

Every run gets the same budget in the reference setting, without reverts, which the paper does not
have. The comparison has three seeds, the shapes have one. The methods of a seed and a rate learn
from the same batches, each in a folder of its own; what was found is kept with the plots, so a
study that was stopped goes on where it was.
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
from gsid_service.score.gsid import GSID
from gsid_service.score.rivals import diff
from gsid_service.score.scorer import Scorer, use_cores
from gsid_service.train.diet import Diet
from gsid_service.train.plans import COMPARED
from gsid_service.train.training import Plan, train_together

SEEDS = (0, 1, 2)
RATES = (0.4, 0.2)  # that are trained on
BASE = COMPARED["gsid"]  # n = 64, H = 8, L = 2; each shape differs from it in one thing
SHAPES = {
    "H = 4": replace(BASE, heads=4),
    "H = 16": replace(BASE, heads=16),
    "L = 1": replace(BASE, layers=1),
    "L = 4": replace(BASE, layers=4),
    "n = 128": replace(BASE, width=128),
    "n = 256": replace(BASE, width=256),
}
SHOWN = ("split", "rate", "method", "parameter", "precision", "recall", "f1", "auc")
Done = dict[str, Any]


class Run(NamedTuple):
    """One model to train, and the data sets and rates on which it is then measured."""

    method: str
    plan: Plan
    measured: tuple[tuple[str, float], ...]

    @property
    def folder(self) -> str:
        rate, seed = round(100 * self.plan.diet.rate), self.plan.seed
        return f"{self.method.replace(' = ', '')}-{rate}-{seed}"

    def is_same(self, done: Done) -> bool:
        plan = self.plan
        mine = self.method, plan.diet.rate, plan.seed, plan.steps, splits.EDITION
        theirs = (done.get(name) for name in ("method", "rate", "seed", "steps", "edition"))
        return mine == tuple(theirs)


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


def study(out: Path, wanted: Sequence[Run], jobs: int) -> Iterator[Done]:
    """The figures of each run as it is done; those of the same batches learn together."""
    together: dict[object, list[Run]] = {}
    for run in wanted:
        together.setdefault(run.plan.batches, []).append(run)
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        pending = [pool.submit(finish, some, out) for some in together.values()]
        try:
            for done in as_completed(pending):
                yield from done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def finish(some: Sequence[Run], out: Path) -> list[Done]:
    """Train what is left to train, then measure."""
    use_cores(1)
    models = train_together({out / run.folder: run.plan for run in some})
    return [_finish(run, out, model) for run, model in zip(some, models, strict=True)]


def _finish(run: Run, out: Path, model: GSID) -> Done:
    scorer = Scorer(run.method, model, Calibration.none())
    rows = [row for where in run.measured for row in _measure(run.method, scorer, *where)]
    state = json.loads((out / run.folder / "training.json").read_text())
    return {
        "method": run.method,
        "rate": run.plan.diet.rate,
        "seed": run.plan.seed,
        "steps": run.plan.steps,
        "edition": splits.EDITION,
        "curve": [{"step": e["step"], "f1": e["f1"]} for e in state["progress"]["curve"]],
        "rows": [{name: row.document()[name] for name in SHOWN} for row in rows],
    }


def unlearned() -> list[Done]:
    """The rows of `diff` on what the comparison is measured on."""
    where = [(name, rate) for name in splits.DATA_SETS for rate in splits.RATES]
    rows = (row for name, rate in where for row in _measure("diff", diff, name, rate))
    return [{name: row.document()[name] for name in SHOWN} for row in rows]


def in_order(figures: Sequence[Done], wanted: Sequence[Run]) -> list[Done]:
    """The figures in the order of the runs, whichever was done first."""
    return [done for run in wanted for done in figures if run.is_same(done)]


def shortened(run: Run, steps: int) -> Run:
    """The same with fewer steps, to try the study out."""
    return run._replace(plan=replace(run.plan, steps=steps))


def _measure(method: str, detector: evaluation.Detector, split: str, rate: float) -> Iterator[Row]:
    shown = _samples(split, rate)
    return evaluate(REFERENCE, split, rate, 0, {method: detector}, (ALL,), shown)


@lru_cache(maxsize=len(splits.RATES) * len(splits.DATA_SETS))
def _samples(split: str, rate: float) -> list[Sample]:
    return list(evaluation.samples(REFERENCE, split, rate, 0, aided=False))
