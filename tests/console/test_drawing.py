import random

from gsid_service.console import cluster
from gsid_service.console.drawing import draw
from gsid_service.records import Entity
from gsid_service.schema import CONNECTED, ROUTER
from tests.console.making import ring


def test_a_small_network_is_drawn_one_by_one() -> None:
    entities, facts = ring(12)
    drawing = draw(entities, facts, {})
    assert {node["id"] for node in drawing.nodes} == {entity.id for entity in entities}
    assert all(node["members"] == 1 for node in drawing.nodes)
    assert {digest for line in drawing.lines for digest in line["facts"]} == {
        fact.key.digest for fact in facts
    }


def test_both_directions_of_a_link_are_one_line() -> None:
    entities, facts = ring(5)
    back = [f._replace(args=f.args[::-1]) for f in facts if f.predicate == CONNECTED.name]
    once, both = draw(entities, facts, {}), draw(entities, [*facts, *back], {})
    assert len(once.lines) == len(both.lines)
    assert once.shape != both.shape


def test_the_shape_is_the_same_for_other_values_and_another_for_other_facts() -> None:
    entities, facts = ring(8)
    other = [fact._replace(params=dict.fromkeys(fact.params, 77)) for fact in facts]
    assert draw(entities, facts, {}).shape == draw(entities, other, {}).shape
    assert draw(entities, facts, {}).shape != draw(entities, facts[1:], {}).shape


def test_a_large_network_is_clustered_and_loses_no_router() -> None:
    entities, facts = ring(700)
    random.Random(1).shuffle(entities)
    drawing = draw(entities, facts, {})
    routers = [node for node in drawing.nodes if node["kind"] == ROUTER.name]
    assert len(routers) <= cluster.AT_MOST
    assert sum(node["members"] for node in routers) == drawing.routers == 700
    shown = {node["id"] for node in drawing.nodes}
    assert all(line["a"] in shown and line["b"] in shown for line in drawing.lines)


def test_routers_of_one_site_stand_together() -> None:
    entities, facts = ring(700)
    placed = [
        e._replace(position=(int(e.id[1:]) // 10, 0.0)) if e.kind == ROUTER.name else e
        for e in entities
    ]
    routers = [node for node in draw(placed, facts, {}).nodes if node["kind"] == ROUTER.name]
    assert [node["members"] for node in routers] == [10] * 70


def test_a_router_in_a_cluster_is_seen_with_what_is_around_it() -> None:
    entities, facts = ring(700)
    drawing = draw(entities, facts, {}, "R350")
    routers = {node["id"] for node in drawing.nodes if node["kind"] == ROUTER.name}
    assert {"R349", "R350", "R351"} <= routers
    assert len(routers) == cluster.NEAR
    assert all(node["members"] == 1 for node in drawing.nodes)


def test_a_router_without_links_joins_a_cluster_all_the_same() -> None:
    routers = [Entity(f"R{i}", ROUTER.name) for i in range(5)]
    heads = cluster.heads(routers, cluster.neighbours([("R0", "R1")]), 2)
    assert set(heads) == {f"R{i}" for i in range(5)}
    assert set(heads.values()) == {"R0", "R1"}
