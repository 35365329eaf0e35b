"""Decisions: an alert as it was and what was found, to the alert as it is, with the reason."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.alert.decide import Finding, Rules, acknowledged, decide, judged
from gsid_service.records import Alert, BrokenIntent, Ending, Fact, FactKey, Move, Severity, Status
from tests.store.making import NOW

MINUTE = timedelta(minutes=1)
RULES = Rules(open_score=0.8, close_score=0.4, flap_changes=4, flap_within=60 * MINUTE)
BROKEN = (BrokenIntent(Fact("reachable", ("R1", "N", "R2")), derived=True),)
FOUND = Finding(
    network="net",
    fact=FactKey("connected", ("R1", "R2")),
    parameter="ospf_weight",
    score=0.9,
    observed=7,
    expected=3,
    stale=False,
    snapshot_id="s1",
    collector="c1",
    severity=Severity.CRITICAL,
    broken_intents=BROKEN,
    moved=(Move("R1", "N", "R2", "R3"),),
    reverting_repairs=1,
    reverting_breaks=2,
)
RIGHT = replace(FOUND, observed=3, score=0.1)


def found(**changes: Any) -> Finding:
    return replace(FOUND, **changes)


def opened(one: Finding = FOUND, now: datetime = NOW) -> Alert:
    alert = decide(None, one, RULES, now)
    assert alert is not None
    return alert


def after(alert: Alert, one: Finding | None, now: datetime = NOW + MINUTE) -> Alert:
    decided = decide(alert, one, RULES, now)
    assert decided is not None
    return decided


def told(alert: Alert) -> list[str]:
    return [event.what for event in alert.events]


def test_an_alert_opens_with_all_that_was_found() -> None:
    alert = opened()
    assert (alert.status, alert.severity, alert.score) == (Status.FIRING, Severity.CRITICAL, 0.9)
    assert (alert.observed, alert.expected, alert.collector) == (7, 3, "c1")
    assert (alert.broken_intents, alert.moved) == (FOUND.broken_intents, FOUND.moved)
    assert (alert.reverting_repairs, alert.reverting_breaks) == (1, 2)
    assert alert.snapshot_id == "s1"
    assert alert.first_seen == alert.last_seen == alert.events[0].at == NOW
    assert told(alert) == ["opened"]
    assert "0.90" in alert.events[0].why
    assert "0.8" in alert.events[0].why


@pytest.mark.parametrize(
    "one",
    [
        None,
        found(score=0.79999),
        found(stale=True),
        found(observed=3),
        found(observed=3, score=1.0),
    ],
)
def test_none_opens_below_the_score_on_stale_or_on_expected_values(one: Finding | None) -> None:
    assert decide(None, one, RULES, NOW) is None


@pytest.mark.parametrize("one", [found(score=0.8), found(expected=None)])
def test_one_opens_at_the_very_score_and_without_an_expected_value(one: Finding) -> None:
    assert opened(one).status is Status.FIRING


@pytest.mark.parametrize(
    ("one", "ending", "why"),
    [
        (None, Ending.GONE, "no longer there"),
        (found(observed=3, score=0.95), Ending.RESTORED, "the value is 3, as expected"),
        (found(expected=7, score=0.95), Ending.APPROVED, "7 is the expected value now, it was 3"),
        (found(score=0.39), Ending.BELIEVED, "the score 0.39 is below 0.4"),
    ],
)
def test_an_alert_resolves_and_says_why(one: Finding | None, ending: Ending, why: str) -> None:
    alert = after(opened(), one)
    assert (alert.status, alert.ending) == (Status.RESOLVED, ending)
    assert told(alert) == ["opened", "resolved"]
    assert why in alert.events[-1].why
    assert alert.events[-1].at == alert.last_seen == NOW + MINUTE
    assert alert.first_seen == NOW


def test_only_an_approval_changes_what_a_resolved_alert_expected() -> None:
    repaired, approved = after(opened(), RIGHT), after(opened(), found(expected=7))
    assert (repaired.observed, repaired.expected) == (7, 3)
    assert (approved.observed, approved.expected) == (7, 7)


def test_the_score_at_which_it_resolves_is_not_yet_below() -> None:
    assert after(opened(), found(score=0.4)).status is Status.FIRING


def test_nothing_is_guessed_about_a_stale_value() -> None:
    for alert in (opened(), acknowledged(opened(), "ann", NOW)):
        for one in (found(stale=True, score=0.0), found(stale=True, observed=3, score=1.0)):
            assert after(alert, one) == alert
    closed = after(opened(), RIGHT)
    assert after(closed, found(stale=True)) == closed


def test_a_change_of_value_or_severity_is_told_and_a_repetition_is_not() -> None:
    same = after(opened(), FOUND)
    assert told(same) == ["opened"]
    assert same.last_seen == NOW + MINUTE
    changed = after(same, found(observed=9, severity=Severity.MINOR, moved=(), broken_intents=()))
    assert changed.events[-1].why == "the value is now 9, was 7; now minor, was critical"
    assert (changed.observed, changed.severity) == (9, Severity.MINOR)
    assert (changed.moved, changed.broken_intents) == ((), ())


def test_what_came_back_opens_the_same_alert_again() -> None:
    closed = replace(after(opened(), RIGHT), id="a17", verdict="false")
    assert after(closed, found(score=0.5)) == closed
    again = after(closed, FOUND, NOW + 2 * MINUTE)
    assert (again.id, again.status, again.verdict) == ("a17", Status.FIRING, None)
    assert again.ending is None
    assert (again.first_seen, again.last_seen) == (NOW, NOW + 2 * MINUTE)
    assert told(again) == ["opened", "resolved", "reopened"]


def test_an_acknowledgement_stays_until_it_resolves() -> None:
    alert = acknowledged(opened(), "ann", NOW, "on it")
    assert alert.events[-1] == (NOW, "acknowledged", "on it", "ann")
    for one in (FOUND, found(score=0.5), found(observed=9), found(stale=True)):
        alert = after(alert, one)
        assert alert.status is Status.ACKNOWLEDGED
    closed = after(alert, RIGHT)
    assert closed.status is Status.RESOLVED
    assert after(closed, FOUND).status is Status.FIRING


def test_a_verdict_says_who_and_stays_over_updates() -> None:
    alert = judged(opened(), "false", "ann", NOW, "a test")
    assert alert.events[-1] == (NOW, "judged", "a false alarm: a test", "ann")
    assert judged(alert, "true", "bob", NOW).events[-1].why == "a true alarm"
    assert after(alert, found(observed=9)).verdict == "false"
    assert alert.status is Status.FIRING


def flapped() -> Alert:
    alert = opened()
    for turn, one in enumerate((RIGHT, FOUND, RIGHT), 1):
        assert not alert.flapping
        alert = after(alert, one, NOW + turn * MINUTE)
    return alert


def test_one_that_turns_often_is_flapping_and_says_so_once() -> None:
    alert = flapped()
    assert alert.flapping
    assert told(alert)[-2:] == ["resolved", "flapping"]
    assert "4 turns" in alert.events[-1].why
    assert told(after(alert, FOUND, NOW + 4 * MINUTE)).count("flapping") == 1


def test_turns_of_long_ago_do_not_count() -> None:
    alert = opened()
    for turn in range(1, 10):
        alert = after(alert, FOUND if turn % 2 == 0 else RIGHT, NOW + turn * 21 * MINUTE)
        assert not alert.flapping


def test_a_turn_after_a_quiet_time_ends_flapping() -> None:
    alert = after(flapped(), FOUND, NOW + timedelta(days=1))
    assert not alert.flapping
    assert told(alert)[-1] == "reopened"


def test_one_that_keeps_firing_quietly_is_flapping_no_more() -> None:
    firing = after(flapped(), FOUND, NOW + 4 * MINUTE)
    assert firing.flapping
    assert not after(firing, FOUND, NOW + timedelta(days=1)).flapping


# Whatever is found

scores = st.floats(0, 1)
findings = st.none() | st.builds(
    found,
    score=scores,
    observed=st.integers(1, 4),
    expected=st.none() | st.integers(1, 4),
    stale=st.booleans(),
    severity=st.sampled_from(Severity),
)
histories = st.lists(st.tuples(findings, st.integers(0, 120), st.booleans()), max_size=12)


def lived(history: list[tuple[Finding | None, int, bool]]) -> list[Alert]:
    """The alert after every step; somebody acknowledges it where the step says so."""
    alert, now, steps = opened(), NOW, []
    for one, minutes, ack in history:
        now += minutes * MINUTE
        if ack and alert.status is Status.FIRING:
            alert = acknowledged(alert, "ann", now)
        alert = after(alert, one, now)
        steps.append(alert)
    return steps


@given(histories, st.floats(0.4, 0.8, exclude_max=True))
def test_a_score_between_the_two_changes_no_status(
    history: list[tuple[Finding | None, int, bool]], score: float
) -> None:
    for alert in lived(history):
        between = after(alert, found(score=score), alert.last_seen + MINUTE)
        assert between.status is alert.status
    assert decide(None, found(score=score), RULES, NOW) is None


@given(histories)
def test_events_only_grow_and_every_turn_has_one(
    history: list[tuple[Finding | None, int, bool]],
) -> None:
    steps = [opened(), *lived(history)]
    for before, now in pairwise(steps):
        assert now.events[: len(before.events)] == before.events
        fresh = {event.what for event in now.events[len(before.events) :]}
        assert all(event.why for event in now.events)
        is_over, was_over = (a.status is Status.RESOLVED for a in (now, before))
        assert (is_over and not was_over) == ("resolved" in fresh)
        assert (was_over and not is_over) == ("reopened" in fresh)
        assert now.first_seen == NOW
        assert now.last_seen >= before.last_seen
