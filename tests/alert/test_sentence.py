"""The sentence of an alert says what is wrong, what it does and what to do."""

from dataclasses import replace

import pytest

from gsid_service.alert.sentence import sentence
from gsid_service.records import (
    BrokenIntent,
    Ending,
    Fact,
    FactKey,
    Move,
    Restored,
    Severity,
    Status,
    Unsettled,
)
from tests.notify.making import alert

NETWORK = "203.0.113.0/24"
ALERT = alert(3, severity=Severity.MAJOR)
MOVED = tuple(Move(f"R{i}", NETWORK, "R3", "R4") for i in range(1, 8))
FWD = tuple(BrokenIntent(Fact("fwd", (f"R{i}", NETWORK, "R3")), False) for i in range(1, 7))
OTHER = Restored(FactKey("bgp_route", ("AS65102@R4", NETWORK)), "local_pref", 100)
HEAD = f"local_pref on AS65101@R3 → {NETWORK} is 80, expected 200"


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({}, f"{HEAD}: no traffic moves"),
        (
            {"moved": MOVED, "broken_intents": FWD, "reverting_repairs": 6},
            f"{HEAD}: R1, R2 and 5 more send traffic to R4; 6 fwd intents broken; "
            "restoring 200 repairs all 6",
        ),
        (
            {"moved": MOVED[:1], "broken_intents": FWD[:1], "reverting_repairs": 1},
            f"{HEAD}: R1 sends traffic to R4; 1 fwd intent broken; restoring 200 repairs it",
        ),
        (
            {"moved": (Move("R1", NETWORK, "R3", None),)},
            f"{HEAD}: R1 has no way to {NETWORK} any more",
        ),
        (
            {"moved": (*MOVED[:3], *(Move(r, NETWORK, "R3", None) for r in ("R8", "R9")))},
            f"{HEAD}: R8 and R9 have no way to {NETWORK} any more, 3 other next hops moved",
        ),
        (
            {"moved": (Move("R1", NETWORK, "R3", None), Move("R2", "N2", "R3", None))},
            f"{HEAD}: R1 and R2 have no way to some of {NETWORK} and N2 any more",
        ),
        (
            {
                "moved": (*MOVED[:2], Move("R9", NETWORK, "R3", "R8")),
                "broken_intents": FWD[:2],
                "reverting_repairs": 2,
                "together": (OTHER,),
            },
            f"{HEAD}: R1 and R2 send traffic to R4, 1 other next hop moved; 2 fwd intents broken; "
            f"restoring 200, with 100 on AS65102@R4 → {NETWORK}, repairs all 2",
        ),
        (
            {
                "moved": MOVED[:1],
                "broken_intents": FWD[:1],
                "reverting_repairs": 1,
                "reverting_breaks": 2,
            },
            f"{HEAD}: R1 sends traffic to R4; 1 fwd intent broken; restoring 200 repairs it, "
            "but breaks 2 stated intents",
        ),
        (
            {"moved": MOVED[:1], "reverting_breaks": 1},
            f"{HEAD}: R1 sends traffic to R4; restoring 200 would break 1 stated intent",
        ),
        (
            {"unsettled": (Unsettled(NETWORK, now=True),)},
            f"{HEAD}: traffic to {NETWORK} has no one stable outcome",
        ),
        (
            {"unsettled": (Unsettled(NETWORK, now=False),)},
            f"{HEAD}: with 200 traffic to {NETWORK} would have no one stable outcome",
        ),
        (
            {"moved": MOVED[:1], "unsettled": (Unsettled(NETWORK, now=True),)},
            f"{HEAD}: R1 sends traffic to R4",
        ),
        ({"verified": False}, f"{HEAD}: what it does was not verified for want of time"),
        (
            {"suggested": True},
            f"{HEAD} (a suggestion, not an approved value): no traffic moves",
        ),
        (
            {"expected": None},
            f"local_pref on AS65101@R3 → {NETWORK} is 80, which is suspicious: no traffic moves",
        ),
    ],
)
def test_sentences(told: dict[str, object], text: str) -> None:
    assert sentence(replace(ALERT, **told)) == text  # type: ignore[arg-type]


def test_what_is_over_is_said_to_be() -> None:
    over = sentence(replace(ALERT, status=Status.RESOLVED, moved=MOVED))
    assert over == f"restored: local_pref on AS65101@R3 → {NETWORK} is no longer wrong"


@pytest.mark.parametrize(
    ("ending", "text"), [(Ending.GONE, "there"), (Ending.BELIEVED, "suspicious")]
)
def test_what_was_not_put_back_is_not_called_restored(ending: Ending, text: str) -> None:
    over = sentence(replace(ALERT, status=Status.RESOLVED, ending=ending))
    assert over == f"over: local_pref on AS65101@R3 → {NETWORK} is no longer {text}"


def test_what_was_approved_is_not_called_restored() -> None:
    over = sentence(replace(ALERT, status=Status.RESOLVED, expected=ALERT.observed))
    told = f"local_pref on AS65101@R3 → {NETWORK} is still 80, which is the expected value now"
    assert over == f"over: {told}"


def test_derived_intents_are_called_so() -> None:
    derived = BrokenIntent(Fact("reachable", ("R1", NETWORK, "R3")), derived=True)
    said = sentence(replace(ALERT, broken_intents=(derived,), reverting_repairs=1))
    assert "1 derived reachable intent broken" in said


def test_what_is_configured_but_not_in_operation() -> None:
    odd = replace(
        ALERT,
        fact=FactKey("fwd", ("R1", NETWORK, "R4")),
        parameter="next_hop",
        observed="R4",
        expected="R3",
    )
    assert sentence(odd) == (
        f"R1 forwards {NETWORK} to R4, but what is configured leads to R3: "
        "configured, but not in operation"
    )
    assert sentence(replace(odd, expected=None)) == (
        f"R1 forwards {NETWORK} to R4, but what is configured leads nowhere: "
        "in operation, but not configured"
    )
    assert sentence(replace(odd, status=Status.RESOLVED, ending=Ending.GONE)) == (
        f"over: R1 no longer forwards {NETWORK} to R4, or that is configured now"
    )


DOWN = replace(
    ALERT,
    fact=FactKey("ebgp", ("R3", "AS65101@R3")),
    parameter="session",
    observed="down",
    expected="up",
    broken_intents=FWD[:1],
    reverting_repairs=1,
)


def test_a_session_that_is_down() -> None:
    assert sentence(replace(DOWN, moved=MOVED[:1])) == (
        "the session of R3 and AS65101@R3 is down: R1 sends traffic to R4; 1 fwd intent broken; "
        "restoring the session repairs it"
    )
    over = replace(DOWN, status=Status.RESOLVED)
    assert sentence(replace(over, ending=Ending.RESTORED)) == (
        "over: the session of R3 and AS65101@R3 is up again"
    )
    assert sentence(replace(over, ending=Ending.GONE)) == (
        "over: the session of R3 and AS65101@R3 is no longer expected, or moves no traffic any more"
    )


def test_a_session_of_a_router_of_which_nothing_is_left() -> None:
    said = sentence(replace(DOWN, observed="down, as all of R3 is"))
    assert said.startswith("the session of R3 and AS65101@R3 is down, as all of R3 is: ")
    assert said.endswith("restoring all of that repairs it")


def test_a_session_that_is_down_among_others() -> None:
    one = replace(DOWN, reverting_repairs=0)
    assert sentence(one).endswith("restoring the session repairs none of it alone")
    several = replace(one, broken_intents=FWD)
    assert sentence(several).endswith("restoring the session repairs none of them alone")
