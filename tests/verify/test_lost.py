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


def without_router(router: str) -> list[Fact]:
    ends = {router, *(e.id for e in ENTITIES if e.id.endswith(f"@{router}"))}
    return [fact for fact in RIGHT if ends.isdisjoint(fact.args)]


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


def test_a_router_that_is_gone_takes_all_along_that_it_had() -> None:
    left = [entity for entity in ENTITIES if "A" not in (entity.id, entity.id.partition("@")[2])]
    found = lost((left, without_router("A")), (ENTITIES, RIGHT), WANTED, False)
    assert set(found) == {AT_HOME, FactKey("ibgp", ("A", "RR"))}
    for proof in found.values():
        assert proof.suffices
        assert proof.vanished == ("A",)
        assert [broken.intent for broken in proof.broken] == [BY_A, WANTED.derived[0]]
        assert Move("A", "N", "AS1@A", None) in proof.moved
        assert Move("RR", "N", "A", "B") in proof.moved


def test_one_that_repairs_nothing_before_others_are_back_says_what_it_would_add() -> None:
    at_b, route = FactKey("ebgp", ("B", "AS2@B")), FactKey("bgp_route", ("AS2@B", "N"))
    inside, other = (FactKey("ibgp", (router, "RR")) for router in "BA")
    gone = without(at_b, route, inside, other)
    proof = lost((ENTITIES, gone), (ENTITIES, RIGHT), WANTED, False)[inside]
    assert not proof.suffices
    assert [broken.intent for broken in proof.broken] == [WANTED.derived[0]]
    assert proof.broken[0].wanted == ("B", "RR", "A", "AS1@A")
    assert proof.broken[0].actual == ("B",)
    assert proof.moved == (Move("B", "N", "RR", None),)


def test_where_nothing_is_left_every_session_is_told() -> None:
    found = lost(((), ()), (ENTITIES, RIGHT), WANTED, False)
    assert set(found) == {f.key for f in RIGHT if f.predicate in {"ebgp", "ibgp"}}
    assert all(proof.moved for proof in found.values())


def test_two_that_are_gone_are_each_told_for_what_it_does_alone() -> None:
    at_b = FactKey("ebgp", ("B", "AS2@B"))
    gone = without(AT_HOME, AT_A, at_b, FactKey("bgp_route", ("AS2@B", "N")))
    found = lost((ENTITIES, gone), (ENTITIES, RIGHT), WANTED, False)
    assert found[AT_HOME].suffices
    assert found[at_b].suffices
    assert found[AT_HOME].vanished == ()
    assert [broken.intent for broken in found[AT_HOME].broken] == [BY_A, WANTED.derived[0]]
    assert found[at_b].broken == ()
    assert Move("RR", "N", "B", None) in found[at_b].moved


def test_without_time_it_is_said_to_be_unverified() -> None:
    found = lost(
        (ENTITIES, without(AT_HOME, AT_A)), (ENTITIES, RIGHT), WANTED, False, lambda: False
    )
    assert found == {AT_HOME: NOT_VERIFIED}
