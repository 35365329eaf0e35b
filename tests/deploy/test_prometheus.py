"""The shipped rules by promtool; and the shipped configuration in the real Prometheus, from the
running service to the NOC's webhook through the real Alertmanager."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.prometheus import SHIPPED, program
from tests.deploy.stack import NAME, RIGHT, Stack, until
from tests.flow.server import ROOT
from tests.notify.alertmanager import active

RULES = sorted(SHIPPED.glob("rules/*.yml"))
TESTS = sorted(SHIPPED.glob("tests/*.yml"))
RUNBOOK = ROOT / "docs" / "runbook.md"


def rules(kind: str) -> list[dict[str, Any]]:
    """The shipped rules that have a name of this kind: alert or record."""
    groups = [group for file in RULES for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


ALERTS = {rule["alert"]: rule for rule in rules("alert")}


def promtool(*arguments: str | Path, stdin: str | None = None) -> str:
    command = [program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_rules_and_configuration_are_valid() -> None:
    promtool("check", "rules", *RULES)
    promtool("check", "config", "--syntax-only", SHIPPED / "prometheus.yml")


def test_alerts_fire_when_they_should() -> None:
    promtool("test", "rules", *TESTS)


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_is_tested_to_fire_and_to_be_quiet(name: str) -> None:
    cases = [case for file in TESTS for case in yaml.safe_load(file.read_text())["tests"]]
    expected = [
        bool(test["exp_alerts"])
        for case in cases
        for test in case.get("alert_rule_test", [])
        if test["alertname"] == name
    ]
    assert set(expected) == {True, False}


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_says_what_it_is_and_has_a_runbook(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in {"critical", "major", "minor"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"]
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", RUNBOOK.read_text(), re.M | re.S)
    assert section, f"docs/runbook.md has no section {name}"
    for part in ("**Means.**", "**Check.**", "**Do.**"):
        assert part in section[1], f"{name}: the runbook does not say {part}"


def test_the_runbook_has_no_section_of_an_alert_that_is_gone() -> None:
    assert set(re.findall(r"^## (Gsid\w+)$", RUNBOOK.read_text(), re.M)) == set(ALERTS)


def test_the_service_s_metrics_are_as_prometheus_wants_them(station: Stack) -> None:
    said = promtool("check", "metrics", stdin=station.server.client.get("/metrics").text)
    assert said == ""


def test_every_rule_evaluates(station: Stack) -> None:
    names = {rule["record"] for rule in rules("record")} | set(ALERTS)
    until(lambda: all(rule["health"] != "unknown" for rule in station.prometheus.rules()))
    found = station.prometheus.rules()
    assert {rule["name"] for rule in found} == names
    assert [(rule["name"], rule["lastError"]) for rule in found if rule["health"] != "ok"] == []
    for rule in rules("record"):
        until(lambda rule=rule: station.prometheus.query(rule["record"]))  # type: ignore[misc]


def is_anomaly(alert: dict[str, Any]) -> bool:
    found: bool = alert["labels"]["alertname"] == "GsidAnomaly"
    return found


def test_an_anomaly_reaches_the_noc_and_is_over_when_the_value_is_right(station: Stack) -> None:
    """Then again, as the service's own alert, with its evidence, and the rule's is held back."""
    until(lambda: station.told("GsidAnomaly"))
    told = station.told("GsidAnomaly")[0]
    assert told["status"] == "firing"
    assert told["labels"]["network"] == NAME
    assert told["labels"]["parameter"] == "local_pref"
    assert told["annotations"]["runbook_url"] == "docs/runbook.md#gsidanomaly"
    assert station.told("GSID") == []

    station.tell_alertmanager()
    until(lambda: station.told("GSID"))
    own = station.told("GSID")[0]
    assert own["labels"]["severity"] == "critical"
    assert own["annotations"]["expected"] == "200"
    until(
        lambda: (
            "GsidAnomaly"
            not in {alert["labels"]["alertname"] for alert in active(station.alertmanager)}
        )
    )

    station.see(RIGHT)
    until(lambda: station.told("GSID")[-1]["status"] == "resolved")
    until(lambda: station.told("GsidAnomaly")[-1]["status"] == "resolved")
    until(lambda: not station.prometheus.query('ALERTS{alertname="GsidAnomaly"}'))
