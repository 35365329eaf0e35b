"""Topologies are connected, simple and reproducible."""

import random

import networkx as nx
import pytest

from gsid_service.simulate import topologies
from gsid_service.simulate.topologies import Topology


def is_simple_and_connected(topology: Topology) -> bool:
    graph = nx.Graph(topology.links)
    ordered = all(a < b for a, b in topology.links)
    return (
        ordered
        and sorted(set(topology.links)) == list(topology.links)
        and len(graph) == topology.routers
        and nx.is_connected(graph)
    )


@pytest.mark.parametrize("routers", [3, 4, 16, 23, 300])
def test_a_planar_topology_is_planar_and_connected(routers: int) -> None:
    topology = topologies.planar(routers, random.Random(routers))
    assert topology.routers == routers
    assert is_simple_and_connected(topology)
    assert nx.check_planarity(nx.Graph(topology.links))[0]


def test_the_same_seed_draws_the_same() -> None:
    one, other = (topologies.planar(20, random.Random(5)) for _ in range(2))
    assert one == other
    assert one != topologies.planar(20, random.Random(6))


def test_too_few_routers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 routers, not 2"):
        topologies.planar(2, random.Random(0))


def test_a_real_topology_by_name() -> None:
    abilene = topologies.real("topozoo/Abilene")
    assert (abilene.routers, len(abilene.links)) == (11, 14)
    assert abilene.labels[0] == "New York"
    assert abilene.positions[0] == (-74.01, 40.71)


@pytest.mark.parametrize("name", ["topozoo/Atlantis", "../secrets", ""])
def test_an_unknown_name_is_refused(name: str) -> None:
    with pytest.raises(KeyError, match="no topology named"):
        topologies.real(name)


def test_every_listed_topology_can_be_used() -> None:
    names = topologies.names()
    assert len([n for n in names if n.startswith("topozoo/")]) >= 200
    assert all(is_simple_and_connected(topologies.real(name)) for name in names)
    places = [place for name in names for place in topologies.real(name).positions]
    assert all(abs(x) <= 180 and abs(y) <= 90 for x, y in places)


def test_a_drawn_topology_is_an_operator_s_of_10_to_100_routers() -> None:
    rng = random.Random(1)
    drawn = [topologies.draw(rng) for _ in range(200)]
    assert all(10 <= t.routers <= 100 for t in drawn)
    assert {t.name.split("/")[0] for t in drawn} == {"topozoo", "sndlib", "caida"}


@pytest.mark.parametrize("routers", [1, 2, 50, 554])
def test_a_part_is_connected_and_keeps_names_and_places(routers: int) -> None:
    whole = topologies.real("backbone/europe_nosc")
    part = topologies.part(whole, routers)
    assert part.routers == routers
    assert routers == 1 or is_simple_and_connected(part)
    assert set(zip(part.labels, part.positions, strict=True)) <= set(
        zip(whole.labels, whole.positions, strict=True)
    )


@pytest.mark.parametrize("routers", [0, 12])
def test_a_part_is_no_larger_than_the_whole(routers: int) -> None:
    with pytest.raises(ValueError, match=f"has 11 routers, not {routers}"):
        topologies.part(topologies.real("topozoo/Abilene"), routers)
