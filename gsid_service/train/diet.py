"""What a model is trained on: an endless stream of batches, anomalies injected afresh into each."""

import math
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from gsid_service.evaluate import settings, splits
from gsid_service.evaluate.settings import OPERATIONS, REFERENCE, SNAPSHOT, Sample
from gsid_service.records import BoolArray, FloatArray, Graph
from gsid_service.score.batch import Batch, Vocabulary, collate
from gsid_service.simulate import faults
from gsid_service.simulate.cases import Case


@dataclass(frozen=True, slots=True)
class Course:
    """A setting in which networks are shown: how often, and how much the loss there counts.

    A setting that leaves little to doubt has a small loss, and without a weight learns the least.
    """

    setting: str
    share: float = 1.0
    weight: float = 1.0
    spread: float = 0.0  # the share of its networks that have another anomaly rate than the diet's


@dataclass(frozen=True, slots=True)
class Diet:
    """The settings in which networks are shown, and the data sets they come from, by weight.

    The anomaly rate of a network is `rate`, or, for the `spread` of its setting, one whose log-odds
    are drawn evenly from those of 1 to those of 80 %; the share `clean` has no anomaly at all. The
    share `unstated` comes without intents, as the network of an operator who has written none.
    Whether the model is `aided` by reverts, adoptions and siblings is up to the diet: the paper's
    methods are not.
    Making a sample takes longer than learning from it: shown `twice`, the other time a few hundred
    steps later, each is worth nearly as much again.
    """

    courses: tuple[Course, ...] = (Course(REFERENCE),)
    data_sets: tuple[tuple[str, float], ...] = (("standard", 1.0),)
    networks: int = 4096
    rate: float = 0.4
    clean: float = 0.0
    unstated: float = 0.0
    aided: bool = False
    twice: bool = False

    def draw_rate(self, spread: float, rng: random.Random) -> float:
        chance = rng.random()
        if chance < self.clean:
            return 0.0
        if chance < self.clean + spread:
            log_odds = rng.uniform(*(math.log(rate / (1 - rate)) for rate in SPREAD))
            return 1 / (1 + math.exp(-log_odds))
        return self.rate


SPREAD = (0.01, 0.8)
REMEMBERED = 4096  # cases; of more hardly one comes twice, and all cost garbage collection time
MIXED = Diet(
    courses=(
        Course(SNAPSHOT, share=0.27, weight=1.0, spread=0.4),
        Course(REFERENCE, share=0.28, weight=3.0, spread=0.8),
        Course(OPERATIONS, share=0.45, weight=5.0),
    ),
    data_sets=(("standard", 0.55), ("real", 0.35), ("larger", 0.1)),  # one of larger costs like 4
    networks=1 << 20,  # hardly one twice: the changes of few cases are learned by heart
    clean=0.05,
    unstated=0.15,
    aided=True,
    twice=True,
)
LATER = 400  # samples between the two times that one is shown


class Shown(NamedTuple):
    """A network, what is wrong in it, and how much that counts."""

    graph: Graph
    wrong: BoolArray  # [F, P]
    weight: float


class Meal(NamedTuple):
    """A batch, and in the order of its facts what is wrong and how much that counts."""

    batch: Batch
    wrong: Tensor  # [F, P]
    weight: Tensor  # [F, 1]


class Meals(IterableDataset[Meal]):
    """Endless meals."""

    def __init__(self, diet: Diet, batch: int, seed: int) -> None:
        self.diet, self.batch, self.seed = diet, batch, seed

    def __iter__(self) -> Iterator[Meal]:
        worker = get_worker_info()
        rng = random.Random(f"gsid diet {self.seed} {worker.id if worker else 0}")
        vocabulary = Vocabulary()
        shown = self._shown(rng)
        while True:
            graphs, wrong, weights = zip(*islice(shown, self.batch), strict=True)
            batch = collate(graphs, vocabulary)
            weight = np.repeat(weights, [len(table) for table in wrong])[batch.order]
            marked = np.concatenate(wrong)[batch.order]
            yield Meal(batch, _tensor(marked), _tensor(weight[:, None]))

    def _shown(self, rng: random.Random) -> Iterator[Shown]:
        """Endless samples."""
        courses, kept = self.diet.courses, deque[Shown]()
        while True:
            course = rng.choices(courses, [course.share for course in courses])[0]
            sample = self._sample(course, rng)
            fresh = Shown(sample.graph, sample.wrong, course.weight)
            yield fresh
            if self.diet.twice:
                kept.append(fresh)
                if len(kept) > LATER:
                    yield kept.popleft()

    def _sample(self, course: Course, rng: random.Random) -> Sample:
        setting, (names, weights) = course.setting, zip(*self.diet.data_sets, strict=True)
        case = self._case(setting, rng.choices(names, weights)[0], rng)
        if rng.random() < self.diet.unstated:
            case = replace(case, intents=())
        if setting == OPERATIONS:
            return settings.in_operation(case)
        rate, reference = self.diet.draw_rate(course.spread, rng), setting == REFERENCE
        return settings.with_faults(case, rate, rng, reference, self.diet.aided)

    def _case(self, setting: str, name: str, rng: random.Random) -> Case:
        index = rng.randrange(self.diet.networks)
        make = _remembered if self.diet.networks <= REMEMBERED else _made
        if setting == OPERATIONS:
            return _with_other_slips(make(f"operations-{name}", index), rng)
        return make(name, index)


def _with_other_slips(case: Case, rng: random.Random) -> Case:
    """An operations case with other anomalies than its own."""
    facts, labels = faults.slip(faults.restored(case.facts, case.labels), rng)
    return replace(case, facts=facts, labels=labels)


def _tensor(array: BoolArray | FloatArray) -> Tensor:
    return torch.from_numpy(array.astype(np.float32))


def _made(split: str, index: int) -> Case:
    return splits.SPLITS[split].case(splits.TRAIN, index)


@lru_cache(maxsize=REMEMBERED)
def _remembered(split: str, index: int) -> Case:
    """A training case, made when it is first asked for, so that training starts at once."""
    return _made(split, index)
