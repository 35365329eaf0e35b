"""Injected values differ, stay in range, and their labels tell how to put them right."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.evaluate.splits import SPLITS
from gsid_service.schema import SCHEMA
from gsid_service.simulate import faults
from gsid_service.simulate.faults import SLIPS, Label

FACTS = SPLITS["standard"].case("faults", 0).facts
PARAMETERS = {p.name: p for p in SCHEMA.monitored}


def are_wrong_but_valid(labels: tuple[Label, ...]) -> bool:
    ranges = {name: p.paper or (0, 0) for name, p in PARAMETERS.items()}
    return all(
        label.observed != label.expected
        and ranges[label.parameter][0] <= label.observed <= ranges[label.parameter][1]
        for label in labels
    )


@given(st.floats(0, 1), st.integers())
def test_injection_can_be_undone(rate: float, seed: int) -> None:
    facts, labels = faults.inject(FACTS, rate, random.Random(seed))
    assert are_wrong_but_valid(labels)
    assert faults.restored(facts, labels) == FACTS
    wrong = {(label.fact, label.parameter) for label in labels}
    assert len(wrong) == len(labels)
    differing = {
        (after.key, name)
        for before, after in zip(FACTS, facts, strict=True)
        for name in before.params
        if before.params[name] != after.params[name]
    }
    assert differing == wrong


@pytest.mark.parametrize("rate", [0.01, 0.4, 0.8])
def test_the_share_of_each_parameter_is_the_rate(rate: float) -> None:
    rounds = 400
    rng = random.Random(1)
    counted = Counter(
        label.parameter for _ in range(rounds) for label in faults.inject(FACTS, rate, rng)[1]
    )
    for name, places in faults.slots(FACTS).items():
        expected = rate * len(places)
        assert counted[name] / rounds == pytest.approx(expected, abs=4 * (expected / rounds) ** 0.5)


@given(st.integers())
def test_slips_can_be_undone(seed: int) -> None:
    facts, labels = faults.slip(FACTS, random.Random(seed))
    assert are_wrong_but_valid(labels)
    assert faults.restored(facts, labels) == FACTS


def test_slips_are_0_to_4_of_every_kind() -> None:
    rng = random.Random(2)
    drawn = [faults.slip(FACTS, rng)[1] for _ in range(600)]
    kinds = Counter(label.kind for labels in drawn for label in labels)
    assert kinds.keys() == SLIPS.keys()
    # A swap makes two values wrong.
    sizes = Counter(sum(0.5 if x.kind == "swapped" else 1 for x in labels) for labels in drawn)
    assert sorted(sizes) == [0, 1, 2, 3, 4]
    assert min(sizes.values()) > 600 / 5 / 2


@pytest.mark.parametrize("kind", SLIPS)
def test_each_kind_is_what_its_name_says(kind: str) -> None:
    rng = random.Random(kind)
    values = {name: {FACTS[s.place].params[name] for s in places} for name, places in all_slots()}
    found = 0
    for name, places in all_slots() * 20:
        for slot, value in SLIPS[kind](FACTS, places, rng).items():
            before = FACTS[slot.place].params[name]
            found += 1
            if kind == "off by one":
                assert abs(value - before) == 1
            elif kind in {"copied", "swapped"}:
                assert value in values[name]
            elif kind == "digit":
                assert abs(len(str(value)) - len(str(before))) <= 1
    assert found


def all_slots() -> list[tuple[str, list[faults.Slot]]]:
    return list(faults.slots(FACTS).items())


def test_facts_without_values_cannot_go_wrong() -> None:
    assert faults.slip((), random.Random(0)) == ((), ())
    assert faults.inject((), 0.5, random.Random(0)) == ((), ())
