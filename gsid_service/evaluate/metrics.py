"""Metrics: from scores and truth to the figures of one row of results."""

from typing import NamedTuple

import numpy as np

from gsid_service.records import BoolArray, FloatArray

THRESHOLD = 0.5
BINS = 15
RECALL = 0.7
CERTAIN = 0.9


class Metrics(NamedTuple):
    """What a row of `gsid evaluate` says; ratios of nothing are not a number."""

    precision: float
    recall: float
    f1: float
    accuracy: float
    auc: float
    ap: float
    ece: float
    precision_at_recall_70: float
    precision_above_90: float  # of the values that score more than 0.9


def measure(score: FloatArray, wrong: BoolArray) -> Metrics:
    """Figures of scores [M] against what is wrong [M]; flagged is what scores 0.5 or more."""
    flagged = score >= THRESHOLD
    hits = float((flagged & wrong).sum())
    precision, recall = _ratio(hits, flagged.sum()), _ratio(hits, wrong.sum())
    curve_precision, curve_recall = _curve(score, wrong)
    return Metrics(
        precision=precision,
        recall=recall,
        f1=_ratio(2 * hits, flagged.sum() + wrong.sum()),
        accuracy=_ratio((flagged == wrong).sum(), len(wrong)),
        auc=_auc(score, wrong),
        ap=float((np.diff(curve_recall, prepend=0) * curve_precision).sum()),
        ece=_calibration_error(score, wrong),
        precision_at_recall_70=float(np.max(curve_precision[curve_recall >= RECALL], initial=0.0)),
        precision_above_90=_ratio((wrong & (score > CERTAIN)).sum(), (score > CERTAIN).sum()),
    )


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else float("nan")


def _auc(score: FloatArray, wrong: BoolArray) -> float:
    """The chance that a wrong value scores above a right one, ties counting half."""
    positives, negatives = int(wrong.sum()), int((~wrong).sum())
    if not positives or not negatives:
        return float("nan")
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # mean rank among ties
    return float((rank[wrong].sum() - positives * (positives + 1) / 2) / positives / negatives)


def _curve(score: FloatArray, wrong: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Precision and recall at every threshold, tied scores together, from the highest on."""
    order = np.argsort(-score, kind="stable")
    last = np.flatnonzero(np.diff(score[order], append=-np.inf) != 0)
    hits = np.cumsum(wrong[order])[last].astype(np.float64)
    return hits / (last + 1), hits / max(1, int(wrong.sum()))


def _calibration_error(score: FloatArray, wrong: BoolArray) -> float:
    """Expected calibration error over equal bins of the score."""
    bins = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    gaps = np.bincount(bins, weights=score - wrong, minlength=BINS)
    return float(np.abs(gaps).sum() / max(1, len(score)))
