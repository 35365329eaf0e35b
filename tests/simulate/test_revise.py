"""Changing values in a state gives what forwarding from scratch gives."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Entity, Fact, FactKey
from gsid_service.schema import SCHEMA
from gsid_service.simulate import faults, ospf
from gsid_service.simulate.forwarding import forward, moved
from gsid_service.simulate.plane import build
from gsid_service.simulate.revise import Rows
from tests.simulate.test_forwarding import ENTITIES, link, square
from tests.simulate.test_oracle import DISPUTED, MIXED, SHARED, Draw, Style

Values = dict[tuple[FactKey, str], int]


@pytest.fixture(params=[0, ospf.FEW], ids=["some paths anew", "all paths anew"])
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ospf, "FEW", request.param)


def redrawn(facts: Sequence[Fact], count: int, rng: random.Random) -> Values:
    slots = [slot for found in faults.slots(facts).values() for slot in found]
    return {
        (facts[place].key, p.name): faults.another_value(p, facts[place].params[p.name], rng)
        for place, p in rng.sample(slots, min(count, len(slots)))
    }


def check(entities: Sequence[Entity], facts: Sequence[Fact], values: Values, med: bool) -> None:
    """Everything in the revised state is as from scratch; elsewhere nothing would have changed."""
    state = forward(build(entities, facts), med)
    rows = Rows.of(state, facts)
    # Forwarding does not depend on the route of a peer that has no session.
    asked = rows.known((*slot, v) for slot, v in values.items())
    found = rows.revise(state, asked)
    scratch = forward(build(entities, faults.with_values(facts, values)), med)
    assert found is not None
    for table in ("cost", "on_path", "first_hop"):
        one, other = (getattr(s.paths, table) for s in (found.state, scratch))
        assert np.array_equal(one, other), table
    assert np.array_equal(found.state.selection.route, scratch.selection.route)
    assert found.state.selection.outcome == scratch.selection.outcome
    assert found.state.selection.equal_peers == scratch.selection.equal_peers
    everything = range(len(scratch.plane.networks))
    assert np.array_equal(found.state.hops(everything), scratch.hops(everything))
    untouched = sorted(set(everything) - set(found.networks))
    if untouched:
        assert np.array_equal(state.hops(untouched), scratch.hops(untouched))
    assert np.array_equal(moved(state, found.state), moved(state, scratch))


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("split", ["standard", "larger", "real"])
def test_a_revised_state_is_the_one_from_scratch(split: str) -> None:
    rng = random.Random(split)
    for index in range(4):
        case = SPLITS[split].case("revise", index)
        for count in (1, 1, 1, 1, 1, 1, 1, 1, 2, 5):
            check(case.entities, case.facts, redrawn(case.facts, count, rng), med=True)


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("style", [MIXED, DISPUTED, SHARED], ids=["mixed", "disputed", "shared"])
def test_reflectors_that_disagree_settle_as_from_scratch(style: Style) -> None:
    rng = random.Random(repr(style))
    for _ in range(60):
        case = Draw(rng, style).case()
        for count in (1, 1, 3):
            check(case.entities, case.facts, redrawn(case.facts, count, rng), rng.random() < 0.5)


def test_directions_reported_apart_are_changed_apart() -> None:
    facts = (*square(), link("R1", "R0", 1))
    state = forward(build(ENTITIES, facts))
    revised = Rows.of(state, facts).revise(state, [(facts[0].key, "ospf_weight", 9)])
    assert revised is not None
    assert revised.state.by_name() == state.by_name()


def test_what_forwarding_does_not_depend_on() -> None:
    facts = square()
    state = forward(build(ENTITIES, facts))
    session = Fact("ibgp", ("R0", "RR")).key
    assert Rows.of(state, facts).revise(state, [(session, SCHEMA.monitored[0].name, 1)]) is None
