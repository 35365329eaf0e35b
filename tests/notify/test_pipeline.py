"""The stages together: who is told what and when, and the reason that each alert is left with."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gsid_service.notices import Outgoing
from gsid_service.notify.batch import Batch
from gsid_service.notify.pipeline import STAGES, next_look
from gsid_service.records import Alert, FactKey, Severity, Status
from tests.notify.making import (
    AT_ONCE,
    HOUR,
    MINUTE,
    ROUTE,
    SECOND,
    Telling,
    alert,
    silence,
    window,
)
from tests.store.making import NOW

OVER: dict[str, Any] = {"status": Status.RESOLVED}
AT_ONCE_THEN_WAIT = replace(ROUTE, group_wait=timedelta(0))
ACKNOWLEDGED: dict[str, Any] = {"status": Status.ACKNOWLEDGED}


def test_the_stages_are_a_list_in_the_order_of_the_design() -> None:
    names = [stage.__name__ for stage in STAGES]
    assert names == [
        *("severity", "maintenance", "silence", "inhibit"),
        *("group", "dedup", "deliver", "record"),
    ]


def test_a_new_alert_waits_for_its_group_and_is_told_once() -> None:
    noc = Telling()
    assert noc.kinds([alert()]) == []
    assert noc.why() == ("grouping", "waits with its group until 22:00:30 UTC")
    assert noc.batch is not None
    assert next_look([noc.batch], noc.batch.situation) == NOW + 30 * SECOND
    assert noc.kinds([alert()], 29 * SECOND) == []
    assert noc.kinds([alert()], SECOND) == ["new"]
    assert noc.why() == ("deliver", "it was not told of it yet")
    assert noc.kinds([alert()], SECOND) == []
    assert noc.why()[0] == "dedup"
    assert "repeated at 2026-11-16 02:00:30 UTC" in noc.why()[1]


def test_what_still_fires_is_said_again_after_the_repeat_interval() -> None:
    noc = Telling(AT_ONCE)
    assert noc.kinds([alert()]) == ["new"]
    assert noc.kinds([alert()], 4 * HOUR - SECOND) == []
    assert noc.kinds([alert()], SECOND) == ["repeat"]
    assert noc.kinds([alert()], 4 * HOUR) == ["repeat"]


def test_a_repeat_waits_for_the_message_before_it() -> None:
    noc = Telling(AT_ONCE)
    (out,) = noc.look([alert()]).outgoing
    under_way = frozenset({out.group.key})
    assert noc.kinds([alert()], 4 * HOUR, under_way=under_way) == []
    assert "still under way" in noc.why()[1]
    assert noc.batch is not None
    assert noc.batch.notes[0].again == noc.now + 4 * HOUR


def test_an_acknowledgement_stops_repeats_until_it_changes_or_clears() -> None:
    noc = Telling(AT_ONCE)
    noc.look([alert()])
    assert noc.kinds([alert(**ACKNOWLEDGED)], 9 * HOUR) == []
    assert "acknowledged" in noc.why()[1]
    assert noc.kinds([alert(observed=7, **ACKNOWLEDGED)], MINUTE) == ["changed"]
    assert noc.kinds([alert(observed=7, **ACKNOWLEDGED)], 9 * HOUR) == []
    assert noc.kinds([alert(observed=7, **OVER)], MINUTE) == ["restored"]


def test_an_acknowledged_alert_is_not_repeated_with_its_group() -> None:
    telling = Telling(AT_ONCE)
    telling.look([alert(1), alert(2)])
    known = [alert(1, status=Status.ACKNOWLEDGED), alert(2)]
    (again,) = telling.look(known, AT_ONCE.repeat_interval).outgoing
    assert [item["gsid"]["id"] for item in again.message["alerts"]] == ["a2"]


def test_who_forgets_what_is_not_said_again_hears_of_acknowledged_alerts_too() -> None:
    telling = Telling(replace(AT_ONCE, by_cause=False))
    telling.look([alert()])
    known = alert(status=Status.ACKNOWLEDGED)
    (again,) = telling.look([known], AT_ONCE.repeat_interval).outgoing
    assert [item["gsid"]["id"] for item in again.message["alerts"]] == ["a1"]


def test_what_is_acknowledged_before_anybody_was_told_is_not_told() -> None:
    noc = Telling()
    noc.look([alert()])
    assert noc.kinds([alert(**ACKNOWLEDGED)], MINUTE) == []
    assert noc.why() == ("dedup", "acknowledged before anybody was told")
    assert noc.kinds([alert(**OVER)], MINUTE) == []


def test_what_is_over_before_its_group_is_due_is_never_told() -> None:
    noc = Telling()
    noc.look([alert()])
    assert noc.kinds([alert(**OVER)], SECOND) == []
    assert noc.why() == ("dedup", "over before anybody was told")
    assert not noc.known["a1"].unfinished
    assert noc.kinds([alert(**OVER)], HOUR) == []


def test_a_restored_notice_follows_a_page_whatever_keeps_quiet_meanwhile() -> None:
    noc = Telling(AT_ONCE)
    noc.look([alert()])
    quiet: dict[str, Any] = {
        "silences": (silence(("network", "=", "net")),),
        "windows": (window(),),
        "missing": (FactKey("ebgp", ("R1", "AS65101@R1")),),
    }
    assert noc.kinds([alert()], MINUTE, **quiet) == []
    (out,) = noc.look([alert(severity=Severity.MINOR, **OVER)], MINUTE, **quiet).outgoing
    assert (out.kind, out.message["status"]) == ("restored", "resolved")
    assert noc.why() == ("deliver", "it was told, and now it is over")
    assert not noc.known["a1"].unfinished


def test_one_that_opens_again_is_new_and_in_a_new_group() -> None:
    noc = Telling(AT_ONCE)
    (first,) = noc.look([alert()]).outgoing
    noc.look([alert(**OVER)], MINUTE)
    (again,) = noc.look([alert()], MINUTE).outgoing
    assert again.kind == "new"
    assert again.group.key != first.group.key


def test_one_that_opens_again_waits_once_for_its_new_group() -> None:
    noc = Telling()
    noc.look([alert()])
    assert noc.kinds([alert()], MINUTE) == ["new"]
    assert noc.kinds([alert(**OVER)], HOUR) == ["restored"]
    assert noc.kinds([alert()], HOUR) == []
    assert noc.kinds([alert()], 29 * SECOND) == []
    assert noc.kinds([alert()], SECOND) == ["new"]


def test_what_is_below_the_severity_wanted_is_held() -> None:
    noc = Telling(AT_ONCE)
    assert noc.kinds([alert(severity=Severity.MINOR)]) == []
    assert noc.why() == ("severity", "minor is below major, the least it is told of")
    assert noc.kinds([alert(severity=Severity.MAJOR)], SECOND) == ["new"]


def test_a_silence_and_a_window_hold_and_say_until_when() -> None:
    noc = Telling(AT_ONCE)
    assert noc.kinds([alert()], silences=(silence(("entity", "=", "AS65101@R1")),)) == []
    assert noc.why() == ("silence", "silence q1 of ann: known")
    assert noc.batch is not None
    assert noc.batch.notes[0].again == NOW + HOUR
    assert noc.kinds([alert()], windows=(window(parameter="local_pref"),)) == []
    assert noc.why() == ("maintenance", "in the maintenance window w1 of ann: works")
    assert noc.kinds([alert()], HOUR) == ["new"]


def test_what_a_broken_session_or_a_silent_collector_explains_is_held() -> None:
    noc = Telling(AT_ONCE)
    gone = FactKey("ebgp", ("R1", "AS65101@R1"))
    assert noc.kinds([alert(), alert(2)], missing=(gone,)) == ["new"]
    assert noc.why() == ("inhibition", "ebgp(R1, AS65101@R1) is gone, which explains it")
    assert noc.why(2)[0] == "deliver"
    stale = frozenset({(alert().fact.digest, "local_pref")})
    assert noc.kinds([alert()], SECOND, stale=stale) == []
    assert noc.why() == ("inhibition", "only silent collectors see it, such as rr1")


def test_a_flood_is_one_message_for_each_cause() -> None:
    noc = Telling()
    flood = [alert(n, collector=f"rr{n % 2}") for n in range(5000)]
    assert noc.kinds(flood) == []
    assert noc.kinds(flood, 30 * SECOND) == ["new", "new"]
    assert noc.kinds([replace(a, **OVER) for a in flood], SECOND) == []
    assert noc.kinds([replace(a, **OVER) for a in flood], 5 * MINUTE) == ["restored", "restored"]


def test_later_alerts_of_a_cause_join_its_group_for_as_long_as_it_is_fresh() -> None:
    noc = Telling()
    noc.look([alert()])
    (first,) = noc.look([alert()], 30 * SECOND).outgoing
    assert noc.kinds([alert(), alert(2)], MINUTE) == []
    assert noc.why(2) == ("grouping", "waits with its group until 22:05:30 UTC")
    (second,) = noc.look([alert(), alert(2)], 4 * MINUTE).outgoing
    assert second.group.key == first.group.key
    assert _alerts(second) == {"a1", "a2"}
    noc.look([alert(), alert(2), alert(3)], HOUR)
    (third,) = noc.look([alert(), alert(2), alert(3)], MINUTE).outgoing
    assert _alerts(third) == {"a3"}
    assert third.group.key != first.group.key


def test_a_receiver_that_groups_by_itself_gets_one_message_for_a_network() -> None:
    noc = Telling(replace(AT_ONCE, by_cause=False, repeat_interval=MINUTE))
    (first,) = noc.look([alert()]).outgoing
    (second,) = noc.look([alert(), alert(2, collector="rr2")], SECOND).outgoing
    assert second.group.key == first.group.key
    assert noc.kinds([alert(), alert(2, collector="rr2")], MINUTE) == ["repeat"]


def test_only_who_wants_them_is_told_of_acknowledgements() -> None:
    for wants in (False, True):
        noc = Telling(replace(AT_ONCE, acknowledgements=wants))
        noc.look([alert()])
        batch = noc.look([alert(**ACKNOWLEDGED)], SECOND)
        assert [out.kind for out in batch.outgoing] == (["acknowledged"] if wants else [])
        assert noc.kinds([alert(**ACKNOWLEDGED)], HOUR) == []


def history() -> st.SearchStrategy[list[tuple[int, str, Severity, int, bool]]]:
    """Seconds, then a status, a severity, a value, and whether it is silenced."""
    step = st.tuples(
        st.sampled_from([1, 29, 31, 299, 301, 4 * 3600]),
        st.sampled_from(["firing", "acknowledged", "resolved"]),
        st.sampled_from(list(Severity)),
        st.sampled_from([80, 90]),
        st.booleans(),
    )
    return st.lists(step, min_size=1, max_size=25)


@settings(deadline=None)
@given(history(), st.sampled_from([ROUTE, AT_ONCE]))
def test_whatever_happens_each_page_is_followed_by_a_restored_notice_and_by_one(
    steps: list[tuple[int, str, Severity, int, bool]], route: Any
) -> None:
    """Over any history: told alternates between firing and over, and ends as the alert does."""
    noc, told = Telling(route), []
    for seconds, status, severity, observed, silenced in steps:
        now = alert(status=Status(status), severity=severity, observed=observed)
        known = {"silences": (silence(ends_at=NOW + 1000 * HOUR),) if silenced else ()}
        told += _statuses(noc.look([now], timedelta(seconds=seconds), **known))
        assert (noc.known["a1"].reason != "") if "a1" in noc.known else status == "resolved"
    told += _statuses(noc.look([alert(**OVER)], 10 * MINUTE))
    turns = [s for i, s in enumerate(told) if i == 0 or s != told[i - 1]]
    assert turns == ["firing", "resolved"] * (len(turns) // 2)
    assert told.count("resolved") == turns.count("resolved"), "told twice that it is over"
    assert not any(found.unfinished for found in noc.known.values())


def _alerts(out: Outgoing) -> set[str]:
    return {item["gsid"]["id"] for item in out.message["alerts"]}


def _statuses(batch: Batch) -> list[str]:
    return [item["status"] for out in batch.outgoing for item in out.message["alerts"]]


@settings(deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=30, unique=True), st.data())
def test_every_alert_is_in_exactly_one_message_or_held_for_a_reason(
    numbers: list[int], data: st.DataObject
) -> None:
    severities = st.sampled_from(list(Severity))
    collectors = st.sampled_from(["rr1", "rr2", "rr3"])
    found: list[Alert] = [
        alert(n, severity=data.draw(severities), collector=data.draw(collectors)) for n in numbers
    ]
    batch = Telling(AT_ONCE).look(found)
    in_messages = [name for out in batch.outgoing for name in _alerts(out)]
    assert len(in_messages) == len(set(in_messages))
    held = {note.alert.id for note in batch.notes if note.held}
    assert held | set(in_messages) == {a.id for a in found}
    assert not held & set(in_messages)
    assert all(note.reason and note.stage for note in batch.notes)


def test_a_clock_that_is_set_back_holds_no_page() -> None:
    noc = Telling()
    assert noc.kinds([alert()]) == []
    assert noc.kinds([alert()], -HOUR) == ["new"], "it had begun to wait an hour ahead of now"


def test_what_is_new_in_a_group_goes_out_after_the_clock_is_set_back() -> None:
    noc = Telling(AT_ONCE_THEN_WAIT)
    assert noc.kinds([alert()]) == ["new"]
    assert noc.kinds([alert(), alert(2)], -SECOND) == [], "clocks may differ a little"
    assert noc.kinds([alert(), alert(2)], -HOUR) == ["new"]
    assert noc.kinds([alert(), alert(2)], SECOND) == []


def test_an_alert_that_fires_again_is_told_after_the_clock_is_set_back() -> None:
    noc = Telling()
    noc.look([alert()])
    assert noc.kinds([alert()], 30 * SECOND) == ["new"]
    assert noc.kinds([alert(**OVER)], HOUR) == ["restored"]
    assert noc.kinds([alert()], -30 * MINUTE) == ["new"], "in the group that it was in"
    assert noc.kinds([alert(**OVER)], HOUR) == ["restored"]
    assert noc.kinds([alert()], -3 * HOUR) == []
    assert noc.kinds([alert()], 30 * SECOND) == ["new"], "it waits once, and not at each look anew"


def test_a_repeat_is_not_late_by_what_the_clock_was_set_back() -> None:
    noc = Telling(AT_ONCE)
    assert noc.kinds([alert()]) == ["new"]
    assert noc.kinds([alert()], -9 * HOUR) == ["repeat"]
    assert noc.kinds([alert()], 4 * HOUR - SECOND) == []
    assert noc.kinds([alert()], SECOND) == ["repeat"]
