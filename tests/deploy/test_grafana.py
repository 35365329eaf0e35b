"""The dashboards: current, understood by Grafana's own SDK, and every panel has data to show."""

import json
import math
import time
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.write import DASHBOARDS, FOLDER, as_json
from tests.deploy.prometheus import SHIPPED
from tests.deploy.stack import NAME, RIGHT, WRONG, Stack, until
from tests.flow.server import ROOT

QUIET = {"Service alerts", "Drift"}  # annotations that nothing gives a reason for here
VARIABLES = {"$network": ".*", "$parameter": ".*", "$__rate_interval": "1m"}


def shown(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in shown(name)["panels"] if panel["type"] != "row"]


def expressions(name: str) -> Iterator[tuple[str, str]]:
    """Each panel's title, or the annotation's name, and an expression with its variables filled."""
    asked = [(a["name"], a["expr"]) for a in shown(name)["annotations"]["list"]]
    asked += [(p["title"], target["expr"]) for p in panels(name) for target in p["targets"]]
    for title, expression in asked:
        for variable, value in VARIABLES.items():
            expression = expression.replace(variable, value)
        yield title, expression


ASKED = [(name, *asked) for name in DASHBOARDS for asked in expressions(name)]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_written_dashboard_is_current(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == as_json(DASHBOARDS[name]()), "run make docs"


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_sdk_reads_and_writes_it_without_loss(name: str) -> None:
    """What Grafana's schema does not know is dropped silently, and would differ."""
    register_default_plugins()
    again = json.dumps(Dashboard.from_json(shown(name)), cls=JSONEncoder)
    assert json.loads(again) == shown(name)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_say_what_they_show_and_do_not_overlap(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels(name):
        assert panel["title"]
        assert panel["description"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    ids = [panel["id"] for panel in shown(name)["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_links_lead_to_pages_of_the_console(name: str) -> None:
    text = json.dumps(panels(name))
    assert "${console}/networks/${__field.labels.network}" in text
    assert ("${console}/alerts/" in text) == (name == "anomalies")
    assert text.count("${console}") == text.count("${console}/networks/") + text.count(
        "${console}/alerts/"
    )


@pytest.mark.parametrize(("name", "title", "expression"), ASKED)
def test_expressions_are_promql(name: str, title: str, expression: str) -> None:
    assert promql_parser.parse(expression), (name, title)


def test_grafana_finds_what_is_provisioned() -> None:
    """The names that the compose file mounts, and the data source that Prometheus scrapes for."""
    folder = ROOT / "deploy" / "grafana" / "provisioning"
    sources = yaml.safe_load((folder / "datasources" / "gsid.yml").read_text())["datasources"]
    prometheus = next(source for source in sources if source["type"] == "prometheus")
    scraped = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert prometheus["jsonData"]["timeInterval"] == scraped
    providers = yaml.safe_load((folder / "dashboards" / "gsid.yml").read_text())["providers"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
    assert providers[0]["options"]["path"] in mounted


@pytest.fixture(scope="module")
def watched(station: Stack) -> Stack:
    """Something is wrong, somebody judged it, and two scrapes have seen it."""
    station.see(RIGHT)
    station.see(WRONG)
    alerts = station.server.client.get("/api/v1/alerts", params={"status": "firing"}).json()
    (alert,) = alerts["items"]
    path = f"/api/v1/alerts/{alert['id']}/verdict"
    station.server.client.post(path, json={"alarm": "true"}).raise_for_status()
    until(lambda: station.prometheus.query("gsid_alert_precision_ratio"))
    station.see(WRONG)
    time.sleep(2.5)  # two scrapes, and an evaluation of the rules
    return station


def numbers(watched: Stack, expression: str) -> list[float]:
    """What an expression is worth now, where it is a number."""
    found = [float(sample["value"][1]) for sample in watched.prometheus.query(expression)]
    return [value for value in found if math.isfinite(value)]


def test_every_panel_has_data(watched: Stack) -> None:
    empty = [
        (name, title, expression)
        for name, title, expression in ASKED
        if not numbers(watched, expression) and title not in QUIET
    ]
    assert empty == []


def test_the_variables_find_their_values(watched: Stack) -> None:
    asked = {v["name"]: v.get("query") for v in shown("anomalies")["templating"]["list"]}
    assert asked["network"] == "label_values(gsid_parameters, network)"
    found = watched.prometheus.query("gsid_parameters")
    assert {sample["metric"]["network"] for sample in found} == {NAME}
    assert "local_pref" in {sample["metric"]["parameter"] for sample in found}


def test_scores_are_found_by_entity(watched: Stack) -> None:
    (expression,) = [e for name, title, e in ASKED if title == "By entity"]
    found = watched.prometheus.query(expression)
    assert {"R1", "AS65101@R3", "203.0.113.0/24"} <= {s["metric"]["entity"] for s in found}
