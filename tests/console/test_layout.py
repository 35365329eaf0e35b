import itertools
import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.console.layout import HEIGHT, WIDTH, layout
from gsid_service.records import Entity, Fact
from gsid_service.schema import CONNECTED, EBGP, OSPF_WEIGHT, ROUTER
from tests.console.making import ring


def link(a: str, b: str) -> Fact:
    return Fact(CONNECTED.name, (a, b), {OSPF_WEIGHT.name: 10})


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(0, 8), st.randoms(use_true_random=False))
def test_all_have_a_place_on_the_map_in_whatever_order_they_come(
    routers: int, networks: int, chance: random.Random
) -> None:
    entities, facts = ring(routers, networks)
    places = layout(entities, facts)
    assert places.keys() == {entity.id for entity in entities}
    assert all(0 <= p.x <= WIDTH and 0 <= p.y <= HEIGHT for p in places.values())
    chance.shuffle(entities)
    chance.shuffle(facts)
    again = layout(entities, facts)
    assert all(np.allclose(again[name], places[name]) for name in places)


def test_routers_keep_their_place_when_others_come_and_go() -> None:
    entities, facts = ring(20)
    before = layout(entities, facts)
    entities.append(Entity("new", ROUTER.name))
    facts = [*facts[1:], link("new", "R3"), link("new", "R4")]
    after = layout(entities, facts, before)
    routers = [entity.id for entity in entities if entity.kind == ROUTER.name]
    assert all(after[name] == before[name] for name in routers if name != "new")
    middle = np.mean([before["R3"], before["R4"]], axis=0)
    assert np.linalg.norm(np.array(after["new"]) - middle) < 100


def test_peerings_and_destinations_keep_their_place_when_links_and_routes_go() -> None:
    entities, facts = ring(20, networks=8)
    before = layout(entities, facts)
    fewer = [fact for index, fact in enumerate(facts) if index % 3]
    fewer += [fact for fact in facts if fact.predicate == EBGP.name and fact not in fewer]
    assert layout(entities, fewer) != before
    assert layout(entities, fewer, before) == before


def test_no_two_routers_stand_upon_each_other() -> None:
    site = (13.4, 52.5)
    entities = [Entity(f"R{i}", ROUTER.name, position=site) for i in range(8)]
    entities += [Entity("far", ROUTER.name, position=(-74.0, 40.7))]
    places = layout(entities, [link("R0", "far")])
    at = np.array([places[entity.id] for entity in entities])
    apart = np.linalg.norm(at[:, None] - at[None], axis=2)
    assert apart[~np.eye(len(at), dtype=bool)].min() > 20


def test_a_map_has_north_above_and_east_to_the_right() -> None:
    cities = {"Seattle": (-122.3, 47.6), "Houston": (-95.4, 29.8), "New York": (-74.0, 40.7)}
    oslo = Entity("Oslo", ROUTER.name, position=(10.7, 59.9))
    rome = Entity("Rome", ROUTER.name, position=(12.5, 41.9))
    north, south = layout([oslo, rome], []).values()
    assert north.y < south.y - 100
    entities = [Entity(name, ROUTER.name, position=at) for name, at in cities.items()]
    entities.append(Entity("unknown", ROUTER.name))
    places = layout(entities, [link("Seattle", "unknown"), link("unknown", "New York")])
    assert places["Seattle"].x < places["Houston"].x < places["New York"].x
    assert places["Seattle"].y < places["New York"].y < places["Houston"].y
    assert places["Seattle"].x < places["unknown"].x < places["New York"].x


def test_without_coordinates_hops_make_the_distance() -> None:
    names = [f"R{i}" for i in range(6)]
    chain = [link(a, b) for a, b in itertools.pairwise(names)]
    places = layout([Entity(name, ROUTER.name) for name in names], chain)
    along = [np.hypot(*np.subtract(places[name], places["R0"])) for name in names]
    assert along == sorted(along)
