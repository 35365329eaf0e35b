"""How scores are spread, and what is kept of it with a model."""

import json
from pathlib import Path

import pytest

from gsid_service.drift import STEPS, at_training, shares
from gsid_service.schema import SCHEMA
from tests.flow.server import MODEL, need_model


def test_a_share_counts_what_is_at_most_its_step() -> None:
    found = shares([0.005, 0.01, 0.3, 0.95])
    assert found["0.01"] == 0.5
    assert found["0.2"] == 0.5
    assert found["0.35"] == 0.75
    assert found["0.9"] == 0.75


def test_the_order_of_scores_does_not_matter() -> None:
    assert shares([0.9, 0.1, 0.5]) == shares([0.1, 0.5, 0.9])


def test_no_scores_have_no_shares() -> None:
    assert shares([]) == {}


def test_the_shipped_model_knows_every_monitored_parameter() -> None:
    need_model()
    found = at_training(MODEL)
    assert set(found) == {parameter.name for parameter in SCHEMA.monitored}
    for steps in found.values():
        assert list(steps) == [str(step) for step in STEPS]
        assert list(steps.values()) == sorted(steps.values())
        assert steps["0.9"] > 0.9


@pytest.mark.parametrize("config", [{}, {"training_scores": {}}])
def test_a_model_may_come_without(config: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert at_training(tmp_path) == {}
