"""Values with a digit lost or doubled, in the units of their network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.assemble.digits import mistakes, mistyped, stepped
from gsid_service.schema import MED, OSPF_WEIGHT, Parameter


def found(observed: list[int], approved: list[int], parameter: Parameter) -> list[bool]:
    columns = np.array(observed, dtype=float), np.array(approved, dtype=float)
    return list(mistyped(*columns, parameter).tolist())


@pytest.mark.parametrize(
    ("value", "becomes"),
    [(7, {77}), (12, {1, 2, 112, 122}), (110, {10, 11, 1110, 1100}), (0, {0})],
)
def test_one_digit_is_lost_or_doubled(value: int, becomes: set[int]) -> None:
    assert set(mistakes(value)) == becomes


def test_costs_are_read_as_they_are_where_they_have_no_common_unit() -> None:
    observed, approved = [3, 13, 12, 22, 7], [13, 13, 21, 2, 5]
    assert found(observed, approved, OSPF_WEIGHT) == [True, False, False, True, False]


def test_one_step_is_the_unit_of_what_is_approved() -> None:
    for unit in (1, 10):
        observed, approved = ([unit * x for x in xs] for xs in ([3, 5, 9, 4], [4, 4, 7, 4]))
        columns = np.array(observed, dtype=float), np.array(approved, dtype=float)
        assert stepped(*columns, OSPF_WEIGHT).tolist() == [True, True, False, False]


def test_costs_in_tens_are_read_in_tens() -> None:
    assert found([10, 20, 15, 300], [100, 20, 150, 30], OSPF_WEIGHT) == [True, False, False, False]


def test_what_may_be_shifted_is_counted_from_the_lowest() -> None:
    assert found([105, 101, 122, 99], [105, 112, 102, 100], MED) == [False, True, True, False]


@pytest.mark.parametrize("approved", [[], [0, 0], [5, 5]])
def test_without_a_unit_nothing_is_mistyped(approved: list[int]) -> None:
    assert found([55] * len(approved), approved, MED) == [False] * len(approved)


values = st.lists(st.tuples(st.integers(1, 31), st.integers(1, 31)), min_size=1, max_size=20)


@given(values, st.integers(1, 1000), st.integers(0, 1000))
def test_no_scale_has_a_part_in_it(pairs: list[tuple[int, int]], times: int, more: int) -> None:
    observed, approved = (list(column) for column in zip(*pairs, strict=True))
    scaled = [x * times for x in observed], [x * times for x in approved]
    assert found(*scaled, OSPF_WEIGHT) == found(observed, approved, OSPF_WEIGHT)
    shifted = [x * times + more for x in observed], [x * times + more for x in approved]
    assert found(*shifted, MED) == found(observed, approved, MED)
