"""Proof: what a value breaks and moves, worked out on a network small enough to see it."""

import pytest

from gsid_service.records import BrokenIntent, Entity, Fact, FactKey, Intents, Move, Severity
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.plane import build
from gsid_service.simulate.revise import Rows
from gsid_service.verify.proof import Proof, prove

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


def state(local_pref: int) -> tuple[Forwarding, Rows]:
    observed = forward(build(ENTITIES, facts(local_pref)))
    return observed, Rows.of(observed, facts(local_pref))


def test_a_wrong_value_is_proved_by_what_it_broke_and_moved() -> None:
    wanted = Intents(stated=(HOP_A, Fact("fwd", ("RR", "N", "B"))), derived=(VIA_A,))
    proof = prove(*state(200), wanted, ROUTE, "local_pref", 50)
    assert proof.broken == (BrokenIntent(HOP_A, derived=False), BrokenIntent(VIA_A, derived=True))
    assert set(proof.moved) == {
        Move("RR", "N", before="A", after="B"),
        Move("A", "N", before="AS1@A", after="RR"),
        Move("B", "N", before="RR", after="AS2@B"),
    }


def test_an_intent_that_the_expected_value_does_not_mend_is_not_blamed_on_it() -> None:
    never = Fact("reachable", ("RR", "N", "B"))
    assert prove(*state(50), Intents((never,)), ROUTE, "local_pref", 60) == Proof()


def test_a_value_that_moves_nothing_proves_nothing() -> None:
    assert prove(*state(50), Intents((HOP_A,)), ROUTE, "local_pref", 40) == Proof()


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
    assert prove(*state(200), Intents((HOP_A,)), key, parameter, 1) == Proof()


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

    observed = forward(build(entities, disputed(100)))
    assert not observed.is_stable(0)
    wanted = Intents((Fact("reachable", ("RR1", "N", "A")),))
    rows = Rows.of(observed, disputed(100))
    assert prove(observed, rows, wanted, ROUTE, "local_pref", 50) == Proof()
    settled = forward(build(entities, disputed(50)))
    rows = Rows.of(settled, disputed(50))
    assert prove(settled, rows, wanted, ROUTE, "local_pref", 100) == Proof()
