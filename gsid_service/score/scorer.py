"""The scorer: a model folder in, a detector out, `Graph -> Scores`, its scores calibrated.

A folder holds `weights.safetensors` and `config.json`, which says how to rebuild the model, for
which vocabulary it was trained, and how its logits become probabilities.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from gsid_service.records import FloatArray, Graph, Scores
from gsid_service.schema import SCHEMA, Schema
from gsid_service.score.batch import Batch, Vocabulary, collate
from gsid_service.score.calibration import Calibration
from gsid_service.score.gsid import GSID, Shape

FORMAT = "gsid.model/1"


class BadModel(ValueError):
    """The folder does not hold a model that this version can use."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A model that is ready to score."""

    name: str
    model: GSID
    calibration: Calibration
    schema: Schema = SCHEMA

    def __call__(self, graph: Graph) -> Scores:
        return self.score_many([graph])[0]

    def score_many(self, graphs: Sequence[Graph]) -> list[Scores]:
        """Score several graphs in one pass."""
        names = tuple(parameter.name for parameter in self.schema.monitored)
        found = logits(self.model, graphs, self.schema)
        return [
            Scores(
                self.name,
                graph.facts,
                names,
                self.calibration.probability(graph, here, self.schema),
            )
            for graph, here in zip(graphs, found, strict=True)
        ]


def use_cores(count: int) -> None:
    """How many cores the arithmetic may use."""
    torch.set_num_threads(count)


def logits(model: GSID, graphs: Sequence[Graph], schema: Schema = SCHEMA) -> list[FloatArray]:
    """[F, P] of each graph, in the order of its facts; not a number where it does not apply."""
    batch = collate(graphs, Vocabulary(schema), schema)
    model.eval()
    with torch.inference_mode():
        found = model(batch).double().numpy()
    return _apart(np.where(batch.applies.numpy() > 0, found, np.nan), batch, graphs)


def _apart(found: FloatArray, batch: Batch, graphs: Sequence[Graph]) -> list[FloatArray]:
    unsorted = np.empty_like(found)
    unsorted[batch.order] = found
    return np.split(unsorted, np.cumsum([len(graph.facts) for graph in graphs])[:-1])


def fingerprint(schema: Schema = SCHEMA) -> str:
    """What the vocabulary looks like to a model: kinds, codes, roles, columns."""
    facts = [
        [f.name, f.code, len(f.roles), [[p.name, p.column, p.order.value] for p in f.parameters]]
        for f in schema.facts
    ]
    entities = [[e.name, e.column] for e in schema.entities]
    return sha256(json.dumps([facts, entities]).encode()).hexdigest()[:16]


def save(
    folder: Path, name: str, model: GSID, calibration: Calibration, notes: dict[str, Any]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "format": FORMAT,
        "name": name,
        "schema": fingerprint(),
        "shape": asdict(model.shape),
        "calibration": calibration.document(),
        **notes,
    }
    save_file(model.state_dict(), folder / "weights.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def load(folder: Path, schema: Schema = SCHEMA) -> Scorer:
    """Read a model folder; raises `BadModel` with one line that says what is wrong with it."""
    try:
        config = json.loads((folder / "config.json").read_text())
        weights = load_file(folder / "weights.safetensors")
    except (OSError, ValueError, SafetensorError) as error:
        raise BadModel(f"{folder}: cannot be read: {error}") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise BadModel(f"{folder}: config.json: format is not {FORMAT}")
    if config.get("schema") != fingerprint(schema):
        raise BadModel(f"{folder}: config.json: schema: made for another vocabulary")
    try:
        model = GSID(Shape(**config["shape"]), schema)
        calibration = Calibration.read(config["calibration"], schema)
    except (KeyError, TypeError, ValueError) as error:
        raise BadModel(f"{folder}: config.json: {error}") from None
    _check(folder, model, weights)
    model.load_state_dict(weights)
    return Scorer(str(config.get("name", folder.name)), model.eval(), calibration, schema)


def _check(folder: Path, model: GSID, weights: dict[str, torch.Tensor]) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            wanted, has = expected.get(name, "nothing"), found.get(name, "nothing")
            raise BadModel(f"{folder}: weights: {name}: expected {wanted}, found {has}")
