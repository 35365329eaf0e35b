"""What is kept with a trained model, from networks that neither training nor the tests use: its
calibration, and how its scores are spread."""

import random
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from gsid_service.drift import Shares, shares
from gsid_service.evaluate import settings, splits
from gsid_service.evaluate.metrics import measure
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, Sample
from gsid_service.records import FloatArray
from gsid_service.score.calibration import Calibration, fit
from gsid_service.score.gsid import GSID
from gsid_service.score.scorer import Scorer, logits
from gsid_service.simulate.cases import Case

PART = "calibrate"
PER_RATE = 25  # networks of each data set, setting and rate, with intents and without
BATCH = 10
# Where most values are wrong and nothing says what they should be, no score can be right.
RATES = (0.0, *(rate for rate in splits.RATES if rate < 0.5))


class Cell(NamedTuple):
    """Networks of one data set and setting."""

    rate: float | None  # of anomalies; in operation there is none
    samples: list[Sample]


def calibrate(model: GSID, per_rate: int = PER_RATE) -> Calibration:
    """Lines that fit all settings and rates together, each with as many networks as the next; they
    are kept if with them the scores err less at every rate, else the model's own scores stand."""
    cells = [
        cell
        for name in splits.DATA_SETS
        for setting in settings.SETTINGS
        for stated in (True, False)
        for cell in _cells(name, setting, per_rate, stated)
    ]
    found = [_logits(model, cell.samples) for cell in cells]
    shown = [sample for cell in cells for sample in cell.samples]
    lines = fit([s.graph for s in shown], list(chain(*found)), [s.wrong for s in shown])
    with_lines, without = (_errors(c, cells, found) for c in (lines, Calibration.none()))
    return lines if all(with_lines[at] < without[at] for at in without) else Calibration.none()


def _logits(model: GSID, samples: list[Sample]) -> list[FloatArray]:
    parts = (samples[low : low + BATCH] for low in range(0, len(samples), BATCH))
    return [z for part in parts for z in logits(model, [sample.graph for sample in part])]


def _errors(
    calibration: Calibration, cells: list[Cell], found: list[list[FloatArray]]
) -> dict[float | None, float]:
    """By rate, how far scores are from the share that is wrong, in the mean over its cells."""
    errors = defaultdict(list)
    for cell, logits_of in zip(cells, found, strict=True):
        pairs = zip(cell.samples, logits_of, strict=True)
        score = np.concatenate([calibration.probability(s.graph, z) for s, z in pairs])
        wrong, counted = np.concatenate([s.wrong for s in cell.samples]), ~np.isnan(score)
        errors[cell.rate].append(measure(score[counted], wrong[counted]).ece)
    return {rate: float(np.mean(of_rate)) for rate, of_rate in errors.items()}


def spread(scorer: Scorer, per_rate: int = PER_RATE) -> dict[str, Shares]:
    """How the scores of each parameter are spread over networks in operation."""
    shown = [
        sample.graph
        for name in splits.DATA_SETS
        for stated in (True, False)
        for cell in _cells(name, OPERATIONS, per_rate, stated)
        for sample in cell.samples
    ]
    found = [
        scores
        for low in range(0, len(shown), BATCH)
        for scores in scorer.score_many(shown[low : low + BATCH])
    ]
    columns = np.concatenate([scores.probability for scores in found]).T  # [P, F]
    return {
        name: shares(column[~np.isnan(column)])
        for name, column in zip(found[0].parameters, columns, strict=True)
    }


def _cells(name: str, setting: str, count: int, stated: bool) -> list[Cell]:
    """Networks with or without the intents that were stated for them."""
    rng = random.Random(f"gsid calibrate {name} {setting}")
    if setting == OPERATIONS:
        split = splits.SPLITS[f"operations-{name}"]
        cases = [split.case(PART, i) for i in range(count * len(splits.RATES) // 2)]
        shown = [case if stated else _bare(case) for case in cases]
        return [Cell(None, [settings.in_operation(case) for case in shown])]
    clean = [splits.SPLITS[name].case(PART, i) for i in range(count)]
    shown = [case if stated else _bare(case) for case in clean]
    return [
        Cell(rate, [settings.with_faults(case, rate, rng, setting == REFERENCE) for case in shown])
        for rate in RATES
    ]


def _bare(case: Case) -> Case:
    return replace(case, intents=())
