"""Training: a diet and a shape in, weights and curves out; checkpointed, and resumable."""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice, tee
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader

from gsid_service.schema import SCHEMA
from gsid_service.score.gsid import GSID, Shape
from gsid_service.train.diet import Diet, Meal, Meals

TEMPERATURE = 2.0  # of dynamic weight averaging
EPOCH = 100  # steps
WORKERS = 2  # processes that prepare batches


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a training run depends on."""

    shape: Shape = field(default_factory=Shape)
    diet: Diet = field(default_factory=Diet)
    steps: int = 2_000
    batch: int = 4
    seed: int = 0
    schedule: str = "paper"  # or "cosine"
    rate: float = 5e-4
    decay: float = 1e-5

    @property
    def batches(self) -> tuple[Diet, int, int, int]:
        """All that the batches depend on, and their number."""
        return self.diet, self.batch, self.seed, self.steps

    def learning_rate(self, step: int) -> float:
        """The paper's: from 5e-4 linearly to 1e-4 over ten epochs, then constant; or a cosine."""
        if self.schedule == "paper":
            return self.rate * (1 - 0.8 * min(1.0, step / (10 * EPOCH)))
        warm = min(1.0, (step + 1) / 200)
        return warm * self.rate * (0.02 + 0.98 * (1 + math.cos(math.pi * step / self.steps)) / 2)


@dataclass(slots=True)
class Progress:
    """How far training is: what a curve shows, and what dynamic weight averaging remembers."""

    step: int = 0
    seconds: float = 0.0
    losses: list[list[float]] = field(default_factory=list)  # one a finished epoch, per parameter
    curve: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Learner:
    """A model on its way through a plan, saved in a folder."""

    plan: Plan
    folder: Path
    model: GSID
    optimiser: torch.optim.Optimizer
    progress: Progress

    @classmethod
    def of(cls, plan: Plan, folder: Path) -> Self:
        torch.manual_seed(plan.seed)
        model = GSID(plan.shape)
        optimiser = torch.optim.Adam(model.parameters(), lr=plan.rate, weight_decay=plan.decay)
        return cls(plan, folder, model, optimiser, _resume(folder, plan, model, optimiser))

    def learn(self, meals: Iterable[Meal]) -> dict[str, Any]:
        """An epoch; its mean loss and F1 per parameter."""
        self.model.train()
        begun, before, progress = time.perf_counter(), self.progress.step, self.progress
        weights = _balance(progress.losses)
        sums, counts = torch.zeros(len(weights)), torch.zeros(len(weights), 3)
        for batch, wrong, weight in meals:
            for group in self.optimiser.param_groups:
                group["lr"] = self.plan.learning_rate(progress.step)
            logits = self.model(batch)
            losses = loss(logits, wrong, batch.applies * weight)
            self.optimiser.zero_grad()
            (losses * weights).sum().backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimiser.step()
            progress.step += 1
            sums += losses.detach()
            counts += _counts(logits.detach(), wrong, batch.applies)
        progress.losses.append((sums / (progress.step - before)).tolist())
        progress.seconds += time.perf_counter() - begun
        progress.curve.append(_summary(progress, counts))
        return progress.curve[-1]

    def save(self) -> None:
        _save(self.folder, self.plan, self.model, self.optimiser, self.progress)


def train(
    plan: Plan,
    folder: Path,
    report: Callable[[dict[str, Any]], None] = lambda _: None,
    every: int = 5,
) -> GSID:
    """Train, or go on training, what is in `folder`, saved every few epochs."""
    (model,) = train_together({folder: plan}, report, every)
    return model


def train_together(
    plans: Mapping[Path, Plan],
    report: Callable[[dict[str, Any]], None] = lambda _: None,
    every: int = 5,
) -> list[GSID]:
    """The same for several that learn from the same batches, each of which is made once.

    Their plans differ in nothing but the model and how it learns. Where some were stopped earlier
    than others, these go on first.
    """
    if len({plan.batches for plan in plans.values()}) != 1:
        raise ValueError("plans of other batches cannot learn together")
    learners = [_Learner.of(plan, folder) for folder, plan in plans.items()]
    plan, step = learners[0].plan, min(learner.progress.step for learner in learners)
    loader = iter(_loader(plan, step))
    while step < plan.steps:
        count = min(EPOCH, plan.steps - step)
        hungry = [learner for learner in learners if learner.progress.step == step]
        for learner, meals in zip(hungry, tee(islice(loader, count), len(hungry)), strict=True):
            epoch = learner.learn(meals)
            if len(learner.progress.curve) % every == 0:
                learner.save()
            report(epoch)
        step += count
    for learner in learners:
        learner.save()
    return [learner.model.eval() for learner in learners]


