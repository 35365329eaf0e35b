"""The graph has the design's columns, typed edges, a reference of the same shape, and evidence."""

import numpy as np

from gsid_service.assemble.graph import assemble, renewed, with_effects
from gsid_service.records import EVIDENCE, Effect, Entity, Fact
from gsid_service.schema import SCHEMA

ENTITIES = (
    Entity("R1", "router"),
    Entity("RR", "route_reflector"),
    Entity("A@R1", "external_as", 65001),
    Entity("N", "network"),
)
ROUTE = Fact("bgp_route", ("A@R1", "N"), {"local_pref": 200, "as_path_length": 2, "speaker": 7})
LINK = Fact("connected", ("R1", "RR"), {"ospf_weight": 10})
INTENT = Fact("fwd", ("R1", "N", "A@R1"), {}, False)


def test_features_are_the_design_s_columns() -> None:
    graph = assemble(ENTITIES, (LINK, ROUTE), (INTENT,))
    not_applicable = [-1.0] * 15
    router = not_applicable.copy()
    router[0], router[1], router[14] = 0, 0, 1
    assert graph.features[0].tolist() == router
    # kind, index, predicate, holds, local_pref, as_path_length, origin, med, is_ebgp, speaker
    assert graph.features[5].tolist() == [1, 5, 0, 1, 200, 2, 0, 0, 1, 7, *[-1] * 5]
    assert graph.features[6].tolist() == [1, 6, 4, 0, *[-1] * 11]
    assert graph.features.shape == (7, SCHEMA.width)


def test_edges_lead_from_facts_to_entities_by_role() -> None:
    graph = assemble(ENTITIES, (LINK, ROUTE), (INTENT,))
    edges = [[4, 0, 0], [4, 1, 1], [5, 2, 0], [5, 3, 1], [6, 0, 0], [6, 3, 1], [6, 2, 2]]
    assert graph.edges.tolist() == edges
    assert graph.facts[2] == INTENT.key


def test_the_reference_has_the_baseline_s_values_and_nothing_for_new_facts() -> None:
    baseline = (Fact("connected", ("R1", "RR"), {"ospf_weight": 99}), Fact("ebgp", ("R9", "X")))
    graph = assemble(ENTITIES, (LINK, ROUTE), (), baseline)
    assert graph.reference is not None
    assert graph.reference.shape == graph.features.shape
    assert graph.reference[4, 10] == 99
    assert (graph.reference[5, 4:11] == -1).all()
    assert np.array_equal(graph.reference[:4], graph.features[:4])


def test_without_evidence_nothing_is_counted_of_any_fact() -> None:
    graph = assemble(ENTITIES, (LINK, ROUTE), (INTENT,))
    assert graph.evidence.tolist() == [[0] * len(EVIDENCE)] * 3


def test_other_values_give_the_graph_that_is_assembled_anew() -> None:
    counts = np.arange(2.0 * len(EVIDENCE)).reshape(2, -1)
    route = ROUTE._replace(params={"local_pref": 80, "as_path_length": 3})  # no speaker any more
    tried = {(ROUTE.key, "med"): Effect(1, 2, 3, 4, 5, 6)}
    before = assemble(ENTITIES, (LINK, ROUTE), (), (LINK, ROUTE), exact=True)
    rows = {LINK.key: 0, ROUTE.key: 1}
    adopted = {(ROUTE.key, "local_pref"): Effect(6, 5, 4, 3, 2, 1)}
    found = with_effects(renewed(before, {1: route}, counts, {LINK.key}), tried, adopted, rows)
    args = (LINK, ROUTE), counts, tried, adopted, {LINK.key}, True
    anew = assemble(ENTITIES, (LINK, route), (), *args)
    for name in ("features", "reference", "evidence", "reverts", "adoptions", "edges", "stale"):
        assert np.array_equal(getattr(found, name), getattr(anew, name)), name
    assert (found.facts, found.entities, found.exact) == (anew.facts, anew.entities, anew.exact)
    assert before.features[5, 4] == 200


def test_large_values_stay_exact() -> None:
    route = ROUTE._replace(params={"local_pref": 2**32 - 1, "as_path_length": 1})
    assert assemble(ENTITIES, (route,)).features[4, 4] == 2**32 - 1


def test_stale_facts_are_marked() -> None:
    graph = assemble(ENTITIES, (LINK, ROUTE), stale={ROUTE.key})
    assert graph.stale.tolist() == [False, True]


def test_an_empty_network_is_a_graph_too() -> None:
    graph = assemble((), ())
    assert graph.features.shape == (0, SCHEMA.width)
    assert graph.edges.shape == (0, 3)
