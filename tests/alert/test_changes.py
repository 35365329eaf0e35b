"""What is expected while changes are under way, and how far they are; any order of application."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.alert.changes import (
    accepted,
    by_key,
    cancelled,
    expected,
    followed,
    is_over,
    is_under_way,
    legitimised,
    marked,
    steps,
    summary,
)
from gsid_service.alert.decide import Finding, Rules, decide
from gsid_service.alert.sentence import sentence
from gsid_service.records import Change, ChangeStatus, Fact, FactKey, Step, UnderWay
from gsid_service.simulate.reverts import changed
from tests.notify import making

BEGIN = datetime(2026, 11, 15, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)
PATIENCE = timedelta(minutes=15)
LINKS = [(a, b) for a in ("R1", "R2", "R3") for b in ("R4", "R5")]
ROUTES = [(f"AS{n}@R{n}", "203.0.113.0/24") for n in (1, 2, 3)]

states = st.builds(
    lambda links, routes: tuple(
        [Fact("connected", key, {"ospf_weight": w}) for key, w in links.items()]
        + [
            Fact("bgp_route", key, {"local_pref": p, "as_path_length": 2, "med": m})
            for key, (p, m) in routes.items()
        ]
    ),
    st.dictionaries(st.sampled_from(LINKS), st.integers(1, 3)),
    st.dictionaries(st.sampled_from(ROUTES), st.tuples(st.integers(0, 3), st.integers(0, 3))),
)


def change(*announced: Step, name: str = "c1") -> Change:
    return Change(
        id=name,
        network="net",
        author="ann",
        announced_by="noc",
        announced_at=BEGIN - HOUR,
        ticket="CHG-7",
        comment="",
        begins_at=BEGIN,
        ends_at=BEGIN + HOUR,
        steps=announced,
    )


def applied(
    facts: tuple[Fact, ...], done: list[Step], target: tuple[Fact, ...]
) -> tuple[Fact, ...]:
    """A state with some steps taken; a new fact comes with all that it carries."""
    found, new = by_key(facts), by_key(target)
    for step in done:
        if step.parameter is None and not step.after:
            found.pop(step.fact, None)
        elif step.fact not in found:
            found[step.fact] = new[step.fact]
        elif step.parameter is not None:
            old = found[step.fact]
            found[step.fact] = old._replace(params={**old.params, step.parameter: step.after})
    return tuple(found.values())


@given(states, states, st.data())
def test_whatever_was_applied_so_far_nothing_announced_differs(
    before: tuple[Fact, ...], after: tuple[Fact, ...], data: st.DataObject
) -> None:
    wanted = steps(by_key(before), by_key(after))
    done = data.draw(st.permutations(wanted))
    done = done[: data.draw(st.integers(0, len(done)))]
    seen = applied(before, done, after)
    found = expected(before, by_key(seen), [change(*wanted)])
    assert found.contradicted == frozenset()
    assert list(changed(seen, found.facts)) == []
    assert {f.key for f in seen} <= {f.key for f in found.facts}


@given(states, states)
def test_all_steps_lead_from_one_state_to_the_other(
    before: tuple[Fact, ...], after: tuple[Fact, ...]
) -> None:
    wanted = steps(by_key(before), by_key(after))
    assert by_key(applied(before, list(wanted), after)) == by_key(after)
    assert by_key(accepted(before, by_key(after), change(*wanted))) == by_key(after)
    assert steps(by_key(before), by_key(before)) == ()


@given(states, states)
def test_where_nothing_is_announced_the_approved_stays(
    approved: tuple[Fact, ...], seen: tuple[Fact, ...]
) -> None:
    assert expected(approved, by_key(seen), []) == (approved, frozenset())
    assert expected(approved, by_key(seen), [change()]) == (approved, frozenset())
    assert accepted(approved, by_key(seen), change()) == approved


@given(states, states, states)
def test_only_what_is_announced_is_expected_or_accepted_otherwise(
    approved: tuple[Fact, ...], target: tuple[Fact, ...], seen: tuple[Fact, ...]
) -> None:
    wanted = steps(by_key(approved), by_key(target))
    slots = {(step.fact, step.parameter) for step in wanted}
    for facts in (
        expected(approved, by_key(seen), [change(*wanted)]).facts,
        accepted(approved, by_key(seen), change(*wanted)),
    ):
        for step in steps(by_key(approved), by_key(facts)):
            added = (step.fact, None) in slots
            assert added or (step.fact, step.parameter) in slots


LINK = Fact("connected", ("R1", "R4"), {"ospf_weight": 10})
STEP = Step(LINK.key, "ospf_weight", 10, 20)


def weighing(weight: int) -> dict[str, int]:
    return {"ospf_weight": weight}


@pytest.mark.parametrize(
    ("observed", "reference", "wrong"), [(10, 10, False), (20, 20, False), (15, 20, True)]
)
def test_old_new_and_neither(observed: int, reference: int, wrong: bool) -> None:
    seen = by_key([LINK._replace(params=weighing(observed))])
    found = expected([LINK], seen, [change(STEP)])
    assert found.facts == (LINK._replace(params=weighing(reference)),)
    assert found.contradicted == ({(LINK.key, "ospf_weight")} if wrong else frozenset())


def test_what_was_wrong_before_the_announcement_stays_as_it_was() -> None:
    """A change that is to repair a value does not excuse it."""
    seen = by_key([LINK._replace(params=weighing(99))])
    found = expected([LINK], seen, [change(STEP._replace(before=99, after=10))])
    assert found == ((LINK,), frozenset())


def test_of_two_changes_either_value_will_do() -> None:
    other = change(STEP._replace(after=30), name="c2")
    for weight in (10, 20, 30):
        seen = by_key([LINK._replace(params=weighing(weight))])
        assert expected([LINK], seen, [change(STEP), other]).contradicted == frozenset()
    seen = by_key([LINK._replace(params=weighing(7))])
    found = expected([LINK], seen, [change(STEP), other])
    assert found.facts[0].params == weighing(30)
    assert found.contradicted == {(LINK.key, "ospf_weight")}


def test_forwarding_as_reported_is_not_announced() -> None:
    reported = Fact("fwd", ("R1", "203.0.113.0/24", "R4"))
    assert steps({}, by_key([reported])) == ()


@pytest.mark.parametrize(
    ("weights", "after", "status", "closed"),
    [
        ((10, 10), -HOUR, ChangeStatus.PENDING, False),
        ((10, 10), 0 * HOUR, ChangeStatus.APPLYING, False),
        ((20, 10), 0 * HOUR, ChangeStatus.APPLYING, False),
        ((20, 20), 0 * HOUR, ChangeStatus.APPLIED, False),
        ((20, 20), HOUR, ChangeStatus.APPLIED, True),
        ((20, 15), HOUR, ChangeStatus.PARTLY_APPLIED, True),
        ((10, 15), HOUR, ChangeStatus.NOT_APPLIED, True),
    ],
)
def test_status(
    weights: tuple[int, int], after: timedelta, status: ChangeStatus, closed: bool
) -> None:
    other = LINK._replace(args=("R2", "R4"))
    facts = [f._replace(params=weighing(w)) for f, w in zip((LINK, other), weights, strict=True)]
    wanted = change(STEP, STEP._replace(fact=other.key))
    now = BEGIN + after
    found = followed(wanted, by_key(facts), {"c1": now}, now, PATIENCE)
    assert (found.status, found.closed_at) == (status, now if closed else None)
    assert found.observed == (() if status is ChangeStatus.PENDING else weights)
    assert followed(found, {}, {}, now + HOUR, PATIENCE) == found or not closed


def test_a_window_ends_once_everybody_has_spoken_or_is_not_waited_for() -> None:
    wanted, end = change(STEP), BEGIN + HOUR
    early, late = end - timedelta(seconds=1), end + timedelta(seconds=1)
    assert not is_over(wanted, {"c1": early}, early, PATIENCE)
    assert not is_over(wanted, {"c1": late, "c2": early}, late, PATIENCE)
    assert is_over(wanted, {"c1": late, "c2": late}, late, PATIENCE)
    assert is_over(wanted, {"c1": early}, end + PATIENCE, PATIENCE)
    gone = cancelled(wanted, "bob", BEGIN)
    assert not is_over(gone, {}, end + PATIENCE, PATIENCE)
    assert not is_under_way(gone, BEGIN)
    assert (gone.status, gone.cancelled_by) == (ChangeStatus.CANCELLED, "bob")


def test_what_is_said_of_a_change() -> None:
    wanted = change(STEP, Step(LINK.key, None, 1, 0), Step(LINK.key, None, 0, 1))
    assert summary(wanted) == "3 announced, none looked at yet"
    assert summary(replace(wanted, observed=(None, 1, 0))) == (
        "0 of 3 applied: ospf_weight on R1 → R4 is not there, announced 20; "
        "connected(R1, R4) is still there; connected(R1, R4) is not there yet"
    )
    many = change(*[STEP] * 5)
    assert summary(replace(many, observed=(20, 10, 10, 10, 10))).endswith("; 1 more")


RULES = Rules(0.7, 0.35, 5, HOUR)
SLOT = LINK.key, "ospf_weight"
FOUND = Finding("net", LINK.key, "ospf_weight", 0.9, 15, 20, False, "s1", "c1")


def test_findings_name_the_change_in_whose_window_they_are() -> None:
    under_way = [change(STEP), change(name="c2")]
    (said,) = marked({SLOT: FOUND}, {SLOT}, under_way).values()
    assert said.under_way == UnderWay("c1", "CHG-7", announced=True)
    assert "is 15, expected 20 as CHG-7 (c1) announces" in sentence(said)
    (besides,) = marked({SLOT: FOUND}, (), under_way).values()
    assert besides.under_way == UnderWay("c2", "CHG-7", announced=False)
    assert "which CHG-7 (c2) does not announce" in sentence(besides)
    assert marked({SLOT: FOUND}, (), []) == {SLOT: FOUND}


def test_an_alert_keeps_the_change_in_whose_window_it_opened() -> None:
    besides = replace(FOUND, under_way=UnderWay("c2", "CHG-7", announced=False))
    announced = replace(FOUND, under_way=UnderWay("c1", "CHG-7", announced=True))
    before = decide(None, FOUND, RULES, BEGIN)
    opened = decide(None, besides, RULES, BEGIN)
    assert before is not None
    assert opened is not None
    assert opened.under_way == besides.under_way
    for alert, found, kept in (
        (before, besides, None),  # it was there before the change
        (opened, FOUND, besides.under_way),
        (opened, announced, announced.under_way),
        (replace(opened, under_way=announced.under_way), FOUND, None),
    ):
        after = decide(alert, found, RULES, BEGIN + HOUR)
        assert after is not None
        assert after.under_way == kept


ROUTE = Fact("bgp_route", ROUTES[0], {"local_pref": 80, "as_path_length": 2})
SESSION = FactKey("ebgp", ("R1", "AS1@R1"))
HOP = Fact("fwd", ("R1", "203.0.113.0/24", "R4"))


@pytest.mark.parametrize(
    ("fact", "parameter", "observed", "over"),
    [
        (ROUTE.key, "local_pref", 80, True),
        (ROUTE.key, "local_pref", 90, False),
        (ROUTE.key, "med", 0, True),  # the default, which nobody wrote down
        (FactKey("bgp_route", ROUTES[1]), "local_pref", 80, False),
        (SESSION, "session", "down", True),
        (HOP.key, "next_hop", "R4", False),
    ],
)
def test_an_approval_makes_an_end_of_alerts_on_what_it_approves(
    fact: FactKey, parameter: str, observed: int | str, over: bool
) -> None:
    about = making.alert(fact=fact, parameter=parameter, observed=observed)
    assert legitimised([about], by_key([ROUTE, HOP])) == ([about] if over else [])


def test_an_approval_of_a_session_does_not_excuse_that_it_is_down() -> None:
    about = making.alert(fact=SESSION, parameter="session", observed="down")
    assert legitimised([about], by_key([Fact(*SESSION)])) == []
