"""The shipped model loads, is small, and does what its card says, on networks it has not seen."""

import random
from pathlib import Path

import numpy as np
import pytest

from gsid_service.evaluate import settings
from gsid_service.evaluate.evaluation import Detector, evaluate
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, Sample
from gsid_service.evaluate.splits import SPLITS
from gsid_service.score.rivals import diff
from gsid_service.score.scorer import Scorer, load

FOLDER = Path(__file__).parents[2] / "models" / "gsid-1"


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return load(FOLDER)


def cases(name: str, count: int) -> list[Sample]:
    if name.startswith("operations"):
        return [settings.in_operation(SPLITS[name].case("shipped", i)) for i in range(count)]
    rng = random.Random(name)
    clean = [SPLITS[name].case("shipped", i) for i in range(count)]
    return [settings.with_faults(case, 0.05, rng, reference=True) for case in clean]


def f1(
    scorer: Scorer, setting: str, shown: list[Sample], parameter: str = "overall"
) -> dict[str, float]:
    methods: dict[str, Detector] = {"gsid": scorer, "diff": diff}
    rows = evaluate(setting, "standard", 0.05, 0, methods, ("all",), shown)
    return {row.method: row.metrics.f1 for row in rows if row.parameter == parameter}


def test_it_is_small_and_has_a_card() -> None:
    assert {f.name for f in FOLDER.iterdir()} == {"weights.safetensors", "config.json", "CARD.md"}
    assert sum(f.stat().st_size for f in FOLDER.iterdir()) < 20_000_000


def test_it_tells_mistakes_from_legitimate_changes(scorer: Scorer) -> None:
    found = f1(scorer, OPERATIONS, cases("operations-standard", 60))
    assert found["gsid"] > 0.7
    assert found["gsid"] > found["diff"] + 0.2


@pytest.mark.parametrize("parameter", ["local_pref", "as_path_length", "med", "overall"])
def test_it_beats_diff_where_a_stale_reference_drowns_it(scorer: Scorer, parameter: str) -> None:
    found = f1(scorer, REFERENCE, cases("standard", 60), parameter)
    assert found["gsid"] > found["diff"]


def test_it_is_quiet_where_nothing_is_wrong(scorer: Scorer) -> None:
    rng = random.Random(1)
    for reference in (True, False):
        clean = [SPLITS["standard"].case("shipped", i) for i in range(20)]
        shown = [settings.with_faults(case, 0.0, rng, reference) for case in clean]
        scores = np.concatenate([scorer(sample.graph).probability for sample in shown])
        assert np.nanmean(scores) < 0.03
        assert np.nanmean(scores > 0.9) < 0.001
