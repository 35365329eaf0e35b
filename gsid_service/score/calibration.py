"""Calibration: from logits to probabilities that one can act on.

Per parameter, and by what there is to go by (no reference, a copy or an exact one, with stated
intents or without), logit ← slope · logit + weight · rate + shift is fitted on networks that
training did not see. *rate* is the log-odds of the network's own mean score: training shows more
anomalies than a network has, and this corrects for the real rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gsid_service.assemble.scale import scale
from gsid_service.records import BoolArray, FloatArray, Graph, IntArray
from gsid_service.schema import SCHEMA, Group, Schema

LOWEST_RATE, HIGHEST_RATE = 1e-4, 0.95
GROUPS = 5  # no reference; a copy with stated intents, or alone; an exact one likewise
TERMS = 3  # slope, weight of the rate, shift
FEWEST = 20  # anomalies of a kind before a line is fitted to it
FLATTEST = 0.2  # slope
PENALTY = 1e-4  # keeps a line finite where the classes can be told apart entirely


@dataclass(frozen=True, slots=True)
class Calibration:
    """[GROUPS, P, 3]: slope, weight of the rate and shift of each parameter."""

    lines: FloatArray

    @classmethod
    def none(cls, schema: Schema = SCHEMA) -> Self:
        return cls(np.tile([1.0, 0.0, 0.0], (GROUPS, len(schema.monitored), 1)))

    def probability(self, graph: Graph, logits: FloatArray, schema: Schema = SCHEMA) -> FloatArray:
        """[F, P]; not a number where the logit is none."""
        group = _group(graph, schema)
        slope, weight, shift = np.moveaxis(self.lines[group, np.arange(logits.shape[1])], -1, 0)
        return sigmoid(slope * logits + weight * rate(logits) + shift)

    def document(self) -> list[Any]:
        lines: list[Any] = self.lines.round(6).tolist()
        return lines

    @classmethod
    def read(cls, document: Any, schema: Schema = SCHEMA) -> Self:
        lines = np.array(document, dtype=np.float64)
        if lines.shape != (GROUPS, len(schema.monitored), TERMS) or not np.isfinite(lines).all():
            raise ValueError("calibration: not three numbers for each parameter")
        return cls(lines)


def _group(graph: Graph, schema: Schema) -> IntArray:
    """[F, P]: what there is to go by for each value."""
    stated = any(schema.fact[key.predicate].group is Group.INTENT for key in graph.facts)
    kind = (1 if stated else 2) + (2 if graph.exact else 0)
    return scale(graph, schema).has_reference * np.int64(kind)


def rate(logits: FloatArray) -> float:
    """The log-odds of the mean score of a network."""
    applies = ~np.isnan(logits)
    mean = float(sigmoid(logits[applies]).mean()) if applies.any() else LOWEST_RATE
    mean = min(max(mean, LOWEST_RATE), HIGHEST_RATE)
    return float(np.log(mean / (1 - mean)))


def fit(
    graphs: Sequence[Graph],
    logits: Sequence[FloatArray],
    wrong: Sequence[BoolArray],
    schema: Schema = SCHEMA,
) -> Calibration:
    """Fit the lines on networks whose wrong values are known."""
    groups = np.concatenate([_group(graph, schema) for graph in graphs])
    rates = np.concatenate([np.full(len(z), rate(z)) for z in logits])
    everything, truth = np.concatenate(logits), np.concatenate(wrong)
    calibration = Calibration.none(schema)
    for group in range(GROUPS):
        for parameter in range(everything.shape[1]):
            z = everything[:, parameter]
            at = (groups[:, parameter] == group) & ~np.isnan(z)
            if truth[at, parameter].sum() >= FEWEST:
                line = _fit_line(z[at], rates[at], truth[at, parameter])
                calibration.lines[group, parameter] = line
    return calibration


def _fit_line(logits: FloatArray, rates: FloatArray, wrong: BoolArray) -> FloatArray:
    """The slope, weight and shift of least cross-entropy."""
    from scipy.optimize import minimize  # half a second that only training needs

    terms = np.stack((logits, rates, np.ones_like(logits)), axis=1)  # [M, 3]

    def entropy(line: FloatArray) -> tuple[float, FloatArray]:
        z = terms @ line
        off = line - [1, 0, 0]
        value = np.mean(np.logaddexp(0, z) - wrong * z) + PENALTY * off @ off
        return float(value), terms.T @ (sigmoid(z) - wrong) / len(z) + 2 * PENALTY * off

    # Between networks of different rates a line may fit best that turns their order round within
    # each; the model's order stands.
    bounds = [(FLATTEST, None), (None, None), (None, None)]
    begin = np.array([1.0, 0.0, 0.0])
    return np.asarray(minimize(entropy, begin, jac=True, method="L-BFGS-B", bounds=bounds).x)


def sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -50, 50))))
