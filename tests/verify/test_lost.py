"""Sessions that are gone: what moved by that, and what they would repair."""

from gsid_service.records import Fact, FactKey, Intents, Move, Severity
from gsid_service.verify.lost import lost
from gsid_service.verify.proof import NOT_VERIFIED
from tests.verify.test_repair import AT_A, BY_A, ENTITIES, facts

RIGHT = facts(at_a=200, at_b=100)  # all leave by A
AT_HOME = FactKey("ebgp", ("A", "AS1@A"))
WANTED = Intents((BY_A,), (Fact("reachable", ("B", "N", "A")),))


def without(*keys: FactKey) -> list[Fact]:
    return [fact for fact in RIGHT if fact.key not in keys]


def test_nothing_is_said_of_sessions_that_are_there() -> None:
    assert lost((ENTITIES, RIGHT), (ENTITIES, RIGHT), WANTED, False) == {}


def test_a_peering_takes_its_routes_along() -> None:
    left = [entity for entity in ENTITIES if entity.id != "AS1@A"]
    found = lost((left, without(AT_HOME, AT_A)), (ENTITIES, RIGHT), WANTED, False)
    (proof,) = found.values()
    assert list(found) == [AT_HOME]
    assert set(proof.moved) == {
        Move("A", "N", "AS1@A", "RR"),
        Move("RR", "N", "A", "B"),
        Move("B", "N", "RR", "AS2@B"),
    }
    assert [(b.intent, b.derived) for b in proof.broken] == [
        (BY_A, False),
        (WANTED.derived[0], True),
    ]
    assert proof.broken[0].wanted == ("RR", "A", "AS1@A")
    assert proof.broken[0].actual == ("RR", "B", "AS2@B")
    assert proof.severity is Severity.CRITICAL


def test_a_session_may_break_what_is_stated_when_it_is_back() -> None:
    elsewhere = Intents((Fact("fwd", ("RR", "N", "B")), BY_A))
    found = lost((ENTITIES, without(AT_HOME, AT_A)), (ENTITIES, RIGHT), elsewhere, False)
    assert (len(found[AT_HOME].broken), found[AT_HOME].breaks) == (1, 1)


def test_a_session_that_changes_nothing_has_nothing_to_show() -> None:
    spare = FactKey("ebgp", ("B", "AS2@B"))
    found = lost(
        (ENTITIES, without(spare, FactKey("bgp_route", ("AS2@B", "N")))),
        (ENTITIES, RIGHT),
        WANTED,
        False,
    )
    assert (found[spare].moved, found[spare].broken) == ((), ())


def test_a_session_inside_is_one_too() -> None:
    inside = FactKey("ibgp", ("B", "RR"))
    found = lost((ENTITIES, without(inside)), (ENTITIES, RIGHT), WANTED, False)
    assert Move("B", "N", "RR", "AS2@B") in found[inside].moved


def test_a_route_that_is_gone_alone_is_no_session() -> None:
    assert lost((ENTITIES, without(AT_A)), (ENTITIES, RIGHT), WANTED, False) == {}


def test_without_time_it_is_said_to_be_unverified() -> None:
    found = lost(
        (ENTITIES, without(AT_HOME, AT_A)), (ENTITIES, RIGHT), WANTED, False, lambda: False
    )
    assert found == {AT_HOME: NOT_VERIFIED}
