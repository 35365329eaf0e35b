"""A model folder comes back as it was saved; anything else is refused with one clear line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from gsid_service.score.calibration import GROUPS, Calibration
from gsid_service.score.gsid import GSID, Shape
from gsid_service.score.scorer import BadModel, load, save
from tests.score.test_gsid import CASE, graph


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(1)
    calibration = Calibration(np.random.default_rng(0).normal(size=(GROUPS, 4, 3)).round(6))
    save(tmp_path, "small", GSID(Shape(width=32, heads=4)), calibration, {"notes": "test"})
    return tmp_path


def test_it_comes_back_as_it_was(folder: Path, tmp_path: Path) -> None:
    scorer = load(folder)
    again = tmp_path / "again"
    save(again, scorer.name, scorer.model, scorer.calibration, {})
    one, other = scorer(graph(CASE)), load(again)(graph(CASE))
    assert one.method == "small"
    assert np.array_equal(one.probability, other.probability, equal_nan=True)
    assert np.nanmin(one.probability) >= 0
    assert np.nanmax(one.probability) <= 1


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return apply


def reshape(folder: Path) -> None:
    weights = load_file(folder / "weights.safetensors")
    weights["encode.fuse.bias"] = torch.zeros(7)
    save_file(weights, folder / "weights.safetensors")


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "cannot be read"),
    "not JSON": (lambda f: (f / "config.json").write_text("{"), "cannot be read"),
    "not an object": (lambda f: (f / "config.json").write_text("[]"), "format is not"),
    "no weights": (lambda f: (f / "weights.safetensors").unlink(), "cannot be read"),
    "not safetensors": (
        lambda f: (f / "weights.safetensors").write_bytes(b"\x80\x04pickle"),
        "cannot be read",
    ),
    "another format": (edit(lambda c: c.update(format="gsid.model/9")), "format is not"),
    "another vocabulary": (edit(lambda c: c.update(schema="0")), "made for another vocabulary"),
    "another width": (
        edit(lambda c: c["shape"].update(width=64)),
        "(4, 64), found (4, 32)",
    ),
    "no such encoder": (edit(lambda c: c["shape"].update(encoder="x")), "config.json: 'x'"),
    "a shape too many": (edit(lambda c: c["shape"].update(colour=1)), "colour"),
    "short calibration": (edit(lambda c: c.update(calibration=[1])), "calibration: not three"),
    "other shapes": (reshape, "encode.fuse.bias: expected (32,), found (7,)"),
}


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused(name: str, folder: Path) -> None:
    spoil, reason = BAD[name]
    spoil(folder)
    with pytest.raises(BadModel) as caught:
        load(folder)
    assert reason in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
