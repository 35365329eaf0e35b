"""Designs are the paper's: the pool of announcements, the reflectors, one outcome per network."""

import random

import pytest

from gsid_service.evaluate.splits import DATA_SETS
from gsid_service.simulate import designs
from gsid_service.simulate.designs import Design


@pytest.fixture(params=sorted(DATA_SETS))
def design(request: pytest.FixtureRequest) -> Design:
    data_set = DATA_SETS[request.param]
    rng = random.Random(f"test {request.param}")
    return designs.draw(data_set.topology(rng), data_set.size, rng)[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_pool_matches_its_best_ever_further(seed: int) -> None:
    pool = designs.announcements(random.Random(seed))
    assert len(pool) == 11
    best = pool[-1]
    assert pool[-3:] == [best] * 3
    assert all(r["local_pref"] == best["local_pref"] for r in pool[2:])
    assert all(r["as_path_length"] == best["as_path_length"] for r in pool[4:])
    assert all(r["origin"] == best["origin"] for r in pool[6:])
    assert best["local_pref"] == max(r["local_pref"] for r in pool)

    def preference(route: dict[str, int]) -> tuple[int, ...]:
        return -route["local_pref"], route["as_path_length"], route["origin"], route["med"]

    assert preference(best) == min(map(preference, pool))
    assert all(r["med"] <= 10 for r in pool[:6])
    assert all(0 <= r["med"] <= 29 for r in pool)


def test_two_reflectors_and_every_router_a_client_of_one(design: Design) -> None:
    sessions = [f.args for f in design.facts if f.predicate == "ibgp"]
    reflectors = {e.id for e in design.entities if e.kind == "route_reflector"}
    assert len(reflectors) == 2
    assert len([s for s in sessions if set(s) == reflectors]) == 1
    clients = [s[0] for s in sessions if s[0] not in reflectors]
    assert sorted(clients) == sorted(e.id for e in design.entities if e.kind == "router")


def test_every_network_is_announced_at_distinct_gateways(design: Design) -> None:
    for network in design.networks:
        gateways = [p.gateway for p in design.peerings if p.network == network]
        assert len(gateways) == len(set(gateways)) >= 3


def test_values_are_inside_the_paper_s_ranges(design: Design) -> None:
    assert all(1 <= weight <= 31 for weight in design.weights)


def test_every_network_has_one_outcome(design: Design) -> None:
    assert not design.forwarding().unsettled()


def test_about_two_in_a_hundred_networks_have_to_be_redrawn() -> None:
    data_set = DATA_SETS["standard"]
    unsettled = total = 0
    for seed in range(150):
        rng = random.Random(seed)
        proposed = designs.propose(data_set.topology(rng), data_set.size, rng)
        unsettled += len(proposed.forwarding().unsettled())
        total += len(proposed.networks)
    assert 0.01 < unsettled / total < 0.05


def test_settling_redraws_what_has_not_one_outcome() -> None:
    data_set = DATA_SETS["standard"]
    for seed in range(100):
        rng = random.Random(seed)
        proposed = designs.propose(data_set.topology(rng), data_set.size, rng)
        if proposed.forwarding().unsettled():
            settled, state = designs.settle(proposed, rng)
            assert not state.unsettled()
            assert settled.networks == proposed.networks
            return
    pytest.fail("no seed drew a network without exactly one outcome")
