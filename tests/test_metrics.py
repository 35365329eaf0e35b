"""Metrics: known series are there from the start, and what is gone is no longer shown."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gsid_service.metrics import OUTCOMES, STAGES, Metrics

Series = dict[tuple[str, ...], float]


def series(metrics: Metrics, name: str) -> Series:
    """The samples of a name, by their labels' values in the order of the labels' names."""
    return {
        tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name == name
    }


def test_every_stage_has_its_series_from_the_start() -> None:
    metrics = Metrics()
    assert series(metrics, "gsid_cycle_seconds_count") == {(stage,): 0 for stage in STAGES}
    with pytest.raises(KeyError), metrics.stage("score"):
        raise KeyError
    assert series(metrics, "gsid_cycle_seconds_count")["score",] == 1


def test_a_network_s_counters_begin_at_nought() -> None:
    metrics = Metrics()
    metrics.know("net")
    assert series(metrics, "gsid_snapshots_total") == {("net", o): 0 for o in OUTCOMES}
    assert series(metrics, "gsid_cycle_failures_total") == {("net",): 0}
    metrics.snapshots.labels("net", "accepted").inc()
    metrics.know("net")
    assert series(metrics, "gsid_snapshots_total")["net", "accepted"] == 1


def test_the_highest_scores_replace_those_before_of_that_network_only() -> None:
    metrics = Metrics()
    metrics.show_scores("net", [("med", "a", 0.9), ("med", "b", 0.8)], {"med": 0.9})
    metrics.show_scores("other", [("med", "c", 0.7)], {"med": 0.7})
    metrics.show_scores("net", [("med", "b", 0.3)], {"med": 0.3})
    shown = series(metrics, "gsid_anomaly_score")
    assert shown == {("b", "net", "med"): 0.3, ("c", "other", "med"): 0.7}
    assert series(metrics, "gsid_anomaly_score_max") == {("net", "med"): 0.3, ("other", "med"): 0.7}


def test_a_parameter_that_is_gone_keeps_no_highest_score() -> None:
    """Its last value would alert for as long as the service runs."""
    metrics = Metrics()
    metrics.show_scores("net", [("med", "a", 0.9)], {"med": 0.9, "local_pref": 0.1})
    metrics.show_scores("net", [], {"local_pref": 0.2})
    assert series(metrics, "gsid_anomaly_score_max") == {("net", "local_pref"): 0.2}


def test_labels_may_hold_anything_that_an_id_may() -> None:
    metrics = Metrics()
    metrics.show_scores('n"\\', [("med", 'bgp_route(é"\\, N)', 0.5)], {})
    assert series(metrics, "gsid_anomaly_score") == {('bgp_route(é"\\, N)', 'n"\\', "med"): 0.5}


def test_alerts_are_counted_by_severity_and_status() -> None:
    metrics = Metrics()
    metrics.show_alerts("net", {("major", "firing"): 2, ("minor", "resolved"): 0})
    shown = series(metrics, "gsid_alerts")
    assert shown == {("net", "major", "firing"): 2, ("net", "minor", "resolved"): 0}


def test_two_sets_of_series_do_not_meet() -> None:
    one, other = Metrics(), Metrics()
    one.know("net")
    assert series(other, "gsid_snapshots_total") == {}
