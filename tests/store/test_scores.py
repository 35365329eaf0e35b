"""Scores: only changes are written, what is gone is forgotten, pages meet every value once."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gsid_service.records import FactKey
from gsid_service.store import scores, snapshots
from gsid_service.store.database import Database
from gsid_service.store.scores import Score
from tests.store.making import NOW

MINUTE = timedelta(minutes=1)


def score(a: str, b: str, value: float, parameter: str = "ospf_weight") -> Score:
    return Score(FactKey("connected", (a, b)), parameter, 10, 10, value, False, 1)


HIGH, LOW, OTHER = score("R1", "R2", 0.9), score("R1", "R3", 0.05), score("R2", "R3", 0.2)


def put(database: Database, *found: Score, now: datetime = NOW, network: str = "net") -> None:
    with database.write() as connection:
        snapshots.announce(connection, [network], NOW)
        scores.replace(connection, network, found, now)


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
    first = replace(HIGH, baseline=None, observed=2**32 - 1, stale=True, score=1 / 3)
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
    later = replace(OTHER, score=0.7, snapshot=2)
    put(database, replace(HIGH, score=0.905, snapshot=2), LOW, later, now=NOW + MINUTE)
    since = {tuple(row["args"]): (row["since"], row["score"]) for row in page(database)}
    assert since == {
        ("R1", "R2"): (NOW, 0.9),
        ("R1", "R3"): (NOW, 0.05),
        ("R2", "R3"): (NOW + MINUTE, 0.7),
    }


def test_a_small_drift_is_written_once_it_adds_up(database: Database) -> None:
    for step in range(5):
        put(database, replace(HIGH, score=0.9 + step * 0.004), now=NOW + step * MINUTE)
    assert [(row["score"], row["since"]) for row in page(database)] == [
        (0.9 + 3 * 0.004, NOW + 3 * MINUTE)
    ]


def test_another_baseline_or_staleness_is_a_change(database: Database) -> None:
    put(database, HIGH)
    put(database, replace(HIGH, baseline=11), now=NOW + MINUTE)
    assert [(row["baseline"], row["since"]) for row in page(database)] == [(11, NOW + MINUTE)]
    put(database, replace(HIGH, baseline=11, stale=True), now=NOW + 2 * MINUTE)
    assert [(row["stale"], row["since"]) for row in page(database)] == [(True, NOW + 2 * MINUTE)]
    assert len(lines(database, HIGH)) == 1


def test_history_begins_when_a_value_is_no_longer_quiet(database: Database) -> None:
    put(database, LOW, HIGH)
    assert lines(database, LOW) == []
    assert [line["score"] for line in lines(database, HIGH)] == [0.9]
    put(database, replace(LOW, score=0.5, observed=11, snapshot=2), HIGH, now=NOW + MINUTE)
    put(database, replace(LOW, score=0.5, observed=12, snapshot=3), HIGH, now=NOW + 2 * MINUTE)
    told = [(line["at"], line["observed"], line["snapshot"]) for line in lines(database, LOW)]
    assert told == [(NOW + 2 * MINUTE, 12, 3), (NOW + MINUTE, 11, 2)]
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
