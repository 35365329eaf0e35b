"""The demo's networks look like an operator's, and are what the service takes."""

import json
from ipaddress import ip_network

import networkx as nx
import pytest

from gsid_service import schema
from gsid_service.demo.network import large, network
from gsid_service.ingest.wire import dump_snapshot, parse_snapshot
from gsid_service.records import Snapshot
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.topologies import real

ABILENE = "topozoo/Abilene"


def routers(whole: Snapshot) -> list[str]:
    kinds = {kind.name for kind in schema.ROUTERS}
    return [entity.id for entity in whole.entities if entity.kind in kinds]


def values(whole: Snapshot, parameter: schema.Parameter) -> set[int]:
    return {f.params[parameter.name] for f in whole.facts if parameter.name in f.params}


@pytest.fixture(params=["topozoo/Abilene", "topozoo/Geant2012", "large"])
def whole(request: pytest.FixtureRequest) -> Snapshot:
    return large(300) if request.param == "large" else network("n", real(request.param), 3)


def test_the_service_takes_it_as_it_is(whole: Snapshot) -> None:
    assert parse_snapshot(json.dumps(dump_snapshot(whole))) == whole


def test_every_router_has_a_name_and_a_place(whole: Snapshot) -> None:
    places = [e for e in whole.entities if e.id in routers(whole)]
    assert len({e.id for e in places}) == len(places)
    assert all(e.label and e.position and " " not in e.id for e in places)


def test_values_are_such_as_engineers_choose(whole: Snapshot) -> None:
    assert values(whole, schema.LOCAL_PREF) == {100, 200}
    assert values(whole, schema.MED) == {0, 50}
    assert values(whole, schema.AS_PATH_LENGTH) <= {2, 3, 4, 5}
    costs = values(whole, schema.OSPF_WEIGHT)
    assert all(cost % 10 == 0 and 10 <= cost <= 200 for cost in costs)
    assert len(costs) > 5
    prefixes = [e.id for e in whole.entities if e.kind == schema.NETWORK.name]
    assert all(not ip_network(prefix).is_global for prefix in prefixes)


def test_every_destination_has_one_outcome_and_is_reached_by_all(whole: Snapshot) -> None:
    state = forward(build(whole.entities, whole.facts))
    assert state.unsettled() == {}
    assert all(hop for hops in state.by_name().values() if hops for hop in hops.values())


def test_names_are_those_of_the_cities() -> None:
    whole = network("abilene", real(ABILENE), 0)
    new_york = next(e for e in whole.entities if e.id == "New-York")
    assert (new_york.label, new_york.position) == ("New York", (-74.01, 40.71))


def test_routers_in_one_city_are_told_apart() -> None:
    names = routers(network("n", real("topozoo/Bellsouth"), 0))
    assert len(names) == len(set(names)) == 50
    assert any(name.endswith("-2") for name in names)


def test_the_same_seed_makes_the_same() -> None:
    one, same, other = (network("n", real(ABILENE), seed) for seed in (1, 1, 2))
    assert one == same
    assert one.facts != other.facts


@pytest.mark.parametrize("count", [10, 120, 300])
def test_a_large_network_has_as_many_routers_as_asked_for(count: int) -> None:
    whole = large(count)
    links = [f.args for f in whole.facts if f.predicate == schema.CONNECTED.name]
    graph = nx.Graph([(a, b) for a, b in links])
    assert len(graph) == len(routers(whole)) == count
    assert nx.is_connected(graph)
