"""Evaluation counts what it says: scopes, parameters, seeds, and the settings' own difficulty."""

import random

import numpy as np
import pytest

from gsid_service.evaluate import settings
from gsid_service.evaluate.evaluation import Row, evaluate, summary
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, SNAPSHOT, Sample
from gsid_service.evaluate.splits import SPLITS
from gsid_service.score.rivals import diff, sibling

METHODS = {"diff": diff, "sibling": sibling}


def shown(setting: str, count: int) -> list[Sample]:
    rng = random.Random(1)
    if setting == OPERATIONS:
        split = SPLITS["operations-standard"]
        return [settings.in_operation(split.case("evaluation", i)) for i in range(count)]
    cases = [SPLITS["standard"].case("evaluation", i) for i in range(count)]
    return [settings.with_faults(case, 0.4, rng, setting == REFERENCE) for case in cases]


def rows(setting: str, count: int) -> list[Row]:
    return list(evaluate(setting, "standard", 0.4, 0, METHODS, shown=shown(setting, count)))


def one(found: list[Row], method: str, parameter: str, scope: str) -> Row:
    (row,) = [r for r in found if (r.method, r.parameter, r.scope) == (method, parameter, scope)]
    return row


def test_diff_is_hard_to_beat_where_the_reference_is_good() -> None:
    found = rows(REFERENCE, 10)
    assert len(found) == 2 * 2 * 5
    for parameter in ("local_pref", "as_path_length", "med", "ospf_weight", "overall"):
        assert one(found, "diff", parameter, "all").metrics.f1 > 0.97


def test_diff_drowns_in_legitimate_changes() -> None:
    row = one(rows(OPERATIONS, 60), "diff", "overall", "all")
    assert row.metrics.recall > 0.9  # a fact that is new has no reference to differ from
    assert row.metrics.precision < 0.4
    assert row.rate is None


def test_without_a_reference_diff_says_nothing() -> None:
    row = one(rows(SNAPSHOT, 3), "diff", "overall", "all")
    assert row.metrics.recall == 0
    assert row.document()["precision"] is None


def test_harmful_leaves_out_the_anomalies_that_move_nothing() -> None:
    samples = shown(REFERENCE, 3)
    wrong = sum(int(s.wrong.sum()) for s in samples)
    moving = sum(int(s.harmful().sum()) for s in samples)
    assert 0 < moving < wrong
    for sample in samples:
        assert not (sample.harmful() & ~sample.wrong).any()


def test_the_marks_stand_where_the_values_differ() -> None:
    for sample in shown(OPERATIONS, 20):
        assert sample.wrong.sum() == len(sample.case.labels)
        rows, columns = np.nonzero(sample.wrong)
        names = ("local_pref", "as_path_length", "med", "ospf_weight")
        marked = {(sample.graph.facts[r], names[c]) for r, c in zip(rows, columns, strict=True)}
        assert marked == {(label.fact, label.parameter) for label in sample.case.labels}


def test_the_summary_is_over_seeds() -> None:
    samples = shown(REFERENCE, 2)
    found = [
        row
        for seed in (0, 1)
        for row in evaluate(REFERENCE, "standard", 0.4, seed, METHODS, ("all",), samples)
    ]
    figures = summary(found)
    assert len(figures) == len(found) / 2
    mean, deviation = figures[REFERENCE, "standard", 0.4, "diff", "overall", "all"]["f1"]
    assert deviation == 0
    assert mean == pytest.approx(one(found[: len(found) // 2], "diff", "overall", "all").metrics.f1)
