"""Cases: intents that hold in the design, changes that were meant, labels that are true."""

import random
from collections import Counter

import pytest

from gsid_service.evaluate.splits import DATA_SETS, SPLITS
from gsid_service.simulate import designs, faults, intents
from gsid_service.simulate.cases import CHANGES, Case
from gsid_service.simulate.designs import Design
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build

OPERATIONS = [SPLITS["operations-standard"].case("cases", i) for i in range(150)]


def state(case: Case, right: bool) -> Forwarding:
    facts = faults.restored(case.facts, case.labels) if right else case.facts
    return forward(build(case.entities, facts), always_compare_med=True)


def test_intents_hold_once_the_mistakes_are_undone() -> None:
    for case in OPERATIONS:
        right = state(case, right=True)
        assert all(intents.satisfied(intent, right) for intent in case.intents)


def test_mistakes_break_intents_often_and_changes_never() -> None:
    broken = [bool(intents.broken(case.intents, state(case, right=False))) for case in OPERATIONS]
    for case, is_broken in zip(OPERATIONS, broken, strict=True):
        assert not is_broken or case.labels
    assert sum(broken) > len(broken) / 4


def test_every_network_has_one_outcome_before_and_after() -> None:
    for case in OPERATIONS:
        assert not state(case, right=False).unsettled()
        assert not state(case, right=True).unsettled()
        assert case.baseline
        assert not forward(build(*case.baseline), always_compare_med=True).unsettled()


def test_each_change_comes_at_its_rate() -> None:
    counted = Counter(change for case in OPERATIONS for change in case.changes)
    assert counted.keys() == CHANGES.keys()
    assert all(0.2 < n / len(OPERATIONS) < 0.6 for n in counted.values())


def test_without_changes_and_mistakes_it_is_the_baseline() -> None:
    quiet = [c for c in OPERATIONS if not c.changes]
    assert quiet
    for case in quiet:
        assert case.baseline == (case.entities, faults.restored(case.facts, case.labels))


def test_harmful_is_what_moves_traffic_alone() -> None:
    case = next(c for c in OPERATIONS if len(c.labels) == 1 and c.harmful() == (True,))
    assert state(case, right=True).by_name(equal=True) != state(case, right=False).by_name(True)
    idle = next(c for c in OPERATIONS if len(c.labels) == 1 and c.harmful() == (False,))
    assert state(idle, right=True).by_name(equal=True) == state(idle, right=False).by_name(True)


@pytest.fixture
def design() -> Design:
    rng = random.Random("changes")
    data_set = DATA_SETS["standard"]
    return designs.draw(data_set.topology(rng), data_set.size, rng)[0]


def differing(before: Design, after: Design) -> list[int]:
    pairs = zip(before.weights, after.weights, strict=True)
    return [i for i, (a, b) in enumerate(pairs) if a != b]


def test_retune_redraws_a_few_weights(design: Design) -> None:
    retuned = CHANGES["retune"](design, random.Random(1))
    assert 1 <= len(differing(design, retuned)) <= 8
    assert retuned.peerings == design.peerings


def test_drain_raises_all_links_of_one_router(design: Design) -> None:
    drained = CHANGES["drain"](design, random.Random(1))
    links = [design.topology.links[i] for i in differing(design, drained)]
    assert set.intersection(*map(set, links))
    assert all(drained.weights[i] == 31 for i in differing(design, drained))


def test_rehome_redraws_one_network_s_routes_and_keeps_its_peerings(design: Design) -> None:
    moved = CHANGES["rehome"](design, random.Random(1))
    pairs = list(zip(design.peerings, moved.peerings, strict=True))
    assert all((a.peer, a.gateway, a.network) == (b.peer, b.gateway, b.network) for a, b in pairs)
    assert len({a.network for a, b in pairs if a.route != b.route}) == 1


def test_swap_exchanges_two_gateways_attributes(design: Design) -> None:
    swapped = CHANGES["swap"](design, random.Random(4))
    changed = [
        (a, b) for a, b in zip(design.peerings, swapped.peerings, strict=True) if a.route != b.route
    ]
    (a, after_a), (b, after_b) = changed
    assert a.network == b.network
    assert (after_a.route, after_b.route) == (b.route, a.route)


def test_peer_adds_one_peering_for_a_known_network(design: Design) -> None:
    grown = CHANGES["peer"](design, random.Random(1))
    assert grown.peerings[:-1] == design.peerings
    assert grown.peerings[-1].network in design.networks


def test_the_paper_s_injection_keeps_intents_and_entities() -> None:
    clean = SPLITS["real"].case("cases", 0)
    faulty = clean.with_faults(0.4, random.Random(1))
    assert (faulty.entities, faulty.intents) == (clean.entities, clean.intents)
    assert faults.restored(faulty.facts, faulty.labels) == clean.facts
