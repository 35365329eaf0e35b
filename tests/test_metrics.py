"""Metrics: known series are there from the start, and what is gone is no longer shown."""

import os

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gsid_service.metrics import AREAS, OUTCOMES, STAGES, Metrics

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


def test_shares_replace_those_before_of_that_network_only() -> None:
    metrics = Metrics()
    metrics.show_shares("net", {"med": {"0.5": 0.9}, "local_pref": {"0.5": 1.0}})
    metrics.show_shares("other", {"med": {"0.5": 0.8}})
    metrics.show_shares("net", {"med": {"0.5": 0.7}})
    shown = series(metrics, "gsid_score_share")
    assert shown == {("0.5", "net", "med"): 0.7, ("0.5", "other", "med"): 0.8}


def test_an_alert_that_is_over_is_no_longer_shown() -> None:
    metrics = Metrics()
    metrics.show_opened("net", {("a1", "major", "firing", "med", "f"): 5.0})
    metrics.show_opened("other", {("a2", "minor", "firing", "med", "f"): 6.0})
    metrics.show_opened("net", {})
    shown = series(metrics, "gsid_alert_opened_timestamp_seconds")
    assert shown == {("a2", "f", "other", "med", "minor", "firing"): 6.0}


def test_requests_are_counted_by_area_and_class_of_status() -> None:
    metrics = Metrics()
    counted = series(metrics, "gsid_request_seconds_count")
    assert counted == {(area, "2xx"): 0 for area in AREAS}
    metrics.answered("api", 404, 0.1)
    assert series(metrics, "gsid_request_seconds_count")["api", "4xx"] == 1


def test_the_process_that_scores_is_shown_while_it_is_there() -> None:
    metrics, pid = Metrics(), os.getpid()
    metrics.watch_scorer(lambda: pid)
    assert series(metrics, "gsid_scorer_process_resident_memory_bytes")[()] > 1e6
    pid = 0
    assert series(metrics, "gsid_scorer_process_resident_memory_bytes") == {}
