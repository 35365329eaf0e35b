"""Network anomalies: which values look wrong, what they break, which alerts are open."""

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard, prometheus, statetimeline, table, timeseries
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from deploy.grafana.panels import (
    CHOSEN,
    NETWORK,
    NETWORK_PAGE,
    NONE_WANTED,
    ORANGE,
    RED,
    SCORE_STEPS,
    YELLOW,
    AnyPanel,
    annotation,
    board,
    graph,
    lined,
    link_column,
    linked,
    number,
    query,
    rows,
    timeline,
)

SEVERITIES = {"critical": (3, RED), "major": (2, ORANGE), "minor": (1, YELLOW)}
# As in `connected(R1, R2)`: the first and the second entity of a fact.
ENTITIES = (r"[^(]+\\(([^,)]+).*", r"[^(]+\\([^,)]+, ([^,)]+).*")


def anomalies() -> dashboard.Dashboard:
    made = board(
        "GSID: network anomalies",
        "gsid-anomalies",
        "Which values look wrong, what they break, and which alerts are open.",
        {"Now": _now(), "Scores": _scores(), "What is broken, and since when": _broken()},
    )
    firing = 'ALERTS{alertname="GsidAnomaly", alertstate="firing"}'
    return made.annotation(annotation("Anomalies", firing))


def _now() -> Iterator[AnyPanel]:
    for severity, (_, colour) in SEVERITIES.items():
        found = f'sum(gsid:alerts_open:max{{{NETWORK}, severity="{severity}"}})'
        about = "Firing, acknowledged or silenced."
        yield number(f"Open {severity} alerts", about, found, [(1, colour)])
    yield number(
        "Broken intents",
        "Under the values that collectors report.",
        f"sum(max by (network, kind) (gsid_broken_intents{{{NETWORK}}}))",
        NONE_WANTED,
    )
    yield number(
        "Highest score",
        "The probability that the worst value is wrong.",
        f"max(gsid_anomaly_score_max{{{CHOSEN}}})",
        SCORE_STEPS,
    ).decimals(2)
    yield number(
        "Stale facts",
        "Facts that only silent collectors state; the service abstains on them.",
        f"sum(max by (network) (gsid_stale_facts{{{NETWORK}}}))",
        [(1, YELLOW)],
    )


def _scores() -> Iterator[AnyPanel]:
    highest = f"(gsid_anomaly_score_max{{{CHOSEN}}})"
    yield _score("By network", query(f"max by (network) {highest}", "{{network}}"))
    both = "{{network}} {{parameter}}"
    yield _score("By parameter", query(f"max by (network, parameter) {highest}", both))
    by_entity = " or ".join(map(_by_entity, ENTITIES))
    yield _score("By entity", query(f"topk(20, {by_entity})", "{{network}} {{entity}}"))
    top = rows(
        "Top facts",
        "The values that are most likely wrong, at most metrics.highest_scores of each network.",
        f"topk(20, max by (network, parameter, fact) (gsid_anomaly_score{{{CHOSEN}}}))",
        {"Value": "Score", "parameter": "Parameter", "fact": "Fact", "network": "Network"},
    )
    yield link_column(top, "Network", "Open the network", "/networks/${__value.text}").decimals(3)


def _score(title: str, asked: prometheus.Dataquery) -> timeseries.Panel:
    panel = graph(title, "The highest score.", asked).max(1)
    return linked(lined(panel, SCORE_STEPS), *NETWORK_PAGE)


def _by_entity(pattern: str) -> str:
    scores = f'label_replace(gsid_anomaly_score{{{CHOSEN}}}, "entity", "$1", "fact", "{pattern}")'
    return f"max by (network, entity) ({scores})"


def _broken() -> Iterator[AnyPanel]:
    intents = graph(
        "Broken intents",
        "By kind: reachable and traffic_isolation are what customers notice.",
        query(f"max by (network, kind) (gsid_broken_intents{{{NETWORK}}})", "{{network}} {{kind}}"),
    )
    yield linked(intents, *NETWORK_PAGE)
    yield _open_alerts()
    yield _timeline()


def _open_alerts() -> table.Panel:
    labels = ("alert", "severity", "status", "parameter", "fact", "network")
    opened = rows(
        "Open alerts",
        "The gravest of each network. Click one for its proof.",
        f"1000 * max by ({', '.join(labels)}) ({_opened()})",
        {label: label.capitalize() for label in labels} | {"Value": "Since"},
    )
    opened.override_by_name("Since", [DynamicConfigValue("unit", "dateTimeFromNow")])
    return link_column(opened, "Alert", "Open the alert", "/alerts/${__value.text}")


def _timeline() -> statetimeline.Panel:
    by = "network, alert, parameter, fact"
    standing = " or ".join(
        f"{value} * (max by ({by}) ({_opened(severity)}) > bool 0)"
        for severity, (value, _) in SEVERITIES.items()
    )
    alerts = timeline(
        "Alert timeline",
        "When each alert was open, coloured by its severity.",
        query(standing, "{{network}} {{parameter}} {{fact}}"),
        {str(value): (severity, colour) for severity, (value, colour) in SEVERITIES.items()},
    )
    return linked(alerts, "Open the alert", "/alerts/${__field.labels.alert}")


def _opened(severity: str = ".*") -> str:
    return f'gsid_alert_opened_timestamp_seconds{{{CHOSEN}, severity=~"{severity}"}}'
