"""The figures against their definitions, worked out slowly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.evaluate.metrics import measure

pairs = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), st.booleans()), min_size=1
)


@given(pairs)
def test_against_the_definitions(found: list[tuple[float, bool]]) -> None:
    score, wrong = np.array([s for s, _ in found]), np.array([w for _, w in found])
    figures = measure(score, wrong)
    hits = sum(s >= 0.5 and w for s, w in found)
    flagged, bad = sum(s >= 0.5 for s, _ in found), sum(w for _, w in found)
    assert figures.precision == pytest.approx(hits / flagged if flagged else np.nan, nan_ok=True)
    assert figures.recall == pytest.approx(hits / bad if bad else np.nan, nan_ok=True)
    above = [
        (a > b) + (a == b) / 2 for a, is_bad in found for b, other in found if is_bad and not other
    ]
    expected = sum(above) / len(above) if above else np.nan
    assert figures.auc == pytest.approx(expected, nan_ok=True)


def test_a_perfect_detector() -> None:
    figures = measure(np.array([0.0, 1.0, 0.0, 1.0]), np.array([False, True, False, True]))
    assert set(figures) == {1.0, 0.0}
    assert figures.ece == 0


def test_precision_at_recall() -> None:
    score, wrong = np.linspace(1, 0, 10), np.array([1, 1, 0, 1, 0, 0, 0, 0, 0, 1], dtype=bool)
    assert measure(score, wrong).precision_at_recall_70 == pytest.approx(3 / 4)


def test_precision_of_what_is_nearly_certain() -> None:
    score, wrong = np.array([0.95, 0.91, 0.99, 0.9, 0.1]), np.array([1, 0, 1, 1, 1], dtype=bool)
    assert measure(score, wrong).precision_above_90 == pytest.approx(2 / 3)
    assert np.isnan(measure(score[3:], wrong[3:]).precision_above_90)


def test_average_precision_of_ties_counts_them_together() -> None:
    figures = measure(np.full(4, 0.5), np.array([True, False, False, False]))
    assert figures.ap == pytest.approx(0.25)


def test_calibration_error() -> None:
    assert measure(np.full(10, 0.9), np.arange(10) < 9).ece == pytest.approx(0)
    assert measure(np.full(10, 0.9), np.arange(10) < 0).ece == pytest.approx(0.9)
