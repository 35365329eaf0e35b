"""The three settings: from a case to the graph that a detector sees, and what is wrong in it.

- snapshot: the observed values and the intents, nothing else.
- reference: also a reference copy in which each value is stale or wrong with probability 2 %.
- operations: the approved baseline, with legitimate changes since among the anomalies.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gsid_service.assemble.graph import assemble
from gsid_service.records import BoolArray, Entity, Fact, Graph
from gsid_service.schema import SCHEMA
from gsid_service.simulate import faults
from gsid_service.simulate.cases import Case
from gsid_service.simulate.evidence import evidence
from gsid_service.simulate.faults import Label
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench, changed, reverts, try_adoptions

SNAPSHOT, REFERENCE, OPERATIONS = "snapshot", "reference", "operations"
SETTINGS = (SNAPSHOT, REFERENCE, OPERATIONS)
STALE = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A graph, and for each of its facts and monitored parameters whether the value is wrong."""

    graph: Graph
    wrong: BoolArray  # [F, P]
    case: Case

    def harmful(self) -> BoolArray:
        """[F, P]: the wrong values that, alone, move traffic."""
        moving = [
            x for x, moves in zip(self.case.labels, self.case.harmful(), strict=True) if moves
        ]
        return _marked(self.graph, moving)


def with_faults(
    case: Case, rate: float, rng: random.Random, reference: bool, aided: bool = True
) -> Sample:
    """The snapshot and the reference setting: the paper's injection laid upon a clean case.

    Only a detector that is `aided` is told what reverts and adoptions would do, and how values
    stand among their siblings: the paper's methods know nothing of these.
    """
    faulty = case.with_faults(rate, rng)
    copy = faults.inject(case.facts, STALE, rng)[0] if reference else None
    return _sample(faulty, copy, case.entities, aided)


def in_operation(case: Case) -> Sample:
    """The operations setting; the case brings its anomalies and its baseline along."""
    if case.baseline is None:
        raise ValueError("a clean case has no baseline: operations needs an operations split")
    entities, facts = case.baseline
    return _sample(case, facts, entities, aided=True, exact=True)


def _sample(
    case: Case,
    reference: Sequence[Fact] | None,
    reference_entities: Sequence[Entity],
    aided: bool,
    exact: bool = False,
) -> Sample:
    observed = forward(build(case.entities, case.facts), always_compare_med=True)
    approved, tried, adopted = None, {}, {}
    if reference is not None:
        approved = forward(build(reference_entities, reference), always_compare_med=True)
        if aided:
            tried = reverts(Bench(observed, case.facts, case.intents), case.facts, reference)
            bench = Bench(approved, reference, case.intents)
            adopted = try_adoptions(bench, list(changed(reference, case.facts)))
    said = evidence(case.facts, case.intents, observed, approved)
    graph = assemble(
        *(case.entities, case.facts, case.intents, reference, said, tried, adopted),
        exact=exact,
        compare=aided,
    )
    return Sample(graph, _marked(graph, case.labels), case)


def _marked(graph: Graph, labels: Sequence[Label]) -> BoolArray:
    columns = {parameter.name: i for i, parameter in enumerate(SCHEMA.monitored)}
    rows = {key: row for row, key in enumerate(graph.facts)}
    marked = np.zeros((len(graph.facts), len(columns)), dtype=np.bool_)
    for label in labels:
        marked[rows[label.fact], columns[label.parameter]] = True
    return marked