def _loader(plan: Plan, step: int) -> DataLoader[Meal]:
    """Other processes prepare batches while this one learns; a resumed run sees other ones."""
    meals = Meals(plan.diet, plan.batch, plan.seed * 1_000_003 + step)
    return DataLoader(meals, batch_size=None, num_workers=WORKERS, prefetch_factor=8)


def loss(logits: Tensor, wrong: Tensor, weight: Tensor) -> Tensor:
    """[P] cross-entropy of each parameter; the weight is 0 where a fact does not carry it."""
    entropy = binary_cross_entropy_with_logits(logits, wrong, reduction="none") * weight
    return entropy.sum(dim=0) / weight.sum(dim=0).clamp(min=1)


def _balance(losses: list[list[float]]) -> Tensor:
    """Dynamic weight averaging: w = P · softmax((L(t-1) / L(t-2)) / T)."""
    if len(losses) < 2:
        return torch.ones(len(SCHEMA.monitored))
    last, before = torch.tensor(losses[-1]), torch.tensor(losses[-2])
    return len(last) * torch.softmax(last / before.clamp(min=1e-6) / TEMPERATURE, dim=0)


def _counts(logits: Tensor, wrong: Tensor, applies: Tensor) -> Tensor:
    """[P, 3] true positives, flagged, wrong."""
    flagged = (logits > 0) * applies
    return torch.stack(((flagged * wrong).sum(0), flagged.sum(0), wrong.sum(0)), dim=1)


def _summary(progress: Progress, counts: Tensor) -> dict[str, Any]:
    hits, flagged, wrong = counts.T
    f1 = (2 * hits / (flagged + wrong).clamp(min=1)).tolist()
    names = [parameter.name for parameter in SCHEMA.monitored]
    return {
        "step": progress.step,
        "seconds": round(progress.seconds, 1),
        "loss": dict(zip(names, progress.losses[-1], strict=True)),
        "f1": dict(zip(names, f1, strict=True)),
    }


def _save(
    folder: Path,
    plan: Plan,
    model: GSID,
    optimiser: torch.optim.Optimizer,
    progress: Progress,
) -> None:
    """Tensors as safetensors, the rest as JSON; each file is replaced whole."""
    folder.mkdir(parents=True, exist_ok=True)
    moments = {
        f"{moment}.{i}": state[moment]
        for i, state in optimiser.state_dict()["state"].items()
        for moment in ("exp_avg", "exp_avg_sq")
    }
    for name, tensors in (("weights", model.state_dict()), ("optimiser", moments)):
        save_file(tensors, folder / f"{name}.new")
    state = {"plan": asdict(plan), "progress": asdict(progress)}
    (folder / "training.new").write_text(json.dumps(state))
    for name, suffix in (
        ("weights", "safetensors"),
        ("optimiser", "safetensors"),
        ("training", "json"),
    ):
        (folder / f"{name}.new").replace(folder / f"{name}.{suffix}")


def _resume(folder: Path, plan: Plan, model: GSID, optimiser: torch.optim.Optimizer) -> Progress:
    """What was saved, or a fresh start; a folder of another plan is refused."""
    if not (folder / "training.json").exists():
        return Progress()
    state = json.loads((folder / "training.json").read_text())
    if state["plan"] != json.loads(json.dumps(asdict(plan))):
        raise ValueError(f"{folder} holds another training run; choose another folder")
    progress = Progress(**state["progress"])
    model.load_state_dict(load_file(folder / "weights.safetensors"))
    moments = load_file(folder / "optimiser.safetensors")
    saved = optimiser.state_dict()
    saved["state"] = {
        i: {
            "step": torch.tensor(float(progress.step)),
            "exp_avg": moments[f"exp_avg.{i}"],
            "exp_avg_sq": moments[f"exp_avg_sq.{i}"],
        }
        # What no gradient reaches, as one decoder step's way up, has no moments.
        for i in {int(name.split(".")[1]) for name in moments}
    }
    optimiser.load_state_dict(saved)
    return progress
