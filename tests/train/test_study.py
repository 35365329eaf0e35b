"""The study trains every method with one budget, keeps its figures, and goes on where it was."""

from collections import Counter
from pathlib import Path
from typing import Any

from gsid_service.evaluate import plots
from gsid_service.evaluate.splits import DATA_SETS, EDITION, RATES
from gsid_service.score.gsid import Shape
from gsid_service.train import study
from gsid_service.train.diet import Diet
from gsid_service.train.plans import COMPARED
from gsid_service.train.study import Run
from gsid_service.train.training import Plan

TINY = Plan(Shape(width=16, heads=2, layers=1, decoder_steps=1), Diet(networks=8), 4, 2)


def test_every_method_has_the_same_budget_and_three_seeds() -> None:
    found = list(study.runs())
    counted = Counter(run.method for run in found)
    assert counted == dict.fromkeys(COMPARED, 6) | dict.fromkeys(study.SHAPES, 1)
    assert {(run.plan.steps, run.plan.batch) for run in found} == {(2000, 4)}
    assert len({run.folder for run in found}) == len(found)


def test_a_run_that_was_done_is_known_by_its_figures(tmp_path: Path) -> None:
    run, other = (Run(name, TINY, (("standard", 0.4),)) for name in ("gsid", "ace-gat"))
    done, _ = study.finish([run, other], tmp_path)
    assert {row["parameter"] for row in done["rows"]} == {*plots.PARAMETERS, "overall"}
    assert run.is_same(done)
    assert not other.is_same(done)
    assert not study.shortened(run, 3).is_same(done)
    assert not run.is_same(done | {"edition": EDITION - 1})


def figures(method: str, rate: float, seed: int) -> dict[str, Any]:
    f1 = dict.fromkeys(plots.PARAMETERS, 0.5)
    rows = [
        {"split": s, "rate": r, "method": method, "parameter": p, "f1": 0.9}
        for s in DATA_SETS
        for r in RATES
        for p in plots.PARAMETERS
    ]
    curve = [{"step": 100, "f1": f1}, {"step": 200, "f1": f1}]
    plan = {"method": method, "rate": rate, "seed": seed, "steps": 2000, "edition": EDITION}
    return plan | {"curve": curve, "rows": rows}


def test_plots_name_every_method_and_shape(tmp_path: Path) -> None:
    wanted = list(study.runs((0,)))
    done = [figures(r.method, r.plan.diet.rate, r.plan.seed) for r in reversed(wanted)]
    plots.study(study.in_order(done, wanted), figures("diff", 0.4, 0)["rows"], tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert all(f">{name}<" in drawn["rates.svg"] for name in [*COMPARED, "diff"])
    assert all(f">{name}<" in drawn["convergence-20.svg"] for name in COMPARED)
    assert all(f">{name}<" in drawn["sensitivity.svg"] for name in [*study.SHAPES, "n = 64"])
    assert "convergence-40.svg" in drawn
