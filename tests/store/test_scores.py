"""Scores: only changes are written, what is gone is forgotten, pages meet every value once."""

from datetime import datetime, timedelta
from itertools import permutations
from random import Random
from typing import Any

from gsid_service.records import FactKey
from gsid_service.store import scores, snapshots
from gsid_service.store.database import Database
from gsid_service.store.scored import PARAMETERS, Score, Scored
from tests.store.making import NOW

MINUTE = timedelta(minutes=1)


def score(a: str, b: str, value: float, parameter: str = "ospf_weight") -> Score:
    return Score(FactKey("connected", (a, b)), parameter, 10, 10, value, False)


HIGH, LOW, OTHER = score("R1", "R2", 0.9), score("R1", "R3", 0.05), score("R2", "R3", 0.2)


def put(
    database: Database,
    *found: Score,
    now: datetime = NOW,
    network: str = "net",
    snapshot: int = 1,
    before: Scored | None = None,
) -> Scored:
    with database.write() as connection:
        snapshots.announce(connection, [network], NOW)
        table = Scored.of(found)
        return scores.replace(connection, network, table, lambda _: snapshot, now, before)


def page(
    database: Database,
    least: float = 0.0,
    parameter: str | None = None,
    after: tuple[float, str, str] | None = None,
    limit: int = 99,
) -> list[dict[str, Any]]:
    with database.read() as connection:
        return scores.page(connection, "net", least, parameter, after, limit)


def lines(database: Database, one: Score) -> list[dict[str, Any]]:
    with database.read() as connection:
        return scores.history(connection, "net", *one.slot, 99)


def test_the_highest_comes_first_and_all_of_it_is_there(database: Database) -> None:
    first = HIGH._replace(baseline=None, observed=2**32 - 1, stale=True, score=1 / 3)
    put(database, LOW, first, OTHER)
    put(database, HIGH, network="elsewhere")
    rows = page(database)
    assert [row["score"] for row in rows] == [1 / 3, 0.2, 0.05]
    assert rows[0] == {
        "network": "net",
        "fact": HIGH.fact.digest,
        "parameter": "ospf_weight",
        "predicate": "connected",
        "args": ["R1", "R2"],
        "observed": 2**32 - 1,
        "baseline": None,
        "score": 1 / 3,
        "stale": True,
        "snapshot": 1,
        "since": NOW,
    }
    assert [row["score"] for row in page(database, least=0.2)] == [1 / 3, 0.2]
    assert page(database, parameter="med") == []


def test_only_what_changed_is_written(database: Database) -> None:
    put(database, HIGH, LOW, OTHER)
    later = OTHER._replace(score=0.7)
    put(database, HIGH._replace(score=0.905), LOW, later, now=NOW + MINUTE)
    since = {tuple(row["args"]): (row["since"], row["score"]) for row in page(database)}
    assert since == {
        ("R1", "R2"): (NOW, 0.9),
        ("R1", "R3"): (NOW, 0.05),
        ("R2", "R3"): (NOW + MINUTE, 0.7),
    }


def test_a_small_drift_is_written_once_it_adds_up(database: Database) -> None:
    for step in range(5):
        put(database, HIGH._replace(score=0.9 + step * 0.004), now=NOW + step * MINUTE)
    assert [(row["score"], row["since"]) for row in page(database)] == [
        (0.9 + 3 * 0.004, NOW + 3 * MINUTE)
    ]


def test_another_baseline_or_staleness_is_a_change(database: Database) -> None:
    put(database, HIGH)
    put(database, HIGH._replace(baseline=11), now=NOW + MINUTE)
    assert [(row["baseline"], row["since"]) for row in page(database)] == [(11, NOW + MINUTE)]
    put(database, HIGH._replace(baseline=11, stale=True), now=NOW + 2 * MINUTE)
    assert [(row["stale"], row["since"]) for row in page(database)] == [(True, NOW + 2 * MINUTE)]
    assert len(lines(database, HIGH)) == 1


def test_history_begins_with_the_quiet_value_before(database: Database) -> None:
    put(database, LOW, HIGH)
    assert lines(database, LOW) == []
    assert [line["score"] for line in lines(database, HIGH)] == [0.9]
    for step in (1, 2):
        now, other = NOW + step * MINUTE, LOW._replace(score=0.5, observed=10 + step)
        put(database, other, HIGH, now=now, snapshot=1 + step)
    told = [(line["at"], line["observed"], line["snapshot"]) for line in lines(database, LOW)]
    assert told == [(NOW + 2 * MINUTE, 12, 3), (NOW + MINUTE, 11, 2), (NOW, 10, 1)]
    assert len(lines(database, HIGH)) == 1


def test_values_that_are_gone_are_forgotten_but_not_their_history(database: Database) -> None:
    put(database, HIGH, LOW)
    put(database, LOW, now=NOW + MINUTE)
    assert [row["args"] for row in page(database)] == [["R1", "R3"]]
    assert len(lines(database, HIGH)) == 1
    put(database)
    assert page(database) == []


def test_pages_meet_every_value_once_where_scores_are_equal(database: Database) -> None:
    found = [score(a, b, 0.5, p) for a in "RQé" for b in "xyz" for p in ("med", "ospf_weight")]
    put(database, *found, score("A", "B", 0.6), score("A", "C", 0.4))
    seen: list[tuple[float, str, str]] = []
    while rows := page(database, after=seen[-1] if seen else None, limit=4):
        seen += [(row["score"], row["fact"], row["parameter"]) for row in rows]
    assert len(seen) == len(set(seen)) == len(found) + 2
    assert [one[0] for one in seen] == sorted((one[0] for one in seen), reverse=True)


def test_facts_that_read_alike_are_kept_apart(database: Database) -> None:
    """An id may have a comma in it."""
    put(database, score("a, b", "c", 0.9), score("a", "b, c", 0.8))
    assert [row["args"] for row in page(database)] == [["a, b", "c"], ["a", "b, c"]]


def test_who_knows_what_is_kept_writes_the_same_as_who_reads_it(database: Database) -> None:
    """Values come, go, drift and are decided otherwise, in any order of their facts."""
    rng, known = Random("scores"), None
    for step in range(30):
        now = NOW + step * MINUTE
        ends = rng.sample([*permutations("ABC", 2)], rng.randint(0, 6))
        found = [
            Score(
                *(FactKey("connected", pair), rng.choice(PARAMETERS), rng.randint(0, 2)),
                *(rng.choice([None, 1]), rng.choice([0.0, 0.2, 0.205, 0.9]), pair[0] == "A"),
            )
            for pair in ends
        ]
        known = put(database, *found, now=now, before=known)
        put(database, *found, now=now, network="read")
        mine, theirs = (
            [{k: v for k, v in row.items() if k != "network"} for row in all_of(database, name)]
            for name in ("net", "read")
        )
        assert mine == theirs
        with database.read() as connection:
            read = scores.kept(connection, "net").in_order_of(known.facts)
        assert {*read.at(read.there)} == {*known.at(known.there)}


def all_of(database: Database, network: str) -> list[dict[str, Any]]:
    with database.read() as connection:
        return scores.page(connection, network, 0.0, None, None, 99)
