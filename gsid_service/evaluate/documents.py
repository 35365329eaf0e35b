"""Cases as JSON: one line in a cache file, or a folder of documents for people and other tools."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gsid_service.ingest.shapes import WireFact, WireFactKey, WireSnapshot
from gsid_service.ingest.wire import dump_fact, dump_snapshot, read_facts, read_snapshot
from gsid_service.records import Collector, Entity, Fact, FactKey, Snapshot
from gsid_service.schema import Group
from gsid_service.simulate.cases import Case
from gsid_service.simulate.faults import Label

COLLECTOR = Collector("simulator", "simulated")
OBSERVED_AT = datetime(2026, 1, 1, tzinfo=UTC)
BASELINE, OBSERVED = 0, 1  # sequence numbers
JUDGED_AT_MOST = 500  # labels, each of which takes a simulation to say whether it moves traffic


class LabelLine(BaseModel):
    fact: WireFactKey
    parameter: str
    observed: int
    expected: int
    kind: str

    def record(self) -> Label:
        fact = FactKey(self.fact.predicate, tuple(self.fact.args))
        return Label(fact, self.parameter, self.observed, self.expected, self.kind)


class CaseLine(BaseModel):
    """A case as a line of a cache file."""

    topology: str
    snapshot: WireSnapshot
    intents: list[WireFact]
    labels: list[LabelLine]
    changes: list[str]
    baseline: WireSnapshot | None


def write_folder(case: Case, folder: Path, network: str) -> None:
    """snapshot.json, intents.json, labels.json, and baseline.json where the case has one."""
    folder.mkdir(parents=True)
    known = len(case.labels) <= JUDGED_AT_MOST
    harmful = case.harmful() if known else (None,) * len(case.labels)
    pairs = zip(case.labels, harmful, strict=True)
    labels = [_label_document(label) | {"harmful": moves} for label, moves in pairs]
    documents: dict[str, Any] = {
        "snapshot": _snapshot(network, OBSERVED, case.entities, case.facts),
        "intents": {"intents": [dump_fact(intent) for intent in case.intents]},
        "labels": {"labels": labels, "changes": list(case.changes)},
    }
    if case.baseline:
        documents["baseline"] = _snapshot(network, BASELINE, *case.baseline)
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def to_line(case: Case) -> str:
    network = case.topology
    document = {
        "topology": case.topology,
        "snapshot": _snapshot(network, OBSERVED, case.entities, case.facts),
        "intents": [dump_fact(intent) for intent in case.intents],
        "labels": [_label_document(label) for label in case.labels],
        "changes": case.changes,
        "baseline": _snapshot(network, BASELINE, *case.baseline) if case.baseline else None,
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


def from_line(line: str) -> Case:
    read = CaseLine.model_validate_json(line)
    snapshot = read_snapshot(read.snapshot)
    baseline = read_snapshot(read.baseline) if read.baseline else None
    return Case(
        topology=read.topology,
        entities=snapshot.entities,
        facts=snapshot.facts,
        intents=read_facts(read.intents, snapshot.entities, Group.INTENT),
        labels=tuple(label.record() for label in read.labels),
        changes=tuple(read.changes),
        baseline=(baseline.entities, baseline.facts) if baseline else None,
    )


def _snapshot(
    network: str, sequence: int, entities: tuple[Entity, ...], facts: tuple[Fact, ...]
) -> dict[str, Any]:
    view = Snapshot(network, COLLECTOR, sequence, OBSERVED_AT, True, entities, facts)
    return dump_snapshot(view)


def _label_document(label: Label) -> dict[str, Any]:
    fact = {"predicate": label.fact.predicate, "args": list(label.fact.args)}
    return label._asdict() | {"fact": fact}
