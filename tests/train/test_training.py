"""Training learns, can be stopped and resumed, and refuses to mix runs."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from gsid_service.score.gsid import Shape
from gsid_service.train import diet, training
from gsid_service.train.diet import MIXED, Diet, Meals
from gsid_service.train.training import Plan, train, train_together

SMALL = Plan(
    shape=Shape(width=16, heads=2, layers=1, decoder_steps=1, dropout=0.0),
    diet=Diet(networks=20),
    steps=60,
    batch=2,
    rate=3e-3,
    schedule="cosine",
)


@pytest.fixture
def short_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "EPOCH", 20)
    torch.set_num_threads(1)


def curve(folder: Path) -> list[dict[str, Any]]:
    state = json.loads((folder / "training.json").read_text())
    epochs: list[dict[str, Any]] = state["progress"]["curve"]
    return epochs


@pytest.mark.usefixtures("short_epochs")
def test_the_loss_falls_and_the_curve_is_kept(tmp_path: Path) -> None:
    reported: list[object] = []
    train(SMALL, tmp_path, reported.append)
    epochs = curve(tmp_path)
    assert epochs == reported
    assert len(epochs) == 3
    assert sum(epochs[-1]["loss"].values()) < sum(epochs[0]["loss"].values())


@pytest.mark.usefixtures("short_epochs")
def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    def stop(epoch: object) -> None:
        raise KeyboardInterrupt(epoch)

    with pytest.raises(KeyboardInterrupt):
        train(SMALL, tmp_path, stop, every=1)
    assert [epoch["step"] for epoch in curve(tmp_path)] == [20]
    model = train(SMALL, tmp_path)
    assert [epoch["step"] for epoch in curve(tmp_path)] == [20, 40, 60]
    assert not model.training


@pytest.mark.usefixtures("short_epochs")
def test_those_that_learn_together_learn_as_if_alone(tmp_path: Path) -> None:
    wider = replace(SMALL, shape=replace(SMALL.shape, width=24))
    train_together({tmp_path / "a": SMALL, tmp_path / "b": wider})
    for name, plan in (("a", SMALL), ("b", wider)):
        train(plan, tmp_path / "alone" / name)
        pairs = zip(curve(tmp_path / name), curve(tmp_path / "alone" / name), strict=True)
        assert all(mine["loss"] == own["loss"] for mine, own in pairs)


@pytest.mark.usefixtures("short_epochs")
def test_those_that_were_stopped_earlier_go_on_first(tmp_path: Path) -> None:
    def stop(epoch: dict[str, Any]) -> None:
        if len(reported) == 2:  # the first is two epochs on, the second one
            raise KeyboardInterrupt
        reported.append(epoch["step"])

    reported: list[int] = []
    plans = {tmp_path / "a": SMALL, tmp_path / "b": replace(SMALL, rate=1e-3)}
    with pytest.raises(KeyboardInterrupt):
        train_together(plans, stop, every=1)
    reported.clear()
    train_together(plans, lambda epoch: reported.append(epoch["step"]), every=1)
    assert reported == [40, 60, 60]
    assert [[e["step"] for e in curve(folder)] for folder in plans] == [[20, 40, 60]] * 2


def test_plans_of_other_batches_do_not_learn_together(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="other batches"):
        train_together({tmp_path / "a": SMALL, tmp_path / "b": replace(SMALL, batch=3)})


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    train(replace(SMALL, steps=1), tmp_path)
    with pytest.raises(ValueError, match="another training run"):
        train(replace(SMALL, steps=1, seed=5), tmp_path)


def test_the_paper_s_schedule() -> None:
    rates = [Plan().learning_rate(step) for step in (0, 500, 1_000, 1_999)]
    assert rates == pytest.approx([5e-4, 3e-4, 1e-4, 1e-4], abs=5e-5)


def test_a_mixed_diet_shows_every_setting() -> None:
    meals = iter(Meals(replace(MIXED, networks=5), batch=4, seed=0))
    references = [float(batch.has_reference.sum()) > 0 for batch, *_ in (next(meals), next(meals))]
    assert any(references)
    batch, wrong, weight = next(meals)
    assert weight.shape == (len(wrong), 1)
    assert wrong.shape == batch.applies.shape
    assert not (wrong * (1 - batch.applies)).any()


def test_what_is_shown_twice_comes_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diet, "LATER", 2)
    meals = list(islice(Meals(replace(Diet(networks=1000), twice=True), batch=1, seed=0), 9))
    first_at = [
        next(i for i, other in enumerate(meals) if torch.equal(other.batch.value, meal.batch.value))
        for meal in meals
    ]
    assert first_at == [0, 1, 2, 0, 4, 1, 6, 2, 8]
