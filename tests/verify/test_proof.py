"""Proof: what a value breaks and moves, worked out on a network small enough to see it."""

import pytest

from gsid_service.records import (
    BrokenIntent,
    Entity,
    Fact,
    FactKey,
    Intents,
    Move,
    Severity,
    Unsettled,
)
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.reverts import Bench
from gsid_service.verify.proof import Proof, prove
from gsid_service.verify.repair import Suspect

# A - RR - B, and a peer at A and at B that both announce N.
ENTITIES = (
    *(Entity(name, "router") for name in "AB"),
    Entity("RR", "route_reflector"),
    *(Entity(f"AS{n}@{r}", "external_as", n) for n, r in ((1, "A"), (2, "B"))),
    Entity("N", "network"),
)
ROUTE = FactKey("bgp_route", ("AS2@B", "N"))
VIA_A = Fact("reachable", ("RR", "N", "A"))
HOP_A = Fact("fwd", ("RR", "N", "A"))


def facts(local_pref: int) -> list[Fact]:
    """Traffic leaves by A, but where B's peer has a local_pref above 100."""
    return [
        *(Fact("connected", (r, "RR"), {"ospf_weight": 10}) for r in "AB"),
        *(Fact("ibgp", (r, "RR")) for r in "AB"),
        *(Fact("ebgp", ends) for ends in (("A", "AS1@A"), ("B", "AS2@B"))),
        Fact("bgp_route", ("AS1@A", "N"), {"local_pref": 100, "as_path_length": 1}),
        Fact(*ROUTE, {"local_pref": local_pref, "as_path_length": 1}),
    ]


def bench(local_pref: int, wanted: Intents) -> Bench:
    observed = forward(build(ENTITIES, facts(local_pref)))
    return Bench(observed, facts(local_pref), wanted.stated, wanted.derived)


def proof(upon: Bench, expected: int, key: FactKey = ROUTE, parameter: str = "local_pref") -> Proof:
    return prove(upon, Suspect(key, parameter, expected, 0.9))


def test_a_wrong_value_is_proved_by_what_it_broke_and_moved() -> None:
    wanted = Intents(stated=(HOP_A, Fact("fwd", ("RR", "N", "B"))), derived=(VIA_A,))
    found = proof(bench(200, wanted), 50)
    ways = ("RR", "A", "AS1@A"), ("RR", "B", "AS2@B")
    assert found.broken == (BrokenIntent(HOP_A, False, *ways), BrokenIntent(VIA_A, True, *ways))
    assert set(found.moved) == {
        Move("RR", "N", before="A", after="B"),
        Move("A", "N", before="AS1@A", after="RR"),
        Move("B", "N", before="RR", after="AS2@B"),
    }


def test_a_proof_says_what_the_expected_value_would_break_of_what_is_stated() -> None:
    stated, derived = Intents((HOP_A, VIA_A)), Intents(derived=(HOP_A, VIA_A))
    assert proof(bench(50, stated), 200).breaks == 2
    assert proof(bench(50, derived), 200).breaks == 0


def test_an_intent_that_the_expected_value_does_not_mend_is_not_blamed_on_it() -> None:
    never = Fact("reachable", ("RR", "N", "B"))
    assert proof(bench(50, Intents((never,))), 60) == Proof()


def test_a_value_that_moves_nothing_proves_nothing() -> None:
    assert proof(bench(50, Intents((HOP_A,))), 40) == Proof()


@pytest.mark.parametrize(
    ("key", "parameter"),
    [
        (FactKey("bgp_route", ("AS9@B", "N")), "local_pref"),
        (ROUTE, "is_ebgp"),
        (ROUTE, "ospf_weight"),
        (FactKey("ebgp", ("A", "AS1@A")), "local_pref"),
    ],
)
def test_what_forwarding_does_not_depend_on_proves_nothing(key: FactKey, parameter: str) -> None:
    assert proof(bench(200, Intents((HOP_A,))), 1, key, parameter) == Proof()


@pytest.mark.parametrize(
    ("broken", "moved", "severity"),
    [
        ((), False, Severity.MINOR),
        ((), True, Severity.MAJOR),
        (("fwd",), True, Severity.MAJOR),
        (("fwd", "reachable"), True, Severity.CRITICAL),
        (("traffic_isolation",), True, Severity.CRITICAL),
    ],
)
def test_severity_is_by_what_broke(
    broken: tuple[str, ...], moved: bool, severity: Severity
) -> None:
    intents = tuple(BrokenIntent(Fact(name, ()), derived=False) for name in broken)
    moves = (Move("R1", "N", "R2", "R3"),) if moved else ()
    assert Proof(intents, moves).severity is severity


def test_a_network_without_one_outcome_is_no_proof() -> None:
    """Two reflectors that each prefer the other's client settle on either."""
    entities = (
        *(Entity(name, "route_reflector") for name in ("RR1", "RR2")),
        *(Entity(name, "router") for name in "AB"),
        *(Entity(f"AS{n}@{r}", "external_as", n) for n, r in ((1, "A"), (2, "B"))),
        Entity("N", "network"),
    )
    links = (("RR1", "A", 5), ("RR1", "B", 1), ("RR2", "B", 5), ("RR2", "A", 1), ("RR1", "RR2", 9))

    def disputed(local_pref: int) -> list[Fact]:
        return [
            *(Fact("connected", (a, b), {"ospf_weight": w}) for a, b, w in links),
            *(Fact("ibgp", ends) for ends in (("A", "RR1"), ("B", "RR2"), ("RR1", "RR2"))),
            *(Fact("ebgp", ends) for ends in (("A", "AS1@A"), ("B", "AS2@B"))),
            Fact("bgp_route", ("AS1@A", "N"), {"local_pref": 100, "as_path_length": 1}),
            Fact(*ROUTE, {"local_pref": local_pref, "as_path_length": 1}),
        ]

    def nothing(now: bool) -> Proof:
        return Proof(unsettled=(Unsettled("N", now),))

    observed = forward(build(entities, disputed(100)))
    assert not observed.is_stable(0)
    wanted = Intents((Fact("reachable", ("RR1", "N", "A")),))
    assert proof(Bench(observed, disputed(100), wanted.stated), 50) == nothing(now=True)
    settled = forward(build(entities, disputed(50)))
    assert proof(Bench(settled, disputed(50), wanted.stated), 100) == nothing(now=False)
