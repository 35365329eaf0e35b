import random

import pytest

from gsid_service.console import cluster
from gsid_service.console.drawing import draw
from gsid_service.records import Entity, Fact
from gsid_service.schema import CONNECTED, EBGP, EXTERNAL_AS, NETWORK, ROUTER
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
    assert len(routers) <= cluster.CLUSTERS
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


def test_sites_that_are_too_many_join_as_a_whole() -> None:
    entities, facts = ring(700)
    placed = [
        e._replace(position=(int(e.id[1:]) // 2, 0.0)) if e.kind == ROUTER.name else e
        for e in entities
    ]
    drawing = draw(placed, facts, {})
    head = {f"R{i}": drawing.heads.get(f"R{i}", f"R{i}") for i in range(700)}
    assert all(head[f"R{i}"] == head[f"R{i + 1}"] for i in range(0, 700, 2))
    assert len(set(head.values())) == cluster.CLUSTERS


def test_destinations_that_are_too_many_join_by_address() -> None:
    entities, facts = ring(12, networks=200)
    drawing = draw(entities, facts, {})
    pills = [node for node in drawing.nodes if node["kind"] == NETWORK.name]
    assert len(pills) <= cluster.NETWORKS
    assert sum(node["members"] for node in pills) == 200
    assert [drawing.heads[f"10.{i}.0.0/16"] for i in (1, 2, 3)] == ["10.0.0.0/16"] * 3
    assert {digest for line in drawing.lines for digest in line["facts"]} == {
        fact.key.digest for fact in facts
    }


def test_peerings_that_are_too_many_for_their_gateway_join() -> None:
    entities, facts = ring(12)
    names = [f"AS{65100 + n}@R1" for n in range(cluster.PEERINGS + 1)]
    entities += [Entity(name, EXTERNAL_AS.name, asn=65100) for name in names]
    few = [Fact(EBGP.name, ("R1", name)) for name in names[:-1]]
    assert not draw(entities, [*facts, *few], {}).heads
    drawing = draw(entities, [*facts, *few, Fact(EBGP.name, ("R1", names[-1]))], {})
    assert drawing.heads == dict.fromkeys(names[1:], names[0])


def test_a_clustered_map_keeps_its_places_when_a_link_goes() -> None:
    entities, facts = ring(700)
    before = draw(entities, facts, {}).places
    after = draw(entities, facts[1:], before).places
    both = [e.id for e in entities if e.kind == ROUTER.name and e.id in before.keys() & after]
    assert len(both) > cluster.CLUSTERS / 2
    assert all(after[name] == before[name] for name in both)


@pytest.mark.parametrize("centre", ["AS65001@R175", "10.0.0.0/16"])
def test_what_is_no_router_is_seen_with_its_gateways(centre: str) -> None:
    drawing = draw(*ring(700), {}, centre)
    shown = {node["id"] for node in drawing.nodes}
    assert {centre, "R174", "R175", "R176"} <= shown


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
