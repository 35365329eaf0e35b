"""Where alerts stand with receivers, when to look again, and verdicts, on both databases."""

from dataclasses import replace
from typing import Any

from gsid_service.notices import Group, Notification, Told
from gsid_service.records import Alert, Severity, Status
from gsid_service.store import (
    alerts,
    maintenance,
    networks,
    notifications,
    retention,
    snapshots,
    verdicts,
)
from gsid_service.store.database import Database
from tests.notify.making import HOUR, SECOND, alert, window
from tests.store.making import NOW

TOLD = Told(Status.FIRING, Severity.CRITICAL, 80, NOW)
GROUP = Group("k1", "rr1", NOW, NOW + SECOND)


def saved(database: Database, one: Alert) -> Alert:
    with database.write() as connection:
        snapshots.announce(connection, [one.network], NOW)
        return alerts.save(connection, replace(one, id=""), 0)


def known(alert_id: str, **changes: Any) -> Notification:
    found = Notification(alert_id, "noc", TOLD, GROUP, "deliver", "new", NOW, unfinished=True)
    return found._replace(**changes)


def test_a_notification_goes_round_and_changes_with_its_group(database: Database) -> None:
    kept = saved(database, alert())
    bare = known(kept.id, receiver="other", told=None, group=None)
    with database.write() as connection:
        notifications.save(connection, "net", [(known(kept.id), None), (bare, None)])
    later = known(kept.id, group=GROUP._replace(flushed_at=NOW + HOUR), reason="again")
    with database.write() as connection:
        notifications.save(connection, "net", [(later, None)])
        number = alerts.number_of(kept.id)
        assert number is not None
        assert notifications.of_alert(connection, number) == [later, bare]
        assert sorted(notifications.of_network(connection, "net")) == sorted([later, bare])


def test_an_alert_that_is_over_counts_until_whoever_was_told_knows(database: Database) -> None:
    kept = saved(database, alert(status=Status.RESOLVED))
    with database.write() as connection:
        assert alerts.unfinished(connection, "net") == []
        notifications.save(connection, "net", [(known(kept.id), None)])
        assert alerts.unfinished(connection, "net") == [kept]
        notifications.save(connection, "net", [(known(kept.id, unfinished=False), None)])
        assert alerts.unfinished(connection, "net") == []
        assert notifications.of_network(connection, "net") == []


def test_networks_are_looked_at_when_they_are_due(database: Database) -> None:
    saved(database, alert(network="a"))
    saved(database, alert(network="b", status=Status.RESOLVED))
    with database.write() as connection:
        assert notifications.next_look(connection) is None
        notifications.look_at_all(connection, NOW + SECOND)
        assert notifications.next_look(connection) == NOW + SECOND
        assert notifications.to_look_at(connection, NOW, NOW) == []
        assert notifications.to_look_at(connection, NOW + SECOND, NOW) == ["a"]
        notifications.look_at(connection, ["b"], NOW)
        assert notifications.to_look_at(connection, NOW + SECOND, NOW) == ["b", "a"]
        found = networks.find(connection, "b")
    assert found is not None
    assert found.notify_at == NOW


def test_what_was_planned_before_the_clock_was_set_back_is_due(database: Database) -> None:
    saved(database, alert(network="a"))
    with database.write() as connection:
        networks.finish(connection, "a", 1, 1, NOW, {})
        before = NOW - HOUR
        assert notifications.to_look_at(connection, before, before + SECOND) == []
        notifications.look_at(connection, ["a"], NOW + SECOND)
        assert notifications.to_look_at(connection, before, before + SECOND) == ["a"]
        assert notifications.to_look_at(connection, before, NOW) == []


def test_the_last_verdict_on_each_turn_counts_and_outlives_the_alert(database: Database) -> None:
    kept = saved(database, alert(status=Status.RESOLVED))
    with database.write() as connection:
        notifications.save(connection, "net", [(known(kept.id, unfinished=False), None)])
        for verdict in ("true", "false"):
            verdicts.keep(connection, replace(kept, verdict=verdict), "ann", NOW)
        again = replace(kept, since=NOW + HOUR, verdict="true")
        verdicts.keep(connection, again, "ann", NOW + HOUR)
        assert verdicts.count(connection) == {"net": {"false": 1, "true": 1}}
        assert retention.forget_history(connection, "net", NOW + HOUR) == 1
        assert verdicts.count(connection) == {"net": {"false": 1, "true": 1}}


def test_one_takes_a_network_that_is_due(database: Database) -> None:
    saved(database, alert(network="a"))
    with database.write() as connection:
        notifications.look_at(connection, ["a"], NOW)
        late = NOW + HOUR
        assert not notifications.take(connection, "a", NOW - SECOND, late)
        assert notifications.take(connection, "a", NOW, late)
        assert not notifications.take(connection, "a", late, late), "somebody did already"


def test_a_window_that_held_alerts_back_is_over_once(database: Database) -> None:
    with database.write() as connection:
        one, other = (maintenance.add(connection, window(network=name)) for name in ("a", None))
        assert maintenance.hold(connection, {one.number, other.number}) == []
        assert maintenance.hold(connection, {one.number, other.number}) == []
        assert maintenance.hold(connection, {other.number}) == [one]
        assert maintenance.hold(connection, {other.number}) == []
        assert maintenance.hold(connection, set()) == [other]
        assert maintenance.standing(connection, NOW) == [one, other]
