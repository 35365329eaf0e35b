"""Model in service: whether it still suits these networks, and how often it is right."""

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import (
    CHOSEN,
    NETWORK,
    NETWORK_PAGE,
    RED,
    YELLOW,
    AnyPanel,
    annotation,
    bars,
    board,
    graph,
    lined,
    linked,
    name,
    number,
    query,
)

VERDICTS = f"max by (network, verdict) (gsid_alert_verdicts{{{NETWORK}}})"
RIGHT = f'max by (network, verdict) (gsid_alert_verdicts{{{NETWORK}, verdict="true"}})'


def model() -> dashboard.Dashboard:
    made = board(
        "GSID: model in service",
        "gsid-model",
        "Whether the model still suits these networks, and how often it is right.",
        {"Now": _now(), "Spread of scores": _spread(), "As operators see it": _operators()},
    )
    firing = 'ALERTS{alertname="GsidScoresDrift", alertstate="firing"}'
    return made.annotation(annotation("Drift", firing))


def _now() -> Iterator[AnyPanel]:
    yield name("Model", "That scores.", "gsid_model_info", "{{name}}")
    values = f"sum(max by (network, parameter) (gsid_parameters{{{CHOSEN}}}))"
    yield number("Values scored", "In all networks.", values, [])
    precision = f"sum({RIGHT}) / sum({VERDICTS})"
    judged = "True alarms among all that operators judged."
    yield number("Precision", judged, precision, []).unit("percentunit")
    rests_on = "How many verdicts the precision rests on."
    yield number("Judged alerts", rests_on, f"sum({VERDICTS})", [])
    yield number(
        "Greatest drift",
        "Of the spread of scores against training; 0 is alike, 1 as unlike as can be.",
        f"max(gsid:score_drift:max{{{CHOSEN}}})",
        [(0.3, YELLOW), (0.4, RED)],
    ).decimals(2)
    yield number("Alerts open from", "As it is set.", "max(gsid_alert_open_score)", []).decimals(2)


def _spread() -> Iterator[AnyPanel]:
    service = f"avg by (at_most) (gsid_score_share{{{CHOSEN}}})"
    training = 'avg by (at_most) (gsid_training_score_share{parameter=~"$parameter"})'
    yield bars(
        "In service",
        "The share of values that score at most so much.",
        query(service, "at most {{at_most}}", instant=True),
    ).unit("percentunit")
    yield bars(
        "At training",
        "The same of the simulated networks in operation that the model was made with.",
        query(training, "at most {{at_most}}", instant=True),
    ).unit("percentunit")
    share = f'gsid_score_share{{{CHOSEN}, at_most=~"0.1|0.35|0.7"}}'
    above = graph(
        "Share of values above a score",
        "A rise at high scores is trouble in the network; at all scores, one unlike training.",
        query(f"1 - avg by (network, at_most) ({share})", "{{network}} above {{at_most}}"),
    ).unit("percentunit")
    yield linked(above, *NETWORK_PAGE)
    drift = graph(
        "Drift against training",
        "The greatest difference between the two spreads, for each parameter.",
        query(f"gsid:score_drift:max{{{CHOSEN}}}", "{{network}} {{parameter}}"),
    ).max(1)
    yield linked(lined(drift, [(0.4, RED)]), *NETWORK_PAGE)


def _operators() -> Iterator[AnyPanel]:
    ratio = f"max by (network) (gsid_alert_precision_ratio{{{NETWORK}}})"
    precision = graph(
        "Precision", "True alarms among all that were judged.", query(ratio, "{{network}}")
    )
    yield linked(precision.unit("percentunit").max(1), *NETWORK_PAGE)
    yield graph(
        "Verdicts",
        "True and false alarms, of all that is kept.",
        query(f"sum by (verdict) ({VERDICTS})", "{{verdict}} alarms"),
    )
