"""How scores are spread: the share of values that score at most so much, in service as at training.

A network whose shares are far from those of training is unlike what the model has seen.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
KEY = "training_scores"  # in the model's config.json

Shares = Mapping[str, float]  # by step


def shares(scores: Iterable[float]) -> Shares:
    """The share of scores that are at most each step; of no scores, nothing."""
    ordered = np.sort(np.fromiter(scores, dtype=np.float64))
    if not len(ordered):
        return {}
    below = np.searchsorted(ordered, STEPS, side="right") / len(ordered)
    return {str(s): round(float(b), 6) for s, b in zip(STEPS, below, strict=True)}


def at_training(folder: Path) -> dict[str, Shares]:
    """The shares of each parameter that are kept with a model; none where it has none."""
    found: dict[str, Shares] = json.loads((folder / "config.json").read_text()).get(KEY, {})
    return found
