"""A graph is read back to the network it was assembled from, and judged as the service judges."""

import numpy as np

from gsid_service.evaluate.settings import in_operation
from gsid_service.evaluate.splits import SPLITS
from gsid_service.evaluate.verified import Verified, read, verifier
from gsid_service.records import Graph, Scores
from gsid_service.schema import SCHEMA
from gsid_service.score.rivals import diff

CASE = SPLITS["operations-standard"].case("verified", 3)
GRAPH = in_operation(CASE).graph


def test_a_graph_holds_all_that_it_was_assembled_from() -> None:
    assert CASE.baseline
    found = read(GRAPH)
    assert [(e.id, e.kind) for e in found.entities] == [(e.id, e.kind) for e in CASE.entities]
    assert [f.key for f in found.facts] == [f.key for f in CASE.facts]
    for fact, original in zip(found.facts, CASE.facts, strict=True):
        assert fact.params.items() >= original.params.items()
    assert found.wanted.stated == CASE.intents
    assert found.reference is not None
    before = {fact.key: fact.params for fact in CASE.baseline[1]}
    for fact in (fact for fact in found.reference.facts if fact.params):
        assert fact.params.items() >= before[fact.key].items()


def test_the_verifier_suspects_only_what_changed() -> None:
    changed = diff(GRAPH).probability == 1
    scores = verifier(GRAPH)
    assert not (scores.probability[~np.isnan(scores.probability)] > 1).any()
    assert not ((scores.probability > 0.5) & ~changed).any()


def test_without_a_reference_the_scores_stand() -> None:
    half = len(SCHEMA.monitored)

    def even(graph: Graph) -> Scores:
        names = tuple(p.name for p in SCHEMA.monitored)
        return Scores("even", graph.facts, names, np.full((len(graph.facts), half), 0.5))

    bare = read(GRAPH)
    assert bare.reference is not None
    lone = Graph(**{n: getattr(GRAPH, n) for n in Graph.__slots__} | {"reference": None})
    assert (Verified(even)(lone).probability == 0.5).all()
