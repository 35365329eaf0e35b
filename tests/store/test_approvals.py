"""Baselines with who and when, and intents, go round both databases unchanged."""

from datetime import timedelta

from gsid_service.records import Entity, Fact, Intents
from gsid_service.store import approvals, snapshots
from gsid_service.store.database import Database
from tests.store.making import NOW, ROUTERS, link

ENTITIES = (
    *ROUTERS,
    Entity("AS65101@R3", "external_as", 4_294_967_295, "Zürich – 東京", (-0.5, 0.0)),
    Entity("203.0.113.0/24", "network", position=(0.0, 0.0)),
)
FACTS = (
    link("R1", "R2", 65_535),
    Fact("ebgp", ("R3", "AS65101@R3")),
    Fact("bgp_route", ("AS65101@R3", "203.0.113.0/24"), {"local_pref": 0, "as_path_length": 2}),
)
LATER = NOW + timedelta(microseconds=1)


def announced(database: Database, *names: str) -> None:
    with database.write() as connection:
        snapshots.announce(connection, names or ("net",), NOW)


def test_a_baseline_goes_round_unchanged(database: Database) -> None:
    announced(database)
    with database.write() as connection:
        assert approvals.baseline(connection, "net") is None
        assert approvals.newest(connection, "net") == 0
        approvals.approve(
            connection, "net", iter(ENTITIES), iter(FACTS), NOW, "ann", False, 7, ["c1", "é"]
        )
    with database.read() as connection:
        found = approvals.baseline(connection, "net")
        assert found is not None
        assert approvals.newest(connection, "net") == found.approval.number
    assert (found.entities, found.facts) == (ENTITIES, FACTS)
    assert found.approval[1:] == ("net", NOW, "ann", False, 7, ["c1", "é"], None)
    assert {fact.key for fact in found.facts} == {fact.key for fact in FACTS}


def test_the_newest_approval_counts_and_the_history_has_all(database: Database) -> None:
    announced(database, "net", "other")
    with database.write() as connection:
        for who, network, provisional in (
            ("gsid", "net", True),
            ("ann", "net", False),
            ("eve", "other", False),
            ("bob", "net", False),
        ):
            approvals.approve(connection, network, (), FACTS[:1], NOW, who, provisional, 1, [])
    with database.read() as connection:
        newest = approvals.baseline(connection, "net")
        first = approvals.history(connection, "net", 2**62, 2)
        rest = approvals.history(connection, "net", first[-1].number, 2)
    assert newest is not None
    assert newest.approval == first[0]
    assert [a.approved_by for a in (*first, *rest)] == ["bob", "ann", "gsid"]
    assert [a.provisional for a in (*first, *rest)] == [False, False, True]


def test_what_was_approved_is_given_back_as_it_will_be_read(database: Database) -> None:
    announced(database)
    with database.write() as connection:
        given = approvals.approve(connection, "net", ROUTERS, FACTS, NOW, "gsid", True, 3, ["c1"])
        assert approvals.baseline(connection, "net") == given


def test_intents_go_round_and_are_replaced_together(database: Database) -> None:
    announced(database, "net", "other")
    stated = Intents(
        (
            Fact("fwd", ("R1", "203.0.113.0/24", "R3"), holds=False),
            Fact("reachable", ("a", "b", "c")),
        ),
        (Fact("reachable", ("R1", "203.0.113.0/24", "R3")),),
    )
    with database.write() as connection:
        assert approvals.wanted(connection, "net") == Intents()
        approvals.want(connection, "net", stated, NOW, "ann")
    with database.write() as connection:
        assert approvals.wanted(connection, "net") == stated
        approvals.want(connection, "net", stated._replace(stated=()), LATER, "bob")
    with database.read() as connection:
        assert approvals.wanted(connection, "net") == Intents((), stated.derived)
        assert approvals.wanted(connection, "other") == Intents()
