"""Evaluation: detectors over the test cases of a split, to rows of figures."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gsid_service.evaluate import settings, splits
from gsid_service.evaluate.metrics import Metrics, measure
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, Sample
from gsid_service.records import BoolArray, FloatArray, Graph, Scores
from gsid_service.schema import SCHEMA

Detector = Callable[[Graph], Scores]
OVERALL = "overall"
SCOPES = ALL, HARMFUL = "all", "harmful"


class Row(NamedTuple):
    """One line of results: what was measured, on what, and the figures."""

    setting: str
    split: str
    rate: float | None
    method: str
    seed: int
    parameter: str
    scope: str
    metrics: Metrics

    def document(self) -> dict[str, Any]:
        fields = self._asdict()
        del fields["metrics"]
        return fields | {
            name: None if np.isnan(value) else value
            for name, value in self.metrics._asdict().items()
        }


def samples(
    setting: str,
    split: str,
    rate: float,
    seed: int,
    count: int | None = None,
    aided: bool = True,
) -> Iterator[Sample]:
    """The test networks of a data set as a setting shows them; the seed draws the faults."""
    if setting == OPERATIONS:
        cases = splits.load(splits.SPLITS[f"operations-{split}"], splits.TEST)
        yield from map(settings.in_operation, islice(cases, count))
        return
    rng = random.Random(f"gsid evaluate {setting} {split} {rate} {seed}")
    for case in islice(splits.load(splits.SPLITS[split], splits.TEST), count):
        yield settings.with_faults(case, rate, rng, setting == REFERENCE, aided)


def evaluate(
    setting: str,
    split: str,
    rate: float,
    seed: int,
    methods: Mapping[str, Detector],
    scopes: Sequence[str] = SCOPES,
    shown: Iterable[Sample] | None = None,
) -> Iterator[Row]:
    """Rows for each method, scope and parameter, and for all parameters together."""
    seen = list(samples(setting, split, rate, seed) if shown is None else shown)
    wrong = np.concatenate([sample.wrong for sample in seen])
    moving = np.concatenate([s.harmful() for s in seen]) if HARMFUL in scopes else wrong
    shown_rate = None if setting == OPERATIONS else rate
    for name, detector in methods.items():
        found = [detector(sample.graph) for sample in seen]
        score = np.concatenate([scores.probability for scores in found])
        counted = ~np.isnan(score)
        for scope in scopes:
            said, at_stake = score, counted
            if scope == HARMFUL:
                said, at_stake = (
                    np.concatenate(list(map(_paged, found))),
                    counted & (moving | ~wrong),
                )
            for parameter, at in _columns(at_stake):
                metrics = measure(said[at], wrong[at])
                yield Row(setting, split, shown_rate, name, seed, parameter, scope, metrics)


def _paged(scores: Scores) -> FloatArray:
    """The scores of what a page would be sent for: where it is known that nothing moves, none."""
    if scores.harmful is None:
        return scores.probability
    return np.asarray(np.where(scores.harmful, scores.probability, 0.0))


def _columns(counted: BoolArray) -> Iterator[tuple[str, BoolArray]]:
    for column, parameter in enumerate(SCHEMA.monitored):
        only = np.zeros_like(counted)
        only[:, column] = counted[:, column]
        yield parameter.name, only
    yield OVERALL, counted


def summary(rows: Iterable[Row]) -> dict[tuple[Any, ...], dict[str, tuple[float, float]]]:
    """Mean and deviation over the seeds, of each figure of otherwise equal rows."""
    groups: dict[tuple[Any, ...], list[Metrics]] = {}
    for row in rows:
        key = (row.setting, row.split, row.rate, row.method, row.parameter, row.scope)
        groups.setdefault(key, []).append(row.metrics)
    return {key: _spread(np.array(found)) for key, found in groups.items()}


def _spread(figures: FloatArray) -> dict[str, tuple[float, float]]:
    means, deviations = figures.mean(axis=0).tolist(), figures.std(axis=0).tolist()
    return dict(zip(Metrics._fields, zip(means, deviations, strict=True), strict=True))
