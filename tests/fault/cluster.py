"""1 API, 3 scorers, 2 notifiers and a real PostgreSQL, killed again and again under load.

    python -m tests.fault.cluster --minutes 10 --networks 1000

A steady stream of snapshots and bursts; every few seconds kill -9 of one of the processes, which is
then started again as a supervisor would; PostgreSQL stopped twice and started again, once as by an
operator and once as in a crash. Afterwards every acknowledged snapshot must be scored in its newest
state, every alert must have been told, in order and under one id, and latency must be what it was.
"""

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gsid_service.store.database import connect
from gsid_service.terminal import print_rows, say
from tests import postgres
from tests.fault import findings
from tests.fault.fleet import Fleet
from tests.fault.traffic import Net, Traffic
from tests.notify.listener import SECRET, Listener, listening

SETTINGS = """
[notify]
group_wait_seconds = 0
group_interval_seconds = 0
retry_seconds = 0.1
retry_at_most_seconds = 1
[log]
level = "warning"
[[receivers]]
name = "noc"
type = "webhook"
url = "{url}"
secret_env = "NOC_SECRET"
"""
AWAY_SECONDS = 3.0  # that PostgreSQL is stopped
PROBES = 5
SENDERS = 4


@dataclass(frozen=True)
class Plan:
    networks: int = 1000
    seconds: float = 600.0
    kill_every: float = 5.0  # seconds
    rate: float = 5.0  # snapshots a second
    burst: int = 50
    burst_every: float = 30.0
    restarts: int = 2  # of PostgreSQL
    settle: float = 600.0  # seconds at most


@dataclass
class Report:
    """What was seen; the checks must all be nothing."""

    rows: list[dict[str, Any]]
    failures: list[str]


def run(plan: Plan, folder: Path, seed: str = "cluster") -> Report:
    rng = random.Random(seed)
    with postgres.cluster() as server, listening(folder) as listener:
        url = postgres.new_database(server.url)
        config = folder / "gsid.toml"
        config.write_text(SETTINGS.format(url=listener.url("/ok")))
        fleet = Fleet(url, folder, ("--config", str(config)), {"NOC_SECRET": SECRET})
        traffic = None
        try:
            fleet.start()
            traffic = Traffic(fleet.api.url, plan.networks + 1)
            probe, nets = traffic.nets[-1], traffic.nets[:-1]
            _begin(traffic, nets, plan)
            before = [traffic.latency(probe) for _ in range(PROBES)]
            with _supervised(fleet):
                during = _under_fire(plan, server, fleet, traffic, nets, probe, rng)
                settled = _settle(plan, url)
                after = [traffic.latency(probe) for _ in range(PROBES)]
            latencies = before, during, after
            return _report(url, fleet, traffic, listener, nets, latencies, settled)
        finally:
            if traffic is not None:
                traffic.close()
            fleet.close()


def _begin(traffic: Traffic, nets: list[Net], plan: Plan) -> None:
    """The first view of every network is what is approved of it."""
    say(f"{len(nets)} networks begin")
    with ThreadPoolExecutor(SENDERS) as threads:
        list(threads.map(lambda net: traffic.send(net, wrong=False), nets))
    for net in nets:
        traffic.until_scored(net, net.newest, plan.settle)


def _under_fire(
    plan: Plan,
    server: postgres.Cluster,
    fleet: Fleet,
    traffic: Traffic,
    nets: list[Net],
    probe: Net,
    rng: random.Random,
) -> list[float]:
    """All at once until the time is over; the latencies that a probe saw meanwhile."""
    ending, during = threading.Event(), list[float]()
    chances = [random.Random(rng.random()) for _ in range(SENDERS + 2)]

    def probing() -> None:
        while not ending.wait(1.0):
            during.append(traffic.latency(probe))

    with ThreadPoolExecutor(SENDERS + 4) as threads:
        rate = plan.rate / SENDERS
        work = [threads.submit(traffic.stream, nets, rate, ending, c) for c in chances[2:]]
        bursts = plan.burst, plan.burst_every
        work.append(threads.submit(traffic.burst, nets, *bursts, ending, chances[1]))
        work.append(threads.submit(fleet.kill_at_random, ending, plan.kill_every, chances[0]))
        work.append(threads.submit(probing))
        with _ending(ending):
            for number in range(plan.restarts + 1):
                time.sleep(plan.seconds / (plan.restarts + 1))
                for each in work:
                    if each.done():
                        each.result()  # what failed says so early
                if number < plan.restarts:
                    _restart(server, mode="immediate" if number % 2 else "fast")
        for each in work:
            each.result()
    return during


