"""Candidates and announcements as documents: what is read, and which field is refused."""

import json
from typing import Any

import pytest

from gsid_service.ingest.candidate import (
    VALUES_AT_MOST,
    parse_announcement,
    parse_candidate,
    read_values,
)
from gsid_service.ingest.problems import InvalidSnapshot, NotJSON
from gsid_service.records import Fact, Snapshot
from tests.flow.network import small

ROUTE = Fact("bgp_route", ("AS1@R1", "203.0.113.0/24"), {"local_pref": 200})
FACTS = {ROUTE.key: ROUTE}
VALUE = {
    "fact": {"predicate": ROUTE.predicate, "args": list(ROUTE.args)},
    "parameter": "local_pref",
    "value": 80,
}


def values(*changes: dict[str, Any]) -> Any:
    return parse_candidate(json.dumps({"changes": changes}).encode())


def test_a_snapshot_and_values_are_told_apart() -> None:
    assert isinstance(parse_candidate(json.dumps(small("net")).encode()), Snapshot)
    assert read_values(values(VALUE), FACTS) == {(ROUTE.key, "local_pref"): 80}


def test_a_symbol_is_a_value() -> None:
    change = VALUE | {"parameter": "origin", "value": "incomplete"}
    assert read_values(values(change), FACTS) == {(ROUTE.key, "origin"): 2}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"fact": {"predicate": "bgp_route", "args": ["x", "y"]}}, "changes[1].fact"),
        ({"fact": {"predicate": "nothing", "args": []}}, "changes[1].fact"),
        ({"parameter": "ospf_weight"}, "changes[1].parameter"),
        ({"value": 2**32}, "changes[1].value"),
        ({"value": "80"}, "changes[1].value"),
        ({"value": None}, "changes[1].value"),
        ({}, "changes[1]"),
    ],
)
def test_each_refusal_names_its_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSnapshot) as refused:
        read_values(values(VALUE, VALUE | wrong), FACTS)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_every_problem_is_told() -> None:
    with pytest.raises(InvalidSnapshot) as refused:
        read_values(values(VALUE | {"value": -1}, VALUE | {"parameter": "x"}), FACTS)
    fields = [problem.field for problem in refused.value.problems]
    assert fields == ["changes[0].value", "changes[1].parameter"]


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b"\xff"])
def test_what_is_not_json(body: bytes) -> None:
    for parse in (parse_candidate, parse_announcement):
        with pytest.raises(NotJSON):
            parse(body)


def test_what_is_given_twice_is_refused_with_its_place() -> None:
    text = json.dumps({"changes": [VALUE]})
    repeated = text.replace('"value": 80', '"value": 80, "value": 90').encode()
    with pytest.raises(InvalidSnapshot, match=r"changes\[0\].value: is given twice"):
        parse_candidate(repeated)
    with pytest.raises(InvalidSnapshot, match=r"changes\[0\].value: is given twice"):
        parse_announcement(repeated)
    candidate = json.dumps({"candidate": small("net"), "ticket": "T"}).replace(
        '"local_pref": 200', '"local_pref": 200, "local_pref": 60', 1
    )
    with pytest.raises(InvalidSnapshot, match=r"candidate.facts\[\d+\].params.local_pref: "):
        parse_announcement(candidate.encode())


def test_not_without_end() -> None:
    with pytest.raises(InvalidSnapshot, match="changes"):
        values(*[VALUE] * (VALUES_AT_MOST + 1))
