"""The per-network scale lands real values where the model was trained, whatever the outlier."""

import numpy as np
import pytest

from gsid_service.assemble.graph import assemble
from gsid_service.assemble.scale import scale
from gsid_service.records import Entity, Fact, Graph

PEERS = tuple(Entity(f"P{i}", "external_as") for i in range(20))
NETWORK = Entity("N", "network")


def graph(values: list[int], baseline: list[int] | None = None) -> Graph:
    def routes(found: list[int]) -> list[Fact]:
        return [
            Fact("bgp_route", (f"P{i}", "N"), {"local_pref": v, "as_path_length": 1})
            for i, v in enumerate(found)
        ]

    reference = None if baseline is None else routes(baseline)
    return assemble((*PEERS, NETWORK), routes(values), baseline=reference)


def test_real_values_land_on_the_paper_s_range() -> None:
    scaled = scale(graph([100, 200] * 10))
    assert scaled.value[:2, 0].tolist() == [0, 9]
    assert scaled.applies[0].tolist() == [True, True, True, False]


def test_an_outlier_does_not_set_the_scale() -> None:
    scaled = scale(graph([100, 200] * 9 + [100, 4_000_000_000]))
    low, high = scaled.value[:2, 0].tolist()
    assert low == 0
    assert 6 <= high <= 9
    assert scaled.value[19, 0] == 27  # cut off


def test_with_a_baseline_the_baseline_sets_it() -> None:
    scaled = scale(graph([80] * 20, [100, 200] * 10))
    assert scaled.value[0, 0] == pytest.approx(-1.8)
    assert scaled.reference[:2, 0].tolist() == [0, 9]
    assert not scaled.equal.any() or scaled.equal[:, 0].sum() == 0


def test_equal_is_exact_where_the_scale_is_not() -> None:
    high = 2**32 - 1
    scaled = scale(graph([0, high - 1] * 10, [0, high] * 10))
    assert scaled.equal[:2, 0].tolist() == [True, False]


def test_values_that_are_all_the_same() -> None:
    scaled = scale(graph([100] * 20))
    assert np.isfinite(scaled.value).all()
    assert (scaled.value[:, 0] == 0).all()


def test_changes_are_counted_by_whether_they_look_like_slips() -> None:
    approved = [10, 20, 30, 50, 70, 90, 110, 110]
    # Two are exchanged, one is a step off, one has lost a digit; the other two are neither.
    observed = [20, 10, 40, 50, 90, 90, 10, 350]
    scaled = scale(graph(observed, approved))
    assert np.expm1(scaled.changes[:, 0]).round().tolist() == [6] * 8
    assert np.expm1(scaled.slips[:, 0]).round().tolist() == [4] * 8
    assert np.expm1(scaled.others[:, 0]).round().tolist() == [2] * 8
