"""Service health: whether snapshots are taken, scored in time and told of."""

from collections.abc import Iterator

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.panels import (
    NETWORK,
    NETWORK_PAGE,
    NONE_WANTED,
    RED,
    YELLOW,
    AnyPanel,
    annotation,
    board,
    graph,
    lined,
    linked,
    number,
    query,
)

OURS = 'job="gsid"'


def health() -> dashboard.Dashboard:
    made = board(
        "GSID: service health",
        "gsid-health",
        "Whether snapshots are taken, scored in time and told of.",
        {
            "Now": _now(),
            "Ingest": _ingest(),
            "Cycle": _cycle(),
            "Messages and errors": _messages(),
            "Processes": _processes(),
        },
    )
    firing = 'ALERTS{alertname=~"Gsid.+", alertname!="GsidAnomaly", alertstate="firing"}'
    return made.annotation(annotation("Service alerts", firing))


def _now() -> Iterator[AnyPanel]:
    yield number("Up", "Instances that answer.", f"sum(up{{{OURS}}})", [])
    watched = "count(count by (network) (gsid_parameters))"
    yield number("Networks", "That are being watched.", watched, [])
    steps = [(50.0, YELLOW), (200.0, RED)]
    yield number("Snapshots waiting", "To be stored.", "sum(gsid_ingest_queue)", steps)
    yield number("Messages waiting", "To be delivered.", "max(gsid_outbox_pending)", steps)
    dead = "sum(max by (receiver) (gsid_outbox_dead))"
    yield number("Dead letters", "Messages that were given up.", dead, NONE_WANTED)
    failed = "ceil(sum(increase(gsid_cycle_failures_total[15m])))"
    yield number("Failed cycles", "In the last 15 minutes.", failed, NONE_WANTED)


def _ingest() -> Iterator[AnyPanel]:
    yield graph(
        "Snapshots",
        "A second, by what became of them; refused ones got 429.",
        query(f"sum by (outcome) (gsid:snapshots:rate5m{{{NETWORK}}})", "{{outcome}}"),
    ).unit("reqps")
    yield graph(
        "Requests, 99th percentile",
        "How long the slowest in a hundred takes.",
        query("gsid:request_seconds:p99_5m", "{{area}}"),
    ).unit("s")
    silence = graph(
        "Silence of collectors",
        "Since the newest snapshot of each was observed.",
        query(f"gsid:collector_silence_seconds:min{{{NETWORK}}}", "{{network}} {{collector}}"),
    ).unit("s")
    yield linked(silence, *NETWORK_PAGE)
    waiting = query("gsid_ingest_queue", "{{instance}}")
    yield graph("Queue", "Snapshots that wait to be stored.", waiting)


def _cycle() -> Iterator[AnyPanel]:
    stages = graph(
        "Stages, 95th percentile",
        "diagnose is simulate, assemble, score and verify together.",
        query("gsid:cycle_seconds:p95_5m", "{{stage}}"),
    )
    yield lined(stages, [(10, RED)]).unit("s")
    yield graph(
        "Cycles",
        "A second; a burst of one network costs one.",
        query('sum(rate(gsid_cycle_seconds_count{stage="save"}[$__rate_interval]))', "done"),
        query("sum(rate(gsid_cycle_failures_total[$__rate_interval]))", "failed"),
    ).unit("ops")


def _messages() -> Iterator[AnyPanel]:
    tries = "sum by (receiver, outcome) (rate(gsid_notifications_total[$__rate_interval]))"
    yield graph(
        "Deliveries",
        "Tries a second, by receiver and what became of them.",
        query(tries, "{{receiver}} {{outcome}}"),
    ).unit("ops")
    yield graph(
        "Outbox",
        "Messages that wait, and those that were given up.",
        query("max(gsid_outbox_pending)", "waiting"),
        query("max by (receiver) (gsid_outbox_dead)", "{{receiver}} dead"),
    )
    answers = "sum by (status) (rate(gsid_request_seconds_count[$__rate_interval]))"
    yield graph(
        "Answers by status",
        "A second; 5xx is an error of the service.",
        query(answers, "{{status}}"),
    ).unit("reqps")
    bad = f'gsid:snapshots:rate5m{{{NETWORK}, outcome=~"conflict|invalid|refused"}}'
    yield graph(
        "Snapshots that were not taken",
        "A second, by network and why.",
        query(bad, "{{network}} {{outcome}}"),
    ).unit("reqps")


def _processes() -> Iterator[AnyPanel]:
    yield graph(
        "Memory",
        "Resident, of the service and of the process that scores.",
        query(f"process_resident_memory_bytes{{{OURS}}}", "service"),
        query("gsid_scorer_process_resident_memory_bytes", "scoring"),
    ).unit("bytes")
    used = "process_cpu_seconds_total{%s}[$__rate_interval]" % OURS  # noqa: UP031
    yield graph(
        "Processor",
        "Cores in use.",
        query(f"rate({used})", "service"),
        query(f"rate(gsid_scorer_{used})", "scoring"),
    )
