"""Evidence counts what intents and traffic say of each link and route."""

import random
from collections.abc import Sequence

import numpy as np

from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import EVIDENCE, Fact, FactKey, FloatArray
from gsid_service.simulate.evidence import Traffic, evidence
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.revise import Rows
from tests.simulate.test_forwarding import ENTITIES, link, square, state
from tests.simulate.test_revise import redrawn

INTENTS = (
    Fact("fwd", ("R1", "N", "R0")),
    Fact("fwd", ("R3", "N", "R1"), {}, False),
    Fact("reachable", ("R2", "N", "A@R0")),
)


def said(row: FloatArray) -> dict[str, int]:
    return {name: int(count) for name, count in zip(EVIDENCE, row, strict=True) if count}


def by_key(
    facts: Sequence[Fact],
    wanted: Sequence[Fact],
    observed: Forwarding,
    approved: Forwarding | None = None,
) -> dict[FactKey, FloatArray]:
    """The rows of facts and intents of which there is anything to say."""
    rows = evidence(facts, wanted, observed, approved)
    keys = [fact.key for fact in (*facts, *wanted)]
    return {key: row for key, row in zip(keys, rows, strict=True) if row.any()}


def test_traffic_and_intents_that_hold() -> None:
    facts = square()
    rows = by_key(facts, INTENTS, state(*facts))
    # R1, and by way of it R3 and RR, send over R0 - R1; R3 could as well go by R2.
    assert said(rows[FactKey("connected", ("R0", "R1"))]) == {
        "observed flows": 1,
        "observed kept": 1,
        "observed unmet": 1,  # of R3, which must not use R1 but may
        "wanted met": 1,
    }
    assert said(rows[FactKey("connected", ("R1", "R3"))]) == {
        "observed flows": 1,
        "observed unmet": 1,
        "unwanted unmet": 1,
    }
    assert said(rows[FactKey("bgp_route", ("A@R0", "N"))]) == {
        "observed flows": 5,
        "observed kept": 2,
        "observed unmet": 1,
        "wanted met": 1,
    }
    assert said(rows[INTENTS[0].key]) == {"observed kept": 1}
    # No traffic leaves by B, and one intent wants A.
    assert said(rows[FactKey("bgp_route", ("B@R3", "N"))]) == {"rivalled met": 1}


def test_a_gateway_that_is_to_pass_traffic_on_must_not_leave_by_a_route_of_its_own() -> None:
    facts, wanted = square(local_pref=300), [Fact("fwd", ("R3", "N", "R1"))]
    rows = by_key(facts, wanted, state(*facts))
    assert said(rows[FactKey("bgp_route", ("B@R3", "N"))])["unwanted unmet"] == 1
    negated = [Fact("fwd", ("R3", "N", "R1"), {}, False)]
    rows = by_key(facts, negated, state(*facts))
    assert "unwanted met" not in said(rows[FactKey("bgp_route", ("B@R3", "N"))])


def test_a_gateway_that_is_to_leave_by_one_of_its_peers_may_leave_by_the_other() -> None:
    elsewhere = [fact for fact in square() if fact.args != ("R3", "B@R3")]
    facts, wanted = (*elsewhere, Fact("ebgp", ("R0", "B@R3"))), [Fact("fwd", ("R0", "N", "A@R0"))]
    rows = by_key(facts, wanted, state(*facts))
    assert said(rows[FactKey("bgp_route", ("B@R3", "N"))]) == {"rivalled met": 1}


def test_what_changed_since_the_approved_values() -> None:
    facts = square(near=9)
    rows = by_key(facts, INTENTS, state(*facts), state(*square()))
    # R1 now goes round by R3 and R2: its intent is lost, R3's is gained.
    assert said(rows[INTENTS[0].key]) == {"observed lost": 1}
    assert said(rows[INTENTS[1].key]) == {"observed gained": 1}
    assert said(rows[FactKey("connected", ("R0", "R1"))]) == {
        "approved flows": 1,
        "approved lost": 1,
        "approved gained": 1,
        "wanted unmet": 1,
    }
    assert said(rows[FactKey("connected", ("R2", "R3"))])["observed lost"] == 1


def test_directions_that_are_reported_apart_are_counted_apart() -> None:
    facts = (*square(), link("R1", "R0", 1))
    rows = by_key(facts, INTENTS[:1], state(*facts))
    assert said(rows[FactKey("connected", ("R1", "R0"))])["wanted met"] == 1
    assert FactKey("connected", ("R0", "R1")) not in rows


def test_order_does_not_matter() -> None:
    case = SPLITS["operations-standard"].case("evidence", 0)
    assert case.baseline
    plain = [(case.entities, case.facts), case.baseline]
    turned = [(entities, facts[::-1]) for entities, facts in plain]
    one, other = (
        by_key(views[0][1], case.intents, *(forward(build(*v), True) for v in views))
        for views in (plain, turned)
    )
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[key], other[key]) for key in one)


def test_traffic_that_moved_is_counted_as_if_all_were_counted_anew() -> None:
    rng = random.Random("traffic")
    for split in ("standard", "larger"):
        case = SPLITS[split].case("traffic", 0)
        row_of = {fact.key: row for row, fact in enumerate(case.facts)}
        state = forward(build(case.entities, case.facts), True)
        rows, traffic = Rows.of(state, case.facts), Traffic.of(state, row_of)
        for _ in range(8):
            values = redrawn(case.facts, 2, rng)
            revised = rows.revise(traffic.state, [(*slot, v) for slot, v in values.items()])
            assert revised is not None
            traffic = traffic.after(revised.state)
            anew = Traffic.of(revised.state, row_of)
            assert np.array_equal(traffic.towards, anew.towards)
            assert np.array_equal(traffic.using, anew.using)
            assert np.array_equal(traffic.flows(len(row_of)), anew.flows(len(row_of)))


def test_an_unsettled_network_says_nothing() -> None:
    assert by_key((), (), forward(build(ENTITIES, ()))) == {}
