"""From the answer of a check to what people and CI systems read: tables, SARIF 2.1.0, JUnit."""

from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from gsid_service.terminal import named

SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VALUE, INTENT, REACH = "gsid/value", "gsid/intent", "gsid/reach"
RULES = {
    VALUE: "A value is probably wrong, although it is inside its valid range",
    INTENT: "An intent would no longer hold",
    REACH: "Traffic would have no way any more",
}
NAMED = 3  # routers, before the others are counted
LEVELS = {"critical": "error", "major": "warning", "minor": "note"}
Answer = dict[str, Any]
Rows = list[dict[str, Any]]


def headline(answer: Answer) -> str:
    moving = len(answer["moved"])
    counts = [
        f"{_count(len(answer['new']), 'new finding')}, {len(answer['existing'])} there already",
        f"{_count(len(answer['would_break']), 'intent')} would break",
        f"{len(answer['would_repair'])} would be repaired",
        f"{_count(moving, 'next hop')} {'moves' if moving == 1 else 'move'}",
    ]
    if answer["undetermined"]:
        counts.append(f"no one outcome for {', '.join(answer['undetermined'])}")
    return f"{answer['network']}: {'; '.join([*counts, *_cut_off(answer).values()])}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def tables(answer: Answer) -> dict[str, Rows]:
    """What would be wrong, what would break and what would move, each as rows."""
    findings = [
        {"finding": when, "severity": found["severity"], "score": found["score"]}
        | {"summary": found["summary"]}
        for when in ("new", "existing")
        for found in answer[when]
    ]
    intents = [
        {"intent": intent_name(intent), "source": intent["source"], "becomes": becomes}
        | {"wanted": _path(intent["wanted"]), "actual": _path(intent["actual"])}
        for becomes, key in (("broken", "would_break"), ("repaired", "would_repair"))
        for intent in answer[key]
    ]
    return {"findings": findings, "intents": intents, "next hops": answer["moved"]}


def intent_name(intent: Answer) -> str:
    return ("" if intent["holds"] else "not ") + named(intent)


def _path(hops: list[str]) -> str:
    return " → ".join(hops)


def _broken(intent: Answer) -> str:
    source, paths = intent["source"], (_path(intent["wanted"]), _path(intent["actual"]))
    return f"{intent_name(intent)} ({source}) would break: {paths[0]} becomes {paths[1]}"


def _cut_off(answer: Answer) -> dict[str, str]:
    """Of each network who would no longer have a way to it."""
    routers = defaultdict(list)
    for move in answer["moved"]:
        if move["after"] is None:
            routers[move["network"]].append(move["router"])
    return {
        network: f"{_some(of)} would have no way to {network}" for network, of in routers.items()
    }


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def sarif(answer: Answer, file: Path, version: str) -> dict[str, Any]:
    """Of what is there already, nothing: it is not of this change."""
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    network, where = answer["network"], _uri(file)
    results = [
        _result(VALUE, LEVELS[f["severity"]], f["summary"], where, network, _slot(f))
        for f in answer["new"]
    ]
    results += [
        _result(INTENT, level, _broken(intent), where, network, intent_name(intent))
        for intent in answer["would_break"]
        for level in ["error" if intent["source"] == "stated" else "note"]
    ]
    results += [
        _result(REACH, "error", text, where, network, f"ways to {to}")
        for to, text in _cut_off(answer).items()
    ]
    driver = {"name": "gsid", "version": version, "rules": rules}
    return {"$schema": SARIF, "version": "2.1.0", "runs": [_run(driver, results)]}


def _run(driver: dict[str, Any], results: list[Any]) -> dict[str, Any]:
    return {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}


def _result(rule: str, level: str, text: str, uri: str, network: str, about: str) -> dict[str, Any]:
    digest = sha256(f"{rule}\n{network}\n{about}".encode()).hexdigest()
    return {
        "ruleId": rule,
        "ruleIndex": list(RULES).index(rule),
        "level": level,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": f"{network}: {about}"}],
            }
        ],
        "fingerprints": {"gsid/v1": digest},
        # The one that GitHub tells results of the same line apart by.
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:1"},
    }


def _slot(found: Answer) -> str:
    return f"{found['parameter']} of {named(found['fact'])}"


def _uri(file: Path) -> str:
    if str(file) == "-":
        return "stdin"
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())


def junit(answer: Answer, file: Path) -> str:
    """A failed case for each new finding, stated intent and network out of reach, a skipped one
    for what is there."""
    suite = ElementTree.Element("testsuite", name=f"gsid check {answer['network']}")

    def case(name: str, what: str | None = None, text: str = "", kind: str = "") -> None:
        shown = {"classname": answer["network"], "name": name, "file": str(file), "time": "0"}
        element = ElementTree.SubElement(suite, "testcase", shown)
        if what is not None:
            about = {"message": text} | ({"type": kind} if kind else {})
            ElementTree.SubElement(element, what, about).text = text

    for found in answer["new"]:
        case(_slot(found), "failure", found["summary"], found["severity"])
    for intent in answer["would_break"]:
        if intent["source"] == "stated":
            case(intent_name(intent), "failure", _broken(intent), "intent")
    for to, text in _cut_off(answer).items():
        case(f"ways to {to}", "failure", text, "reach")
    for found in answer["existing"]:
        case(_slot(found), "skipped", f"there already: {found['summary']}")
    if answer["verdict"] == "clean":
        case("nothing new is wrong, no stated intent would break, and all traffic has a way")
    counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
    for name, path in counts.items():
        suite.set(name, str(len(suite.findall(path))))
    suite.set("errors", "0")
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites, " ")
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
