"""Calibrating a trained model on networks that neither training nor the tests use."""

import random
from dataclasses import replace

from gsid_service.evaluate import settings, splits
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, Sample
from gsid_service.score.calibration import Calibration, fit
from gsid_service.score.gsid import GSID
from gsid_service.score.scorer import logits
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
