"""What is kept with a trained model, from networks that neither training nor the tests use: its
calibration, and how its scores are spread."""

import random
from dataclasses import replace

import numpy as np

from gsid_service.drift import Shares, shares
from gsid_service.evaluate import settings, splits
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, Sample
from gsid_service.score.calibration import Calibration, fit
from gsid_service.score.gsid import GSID
from gsid_service.score.scorer import Scorer, logits
from gsid_service.simulate.cases import Case

PART = "calibrate"
PER_RATE = 25  # networks of each data set, setting and rate, with intents and without
BATCH = 10


def calibrate(model: GSID, per_rate: int = PER_RATE) -> Calibration:
    """Lines that fit all settings and rates together, each with as many networks as the next."""
    shown = [
        sample
        for name in splits.DATA_SETS
        for setting in settings.SETTINGS
        for stated in (True, False)
        for sample in _samples(name, setting, per_rate, stated)
    ]
    found = [
        z
        for low in range(0, len(shown), BATCH)
        for z in logits(model, [sample.graph for sample in shown[low : low + BATCH]])
    ]
    return fit([s.graph for s in shown], found, [s.wrong for s in shown])


def spread(scorer: Scorer, per_rate: int = PER_RATE) -> dict[str, Shares]:
    """How the scores of each parameter are spread over networks in operation."""
    shown = [
        sample.graph
        for name in splits.DATA_SETS
        for stated in (True, False)
        for sample in _samples(name, OPERATIONS, per_rate, stated)
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


def _samples(name: str, setting: str, count: int, stated: bool) -> list[Sample]:
    """Networks with or without the intents that were stated for them."""
    rng = random.Random(f"gsid calibrate {name} {setting}")
    if setting == OPERATIONS:
        split = splits.SPLITS[f"operations-{name}"]
        cases = [split.case(PART, i) for i in range(count * len(splits.RATES) // 2)]
        return [settings.in_operation(case if stated else _bare(case)) for case in cases]
    clean = [splits.SPLITS[name].case(PART, i) for i in range(count)]
    return [
        settings.with_faults(case if stated else _bare(case), rate, rng, setting == REFERENCE)
        for rate in (0.0, *splits.RATES)
        for case in clean
    ]


def _bare(case: Case) -> Case:
    return replace(case, intents=())