@contextmanager
def _supervised(fleet: Fleet) -> Iterator[None]:
    ending = threading.Event()
    thread = threading.Thread(target=fleet.supervise, args=(ending,))
    thread.start()
    with _ending(ending):
        yield
    thread.join()


@contextmanager
def _ending(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()


def _restart(server: postgres.Cluster, mode: str) -> None:
    say(f"PostgreSQL is stopped ({mode})")
    server.stop(mode)
    time.sleep(AWAY_SECONDS)
    server.start()


def _settle(plan: Plan, url: str) -> float:
    """Seconds until nothing waits any more."""
    say("the faults are over")
    begun = time.monotonic()
    database = connect(url, migrate=False)
    try:
        while findings.unsettled(database) and time.monotonic() - begun < plan.settle:
            time.sleep(0.2)
    finally:
        database.close()
    return time.monotonic() - begun


def _report(
    url: str,
    fleet: Fleet,
    traffic: Traffic,
    listener: Listener,
    nets: list[Net],
    latencies: tuple[list[float], list[float], list[float]],
    settled: float,
) -> Report:
    database = connect(url, migrate=False)
    before, during, after = latencies
    try:
        failures = {
            "acknowledged, and lost": findings.lost(database, nets),
            "not scored in the newest state": findings.not_newest(database, nets),
            "alert missing, or too many": findings.misjudged(database, nets),
            "not told, or not in order": findings.untold(database, listener),
            "told twice under another id": findings.told_twice(listener),
            "still waiting": findings.unsettled(database),
            "rounds that failed": fleet.logged("cycle failed"),
        }
    finally:
        database.close()
    usual, at_last = statistics.median(before), statistics.median(after)
    if at_last > 2 * usual + 1:
        failures["latency"] = [f"{at_last:.2f} s after, {usual:.2f} s before"]
    told = listener.taken("/ok")
    shown: dict[str, Any] = {
        "networks": len(nets),
        "snapshots acknowledged": sum(len(net.acknowledged) for net in nets),
        "answers": ", ".join(f"{n} {what}" for what, n in sorted(traffic.answers.items())),
        "killed": ", ".join(f"{n} {role}" for role, n in sorted(fleet.kills.items())),
        "jobs taken up again": len(fleet.logged("taken up again")),
        "messages": len({line["id"] for line in told}),
        "repeated under their id": findings.repeated(listener),
        "POST to scored before, median": f"{usual:.2f} s",
        "meanwhile, median and longest": _spread(during),
        "after, median": f"{at_last:.2f} s",
        "until all was settled": f"{settled:.1f} s",
        **{what: len(f) if isinstance(f, list) else f for what, f in failures.items()},
    }
    rows = [{"what": what, "seen": seen} for what, seen in shown.items()]
    return Report(rows, [f"{what}: {found}" for what, found in failures.items() if found])


def _spread(found: list[float]) -> str:
    if not found:
        return "none"
    return f"{statistics.median(found):.2f} s, {max(found):.2f} s of {len(found)}"


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__)
    reading.add_argument("--minutes", type=float, default=10.0)
    reading.add_argument("--networks", type=int, default=1000)
    reading.add_argument("--rate", type=float, default=Plan.rate, help="snapshots a second")
    reading.add_argument("--kill-every", type=float, default=Plan.kill_every, help="seconds")
    reading.add_argument("--seed", default="cluster")
    given = reading.parse_args()
    plan = Plan(
        networks=given.networks,
        seconds=60 * given.minutes,
        kill_every=given.kill_every,
        rate=given.rate,
    )
    with tempfile.TemporaryDirectory(prefix="gsid-fault-") as folder:
        report = run(plan, Path(folder), given.seed)
    print_rows(report.rows, as_json=False)
    for failure in report.failures:
        say(failure)
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
