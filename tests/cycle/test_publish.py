"""What Prometheus sees of a network: its worst facts and gravest alerts only."""

from dataclasses import replace
from datetime import UTC, datetime

from gsid_service.cycle.publish import Shown, publish
from gsid_service.metrics import Metrics
from gsid_service.records import Alert, FactKey, Severity, Status
from gsid_service.store import networks, scores, snapshots
from gsid_service.store.database import connect
from gsid_service.store.scored import Score, Scored
from tests.notify.making import alert
from tests.test_metrics import series

SUMMARY = {
    "broken_intents": {"reachable": 2},
    "broken_stated": {"reachable": 1},
    "stale_facts": 3,
}
OPENED = datetime(2026, 11, 15, 22, tzinfo=UTC)


def score(number: int, value: float) -> Score:
    fact = FactKey("bgp_route", (f"AS{number}@R1", "203.0.113.0/24"))
    return Score(fact, "med", 10, 10, value, False)


def known(number: int, severity: Severity, status: Status = Status.FIRING) -> Alert:
    return replace(alert(number), severity=severity, status=status, since=OPENED, network="net")


def test_only_the_worst_are_shown_one_by_one() -> None:
    metrics = Metrics()
    scored = Scored.of(score(n, 0.9 - n / 10) for n in range(5))
    alerts = [known(1, Severity.MINOR), known(2, Severity.CRITICAL), known(3, Severity.MAJOR)]
    publish(metrics, "net", scored, alerts, SUMMARY, at_most=2)
    assert sorted(series(metrics, "gsid_anomaly_score").values()) == [0.8, 0.9]
    opened = series(metrics, "gsid_alert_opened_timestamp_seconds")
    assert set(opened.values()) == {OPENED.timestamp()}
    assert {labels[-2] for labels in opened} == {"critical", "major"}


def test_everything_is_counted() -> None:
    metrics = Metrics()
    resolved = known(1, Severity.MAJOR, Status.RESOLVED)
    scored = Scored.of([score(1, 0.05), score(2, 0.6)])
    publish(metrics, "net", scored, [resolved], SUMMARY, at_most=2)
    assert series(metrics, "gsid_parameters") == {("net", "med"): 2}
    assert series(metrics, "gsid_score_share")["0.1", "net", "med"] == 0.5
    assert series(metrics, "gsid_broken_intents") == {("reachable", "net"): 2}
    assert series(metrics, "gsid_broken_stated_intents") == {("reachable", "net"): 1}
    assert series(metrics, "gsid_stale_facts") == {("net",): 3}
    assert series(metrics, "gsid_alerts")["net", "major", "resolved"] == 1
    assert series(metrics, "gsid_alerts")["net", "major", "firing"] == 0
    assert series(metrics, "gsid_alert_opened_timestamp_seconds") == {}


def test_from_the_store_only_what_changed_is_read_again(database_url: str) -> None:
    database, metrics = connect(database_url, migrate=True), Metrics()
    shown = Shown(metrics, lambda: 2)

    def scored(name: str, value: float) -> None:
        with database.write() as connection:
            snapshots.announce(connection, [name], OPENED)
            found = Scored.of([score(1, value), score(2, 0.01)])
            scores.replace(connection, name, found, lambda _: 1, OPENED)
            networks.finish(connection, name, int(100 * value), 1, OPENED, SUMMARY)

    def refresh() -> dict[tuple[str, ...], float]:
        with database.read() as connection:
            shown.refresh(connection)
        return series(metrics, "gsid_anomaly_score_max")

    with database.write() as connection:
        snapshots.announce(connection, ["unscored"], OPENED)
    scored("a", 0.5)
    scored("b", 0.6)
    assert refresh() == {("a", "med"): 0.5, ("b", "med"): 0.6}
    metrics.score_max.clear()
    assert refresh() == {}, "it was read again"
    scored("a", 0.7)
    assert refresh() == {("a", "med"): 0.7}
    database.close()
