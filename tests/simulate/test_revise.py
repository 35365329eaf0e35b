"""Changing one value in a state gives what forwarding from scratch gives."""

import random

import numpy as np
import pytest

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Fact
from gsid_service.schema import SCHEMA
from gsid_service.simulate import faults
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.revise import Rows
from tests.simulate.test_forwarding import ENTITIES, link, square


@pytest.mark.parametrize("split", ["standard", "larger", "real"])
def test_a_revised_state_is_the_one_from_scratch(split: str) -> None:
    rng = random.Random(split)
    for index in range(4):
        case = SPLITS[split].case("revise", index)
        state = forward(build(case.entities, case.facts), always_compare_med=True)
        rows = Rows.of(state, case.facts)
        slots = [slot for found in faults.slots(case.facts).values() for slot in found]
        for place, parameter in rng.sample(slots, 12):
            key = case.facts[place].key
            value = faults.another_value(parameter, case.facts[place].params[parameter.name], rng)
            facts = faults.with_values(case.facts, {(key, parameter.name): value})
            scratch = forward(build(case.entities, facts), always_compare_med=True)
            revised = rows.revise(state, key, parameter.name, value)
            assert revised is not None
            assert np.array_equal(revised.state.paths.cost, scratch.paths.cost)
            assert revised.state.selection.outcome == scratch.selection.outcome
            assert revised.state.by_name(equal=True) == scratch.by_name(equal=True)
            untouched = set(range(len(scratch.plane.networks))) - set(revised.networks)
            assert all(np.array_equal(state.next_hop[k], scratch.next_hop[k]) for k in untouched)


def test_directions_reported_apart_are_changed_apart() -> None:
    facts = (*square(), link("R1", "R0", 1))
    state = forward(build(ENTITIES, facts))
    revised = Rows.of(state, facts).revise(state, facts[0].key, "ospf_weight", 9)
    assert revised is not None
    assert revised.state.by_name() == state.by_name()


def test_what_forwarding_does_not_depend_on() -> None:
    facts = square()
    state = forward(build(ENTITIES, facts))
    session = Fact("ibgp", ("R0", "RR")).key
    assert Rows.of(state, facts).revise(state, session, SCHEMA.monitored[0].name, 1) is None
