"""The verifier as a detector, alone or with the scores of another: a `Graph` in, `Scores` out.

A graph holds all that it was assembled from, so the network is read back from it and diagnosed as
the service does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gsid_service.diagnose.diagnosis import Limits, diagnose
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.records import Entity, Fact, Graph, Intents, Scores, Severity
from gsid_service.schema import SCHEMA, Group
from gsid_service.score.rivals import diff

Detector = Callable[[Graph], Scores]
UNDECIDED = 0.3  # of a value that changed, before its revert is tried
NO_HURRY = Limits(seconds=60.0)


@dataclass(frozen=True)
class Verified:
    """A detector whose scores are the prior of the search for reverts."""

    detector: Detector
    limits: Limits = NO_HURRY

    def __call__(self, graph: Graph) -> Scores:
        scores = self.detector(graph)
        if graph.reference is None:
            return scores
        found = diagnose(read(graph), lambda _: scores, self.limits)
        rows = {key: row for row, key in enumerate(scores.facts)}
        columns = {name: column for column, name in enumerate(scores.parameters)}
        probability = np.full_like(scores.probability, np.nan)
        harmful = np.zeros(probability.shape, dtype=np.bool_)
        for value in found.values:
            at = rows[value.fact], columns[value.parameter]
            proof = found.proofs.get(value.slot)
            probability[at] = value.score
            harmful[at] = proof is not None and proof.severity is not Severity.MINOR
        method = f"{scores.method}+verifier"
        return replace(scores, method=method, probability=probability, harmful=harmful)


def _undecided(graph: Graph) -> Scores:
    """Every change is as suspicious as the next: the search for reverts alone decides."""
    changed = diff(graph)
    return replace(changed, method="undecided", probability=UNDECIDED * changed.probability)


verifier = Verified(_undecided)


def read(graph: Graph) -> Observation:
    """The network that a graph was assembled from; the data sets compare MED across all ASes.

    Whether a session was there before cannot be told: without a route, none makes a difference.
    """
    facts = _facts(graph, graph.features)
    is_intent = [SCHEMA.fact[fact.predicate].group is Group.INTENT for fact in facts]
    routing = [fact for fact, intent in zip(facts, is_intent, strict=True) if not intent]
    intents = [fact for fact, intent in zip(facts, is_intent, strict=True) if intent]
    entities = _entities(graph)
    reference = None
    if graph.reference is not None:
        before = _facts(graph, graph.reference)[: len(routing)]
        known = [
            fact for fact in before if fact.params or not SCHEMA.fact[fact.predicate].parameters
        ]
        reference = Reference(entities, known, graph.exact)
    return Observation(
        entities, routing, Intents(tuple(intents)), reference, always_compare_med=True
    )


def _entities(graph: Graph) -> list[Entity]:
    kinds = {kind.column: kind.name for kind in SCHEMA.entities}
    columns = list(kinds)
    chosen = np.argmax(graph.features[: len(graph.entities), columns], axis=1)
    return [
        Entity(name, kinds[columns[at]])
        for name, at in zip(graph.entities, chosen.tolist(), strict=True)
    ]


def _facts(graph: Graph, table: np.ndarray) -> list[Fact]:
    rows = table[len(graph.entities) :].astype(np.int64).tolist()
    return [
        Fact(
            *key,
            {
                parameter.name: row[parameter.column]
                for parameter in SCHEMA.fact[key.predicate].parameters
                if row[parameter.column] >= 0
            },
            holds=bool(row[SCHEMA.HOLDS]),
        )
        for key, row in zip(graph.facts, rows, strict=True)
    ]
