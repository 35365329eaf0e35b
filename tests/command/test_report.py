"""What CI systems read of a check: the fields that their formats ask for."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from gsid_service.command import report

FACT = {"predicate": "bgp_route", "args": ["AS65101@R3", "203.0.113.0/24"]}
BROKEN = {
    "predicate": "reachable",
    "args": ["R1", "203.0.113.0/24", "R3"],
    "holds": True,
    "wanted": ["R1", "R3"],
    "actual": ["R1", "R2"],
}
CLEAN: dict[str, Any] = {
    "network": "as65000",
    "verdict": "clean",
    **{name: [] for name in ("new", "existing", "would_break", "would_repair", "moved")},
    "undetermined": [],
}


def test_the_headline_counts_one_as_one() -> None:
    move = {"router": "R1", "network": "N1", "before": "R2", "after": "R3"}
    one = CLEAN | {"new": [{}], "would_break": [{}], "moved": [move]}
    told = "1 new finding, 0 there already; 1 intent would break; 0 would be repaired"
    assert report.headline(one) == f"as65000: {told}; 1 next hop moves"


# Of the schema of SARIF 2.1.0, what is said of the properties in use; names as they stand there.
TEXT: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string"}},
}
LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation", "region"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[^\s\\]+$"}},
                },
                "region": {
                    "type": "object",
                    "properties": {"startLine": {"type": "integer", "minimum": 1}},
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "properties": {"fullyQualifiedName": {"type": "string"}},
            },
        },
    },
}
STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
RESULT = {
    "type": "object",
    "required": ["message", "ruleId"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {"type": "array", "items": LOCATION},
        "fingerprints": STRINGS,
        "partialFingerprints": STRINGS,
    },
}
DRIVER = {
    "type": "object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "version": {"type": "string"},
        "rules": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {"id": {"type": "string"}, "shortDescription": TEXT},
            },
        },
    },
}
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {"driver": DRIVER},
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {"type": "array", "items": RESULT},
                },
            },
        },
    },
}


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode())  # noqa: S314, it is our own


def finding(parameter: str = "local_pref", severity: str = "critical") -> dict[str, Any]:
    summary = f'{parameter} is 50 & "expected" <200>'
    return {"fact": FACT, "parameter": parameter, "severity": severity} | {
        "score": 0.97,
        "summary": summary,
    }


FOUND = CLEAN | {
    "verdict": "findings",
    "new": [finding(), finding("med", "major"), finding("as_path_length", "minor")],
    "existing": [finding("origin", "minor")],
    "would_break": [BROKEN | {"source": "stated"}, BROKEN | {"source": "derived", "holds": False}],
}


@pytest.mark.parametrize("answer", [CLEAN, FOUND])
def test_sarif_has_the_form_of_its_schema(answer: dict[str, Any]) -> None:
    document = report.sarif(answer, Path("plans/a b.json"), "1.0")
    jsonschema.validate(document, SARIF)
    results = document["runs"][0]["results"]
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in results)
    assert all(_uri(r) == "plans/a%20b.json" for r in results)
    prints = [r["fingerprints"]["gsid/v1"] for r in results]
    assert len(set(prints)) == len(prints)


def _uri(result: dict[str, Any]) -> str:
    uri: str = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    return uri


def test_levels_follow_the_severity_and_the_source_of_an_intent() -> None:
    results = report.sarif(FOUND, Path("x.json"), "1.0")["runs"][0]["results"]
    assert [r["level"] for r in results] == ["error", "warning", "note", "error", "note"]
    assert "not reachable(R1, 203.0.113.0/24, R3)" in results[-1]["message"]["text"]


def test_a_fingerprint_stays_while_the_score_changes() -> None:
    again = FOUND | {"new": [finding() | {"score": 0.8, "summary": "in other words"}]}
    first, second = (
        report.sarif(a, Path("x.json"), v)["runs"][0]["results"][0]["fingerprints"]
        for a, v in ((FOUND, "1.0"), (again, "1.1"))
    )
    assert first == second


def test_uris_of_what_is_no_relative_path() -> None:
    for file, uri in (("-", "stdin"), ("/etc/a b.json", "file:///etc/a%20b.json")):
        assert _uri(report.sarif(FOUND, Path(file), "1")["runs"][0]["results"][0]) == uri


def test_junit_counts_what_it_holds() -> None:
    suites = parsed(report.junit(FOUND, Path("x.json")))
    (suite,) = suites.findall("testsuite")
    assert (suites.tag, suite.get("name")) == ("testsuites", "gsid check as65000")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "4", "errors": "0", "skipped": "1"}
    failures = [case.find("failure") for case in suite.findall("testcase")][:4]
    assert all(failure is not None and failure.get("message") for failure in failures)
    assert suite[0][0].text == 'local_pref is 50 & "expected" <200>'
    assert all(case.get("classname") == "as65000" and case.get("file") for case in suite)


def test_junit_of_a_clean_check_is_a_case_that_passes() -> None:
    suite = parsed(report.junit(CLEAN, Path("x.json")))[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert list(suite[0]) == []


def test_traffic_without_a_way_is_an_error_for_each_network() -> None:
    lost = [{"router": f"R{i}", "network": "N1", "before": "R9", "after": None} for i in range(5)]
    lost.append({"router": "R7", "network": "N2", "before": "R9", "after": None})
    kept = {"router": "R8", "network": "N1", "before": "R9", "after": "R7"}
    answer = CLEAN | {"verdict": "findings", "moved": [*lost, kept]}
    told = ["R0, R1, R2 and 2 more would have no way to N1", "R7 would have no way to N2"]
    results = report.sarif(answer, Path("plan.json"), "1")["runs"][0]["results"]
    assert [(r["level"], r["message"]["text"]) for r in results] == [("error", t) for t in told]
    suite = ElementTree.fromstring(report.junit(answer, Path("plan.json")))  # noqa: S314 (ours)
    assert [f.get("message") for f in suite.iter("failure")] == told
    assert report.headline(answer).endswith("; ".join(["7 next hops move", *told]))
