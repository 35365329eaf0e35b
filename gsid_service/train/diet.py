"""What a model is trained on: an endless stream of batches, anomalies injected afresh into each."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from gsid_service.evaluate import settings, splits
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, SNAPSHOT, Sample
from gsid_service.score.batch import Batch, Vocabulary, collate
from gsid_service.simulate import faults
from gsid_service.simulate.cases import Case


@dataclass(frozen=True, slots=True)
class Diet:
    """The settings in which networks are shown and the data sets they come from, by weight.

    The anomaly rate of a network is `rate`, or, for the share `spread` of them, one drawn from 1 to
    80 % evenly on a logarithmic scale; the share `clean` has no anomaly at all. The share
    `unstated` comes without intents, as the network of an operator who has written none. Whether
    `reverts` are tried is up to the diet: the paper's methods know nothing of them.
    """

    settings: tuple[tuple[str, float], ...] = ((REFERENCE, 1.0),)
    data_sets: tuple[tuple[str, float], ...] = (("standard", 1.0),)
    networks: int = 4096
    rate: float = 0.4
    spread: float = 0.0
    clean: float = 0.0
    unstated: float = 0.0
    reverts: bool = False

    def draw_rate(self, rng: random.Random) -> float:
        chance = rng.random()
        if chance < self.clean:
            return 0.0
        if chance < self.clean + self.spread:
            return math.exp(rng.uniform(math.log(SPREAD[0]), math.log(SPREAD[1])))
        return self.rate


SPREAD = (0.01, 0.8)
MIXED = Diet(
    settings=((SNAPSHOT, 0.4), (REFERENCE, 0.25), (OPERATIONS, 0.35)),
    data_sets=(("standard", 0.5), ("real", 0.3), ("larger", 0.2)),
    spread=0.5,
    clean=0.05,
    unstated=0.15,
    reverts=True,
)


class Meals(IterableDataset[tuple[Batch, Tensor]]):
    """Endless batches and their labels [F, P], in the order of the batch's facts."""

    def __init__(self, diet: Diet, batch: int, seed: int) -> None:
        self.diet, self.batch, self.seed = diet, batch, seed

    def __iter__(self) -> Iterator[tuple[Batch, Tensor]]:
        worker = get_worker_info()
        rng = random.Random(f"gsid diet {self.seed} {worker.id if worker else 0}")
        vocabulary = Vocabulary()
        while True:
            samples = [self._sample(rng) for _ in range(self.batch)]
            batch = collate([sample.graph for sample in samples], vocabulary)
            wrong = np.concatenate([sample.wrong for sample in samples])[batch.order]
            yield batch, torch.from_numpy(wrong.astype(np.float32))

    def _sample(self, rng: random.Random) -> Sample:
        setting, name = _weighted(self.diet.settings, rng), _weighted(self.diet.data_sets, rng)
        case = self._case(setting, name, rng)
        if rng.random() < self.diet.unstated:
            case = replace(case, intents=())
        if setting == OPERATIONS:
            return settings.in_operation(case)
        rate, reference = self.diet.draw_rate(rng), setting == REFERENCE
        return settings.with_faults(case, rate, rng, reference, self.diet.reverts)

    def _case(self, setting: str, name: str, rng: random.Random) -> Case:
        index = rng.randrange(self.diet.networks)
        if setting == OPERATIONS:
            return _with_other_slips(_case(f"operations-{name}", index), rng)
        return _case(name, index)


def _with_other_slips(case: Case, rng: random.Random) -> Case:
    """An operations case with other anomalies than its own."""
    facts, labels = faults.slip(faults.restored(case.facts, case.labels), rng)
    return replace(case, facts=facts, labels=labels)


def _weighted(choices: tuple[tuple[str, float], ...], rng: random.Random) -> str:
    names, weights = zip(*choices, strict=True)
    return str(rng.choices(names, weights)[0])


_CASES: dict[tuple[str, int], Case] = {}


def _case(split: str, index: int) -> Case:
    """A training case, made when it is first asked for, so that training starts at once."""
    if (split, index) not in _CASES:
        _CASES[split, index] = splits.SPLITS[split].case(splits.TRAIN, index)
    return _CASES[split, index]
