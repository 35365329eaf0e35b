"""The cycle on a real database and the shipped model, round by round, on a clock of its own."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from structlog.testing import capture_logs

from gsid_service import app
from gsid_service.alert.decide import acknowledged
from gsid_service.app import Service
from gsid_service.assemble.merge import Merged, View, extend, merge
from gsid_service.config import Alerts, Cycle, Settings
from gsid_service.cycle import views
from gsid_service.diagnose.apart import NotStarted
from gsid_service.diagnose.diagnosis import Detector, Diagnosis, Here, Limits
from gsid_service.diagnose.known import Observation
from gsid_service.evaluate.splits import SPLITS
from gsid_service.ingest.wire import parse_snapshot
from gsid_service.jobs import embedded
from gsid_service.metrics import Metrics
from gsid_service.records import (
    Alert,
    Collector,
    Ending,
    Entity,
    Fact,
    FactKey,
    Graph,
    Intents,
    Scores,
    Severity,
    Snapshot,
    Status,
)
from gsid_service.score.scorer import Scorer, load, use_cores
from gsid_service.simulate.cases import Case
from gsid_service.simulate.faults import with_values
from gsid_service.simulate.forwarding import forward, moved
from gsid_service.simulate.plane import build
from gsid_service.store import alerts, approvals, networks, scores, snapshots
from gsid_service.store.approvals import Approval, Baseline
from gsid_service.store.database import Database, connect
from gsid_service.store.networks import Network
from gsid_service.store.snapshots import Outcome, Receipt
from tests.store.making import NOW, ROUTERS, incoming, link, snapshot

MODEL = Path(__file__).parent.parent / "models" / "gsid-1"
STALE = 900
# How sure the shipped model is changes as it is trained; the cycle is tested on what it puts first.
SETTINGS = Settings(
    cycle=Cycle(stale_seconds=STALE, sweep_seconds=0.05),
    alerts=Alerts(open_score=0.2, close_score=0.1),
)
CASE = SPLITS["standard"].case("app", 5)
ENTITIES, RIGHT = CASE.entities, CASE.facts


def mistake(case: Case) -> tuple[FactKey, int, int]:
    """A route whose local_pref, raised above all others, takes the most traffic along."""
    right = forward(build(case.entities, case.facts))
    routes = [fact for fact in case.facts if fact.predicate == "bgp_route"]
    wrong = 1 + max(route.params["local_pref"] for route in routes)

    def taken(route: Fact) -> int:
        facts = with_values(case.facts, {(route.key, "local_pref"): wrong})
        return len(moved(right, forward(build(case.entities, facts))))

    worst = max(routes, key=taken)
    return worst.key, worst.params["local_pref"], wrong


ROUTE, GOOD, BAD = mistake(CASE)
SLOT = ROUTE, "local_pref"
WRONG = with_values(RIGHT, {SLOT: BAD})


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    use_cores(1)
    return load(MODEL)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """A failed round is logged with all its variables, which takes long to print."""
    with capture_logs():
        yield


@dataclass
class Watch:
    """A service that is driven by hand, with the time of the test's choice."""

    url: str
    detector: Detector
    settings: Settings = SETTINGS
    now: datetime = NOW
    numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.database: Database = connect(self.url, migrate=True)
        self.metrics = Metrics()
        self.service = Service(
            self.settings,
            self.database,
            Here(self.detector, "test"),
            self.metrics,
            lambda: self.now,
        )

    def close(self) -> None:
        self.database.close()

    def later(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def send(
        self,
        facts: Iterable[Fact] = RIGHT,
        collector: str = "c1",
        *,
        network: str = "net",
        sequence: int | None = None,
        entities: tuple[Entity, ...] = ENTITIES,
        complete: bool = True,
        withdrawn: Sequence[FactKey] = (),
        ahead: timedelta = timedelta(),
    ) -> Receipt:
        """Post a snapshot, of the next sequence unless said otherwise, a second later."""
        self.later(1)
        highest = self.numbers.get(collector, 0)
        number = highest + 1 if sequence is None else sequence
        self.numbers[collector] = max(number, highest)
        who = Collector(collector, "router")
        facts, gone = tuple(facts), tuple(withdrawn)
        at = self.now + ahead  # by the collector's clock
        one = Snapshot(network, who, number, at, complete, entities, facts, gone)
        (receipt,) = self.service.keep([incoming(one)])
        return receipt

    def cycle(self, name: str = "net") -> Network:
        """A round; it must not have failed."""
        self.later(1)
        self.service.run_cycle(name)
        found = self.network(name)
        assert found.problem is None
        return found

    def see(self, facts: Iterable[Fact] = RIGHT, collector: str = "c1") -> Network:
        self.send(facts, collector)
        return self.cycle()

    def network(self, name: str = "net") -> Network:
        with self.database.read() as connection:
            found = networks.find(connection, name)
        assert found is not None
        return found

    def baseline(self, name: str = "net") -> Baseline:
        with self.database.read() as connection:
            found = approvals.baseline(connection, name)
        assert found is not None
        return found

    def wanted(self) -> Intents:
        with self.database.read() as connection:
            return approvals.wanted(connection, "net")

    def alerts(self, name: str = "net") -> dict[tuple[FactKey, str], Alert]:
        with self.database.read() as connection:
            return alerts.of_network(connection, name)

    def firing(self) -> set[tuple[FactKey, str]]:
        return {slot for slot, a in self.alerts().items() if a.status is not Status.RESOLVED}

    def highest(self) -> tuple[FactKey, str]:
        with self.database.read() as connection:
            (row,) = scores.page(connection, "net", 0, None, None, 1)
        return FactKey(row["predicate"], tuple(row["args"])), row["parameter"]

    def shown(self) -> list[tuple[str, int, int | None, bool]]:
        with self.database.read() as connection:
            rows = scores.page(connection, "net", 0, None, None, 1000)
        return sorted(
            (
                str(FactKey(r["predicate"], tuple(r["args"]))),
                r["observed"],
                r["baseline"],
                r["stale"],
            )
            for r in rows
        )

    def approve(self, number: int | None = None, who: str = "ann") -> Approval | None:
        self.later(1)
        wanted = self.service.approvable("net", number)
        return wanted and self.service.approve(self.network(), wanted, who)


@pytest.fixture
def watch(tmp_path: Path, scorer: Scorer) -> Iterator[Watch]:
    """On SQLite."""
    one = Watch(f"sqlite:///{tmp_path / 'gsid.db'}", scorer)
    yield one
    one.close()


@pytest.fixture
def both(database_url: str, scorer: Scorer) -> Iterator[Watch]:
    """On each database."""
    one = Watch(database_url, scorer)
    yield one
    one.close()


# The way of a mistake


def test_a_mistake_is_found_proved_and_over_when_it_is_put_back(both: Watch) -> None:
    both.see()
    assert both.alerts() == {}
    newest = both.see(WRONG)
    assert both.highest() == SLOT
    alert = both.alerts()[SLOT]
    assert both.firing() == {SLOT}
    assert (alert.observed, alert.expected) == (BAD, GOOD)
    assert alert.severity is Severity.CRITICAL
    assert alert.broken_intents
    assert all(found.derived for found in alert.broken_intents)
    assert alert.reverting_repairs == len(alert.broken_intents)
    assert alert.moved
    assert (alert.snapshot_id, alert.collector) == (f"s{newest.scored}", "c1")
    assert alert.first_seen == both.now
    assert newest.summary["broken_intents"]["reachable"] == len(alert.broken_intents)
    assert newest.summary["broken_stated"] == {}
    both.see()
    closed = both.alerts()[SLOT]
    assert closed.status is Status.RESOLVED
    assert closed.id == alert.id
    assert [event.what for event in closed.events] == ["opened", "resolved"]
    assert both.firing() == set()


def test_the_log_tells_what_opens_and_what_resolves(watch: Watch) -> None:
    with capture_logs() as logged:
        for facts in (RIGHT, WRONG, WRONG, RIGHT):
            watch.see(facts)
    turns = [line for line in logged if line["event"].startswith("alert ")]
    assert [line["event"] for line in turns] == ["alert opened", "alert resolved"]
    assert {line["network"] for line in turns} == {"net"}


def test_a_new_network_is_watched_before_anybody_states_an_intent(watch: Watch) -> None:
    """With the settings as they come, on the mistake that moves the most traffic of a network."""
    watch.settings = Settings()
    watch.restart()
    found = []
    for index in range(8):
        case, name = SPLITS["standard"].case("app", index), f"net{index}"
        route, _, wrong = mistake(case)
        for facts in (case.facts, with_values(case.facts, {(route, "local_pref"): wrong})):
            watch.send(facts, entities=case.entities, network=name)
            watch.cycle(name)
        found.append((route, "local_pref") in watch.alerts(name))
    assert sum(found) >= 6, found


def test_a_stated_intent_that_breaks_is_told_from_a_derived_one(watch: Watch) -> None:
    watch.see()
    stated = watch.wanted().derived
    with watch.database.write() as connection:
        approvals.want(connection, "net", Intents(stated, ()), watch.now, "ann")
    watch.see(WRONG)
    alert = watch.alerts()[SLOT]
    assert alert.broken_intents
    assert not any(found.derived for found in alert.broken_intents)
    assert watch.network().summary["broken_stated"]["reachable"] == len(alert.broken_intents)


def test_an_acknowledgement_stays_over_rounds(watch: Watch) -> None:
    watch.see()
    watch.see(WRONG)
    acknowledge(watch)
    watch.cycle()
    watch.see(WRONG)
    assert watch.alerts()[SLOT].status is Status.ACKNOWLEDGED


def acknowledge(watch: Watch) -> None:
    with watch.database.write() as connection:
        before = alerts.of_network(connection, "net")[SLOT]
        alerts.save(connection, acknowledged(before, "ann", watch.now), len(before.events))


def test_the_fact_that_is_withdrawn_takes_its_alert_with_it(watch: Watch) -> None:
    watch.see()
    watch.see(WRONG)
    watch.send((), complete=False, entities=(), withdrawn=[ROUTE])
    watch.cycle()
    alert = watch.alerts()[SLOT]
    assert alert.status is Status.RESOLVED
    assert "no longer there" in alert.events[-1].why
    assert str(ROUTE) not in {fact for fact, *_ in watch.shown()}


def test_what_is_gone_is_remembered_to_explain_alerts(watch: Watch) -> None:
    assert watch.see().summary["missing"] == []
    session = next(fact.key for fact in RIGHT if fact.predicate == "ebgp")
    watch.send((), complete=False, entities=(), withdrawn=[session])
    assert watch.cycle().summary["missing"] == [[session.predicate, list(session.args)]]


# Baselines


def test_the_first_complete_view_is_approved_for_the_time_being(watch: Watch) -> None:
    watch.see()
    baseline = watch.baseline()
    assert baseline.approval.provisional
    assert baseline.approval.approved_by == "gsid"
    assert baseline.facts == RIGHT
    assert {e.id for e in baseline.entities} == {e.id for e in ENTITIES}
    assert watch.wanted().derived
    assert watch.wanted().stated == ()
    assert watch.alerts() == {}
    assert watch.network().summary["broken_intents"] == {"reachable": 0}


def test_what_is_seen_and_approved_is_there_once(watch: Watch) -> None:
    """A large network has no room for copies; nor is the time there to read it twice."""
    watch.send()
    with pytest.MonkeyPatch.context() as patched:
        read: list[bytes] = []

        def counted(body: bytes) -> Snapshot:
            read.append(body)
            return parse_snapshot(body)

        patched.setattr(views, "parse_snapshot", counted)
        watch.cycle()
    assert len(read) == 1
    merged = watch.service.merged("net")[1]
    for _ in range(2):
        seen = watch.service.expectations.observe(watch.network(), merged)
        assert seen.reference is not None
        assert {id(fact) for fact in seen.reference.facts} == {id(fact) for fact in seen.facts}
        assert {id(e) for e in seen.reference.entities} == {id(e) for e in seen.entities}
        watch.service.expectations._baselines.drop("net")


def test_a_network_that_is_wrong_from_the_start_raises_no_storm(watch: Watch) -> None:
    watch.see(CASE.with_faults(0.4, Random(1)).facts)
    assert watch.alerts() == {}


def test_an_incremental_view_is_scored_but_not_approved(watch: Watch) -> None:
    watch.send(complete=False)
    watch.cycle()
    with watch.database.read() as connection:
        assert approvals.baseline(connection, "net") is None
    assert watch.shown()
    assert {row[2] for row in watch.shown()} == {None}
    watch.see()
    assert watch.baseline().facts == RIGHT


def test_what_comes_in_during_a_round_is_not_missed_in_it(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second collector's first view, told after the round has looked."""
    looked = watch.service.merged

    def looked_then_told(name: str) -> tuple[int, Merged]:
        state = looked(name)
        watch.send((f for f in RIGHT if f.predicate != "connected"), "rr1")
        return state

    watch.send((f for f in RIGHT if f.predicate == "connected"), "igp")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(watch.service, "merged", looked_then_told)
        watch.cycle()
    assert watch.alerts() == {}
    watch.cycle()
    assert watch.alerts() == {}
    assert {f.key for f in watch.baseline().facts} == {f.key for f in RIGHT}


def test_a_second_collector_s_part_of_the_network_is_absorbed(watch: Watch) -> None:
    inside = [f for f in RIGHT if f.predicate == "connected"]
    outside = [f for f in RIGHT if f.predicate != "connected"]
    watch.see(inside, "igp")
    assert {f.key for f in watch.baseline().facts} == {f.key for f in inside}
    assert watch.wanted().derived == ()
    watch.see(outside, "rr1")
    assert {f.key for f in watch.baseline().facts} == {f.key for f in RIGHT}
    assert watch.baseline().approval.provisional
    assert watch.wanted().derived
    assert watch.alerts() == {}
    watch.see([f for f in WRONG if f.predicate != "connected"], "rr1")
    assert watch.firing() == {SLOT}
    assert watch.alerts()[SLOT].collector == "rr1"
    baseline = {f.key: f for f in watch.baseline().facts}
    assert baseline[ROUTE].params["local_pref"] == GOOD, "the wrong value was absorbed"


def test_collectors_that_come_one_by_one_leave_the_entities_as_all_at_once_would(
    watch: Watch,
) -> None:
    """Their order decides between equal routes: it must not differ from what is observed."""
    last = max(ENTITIES, key=lambda entity: entity.id).id
    for collector, facts in (
        ("c1", [fact for fact in RIGHT if last in fact.args]),
        ("c2", [fact for fact in RIGHT if last not in fact.args]),
    ):
        named = {arg for fact in facts for arg in fact.args}
        watch.send(facts, collector, entities=tuple(e for e in ENTITIES if e.id in named))
        watch.cycle()
    merged = watch.service.merged("net")[1]
    seen = watch.service.expectations.observe(watch.network(), merged)
    assert seen.reference is not None
    assert seen.reference.entities is seen.entities


def test_a_reflector_is_absorbed_though_its_neighbours_spoke_of_it_first(watch: Watch) -> None:
    as_routers = tuple(
        e._replace(kind="router") if e.kind == "route_reflector" else e for e in ENTITIES
    )
    watch.send([f for f in RIGHT if f.predicate == "connected"], "igp", entities=as_routers)
    watch.cycle()
    watch.see([f for f in RIGHT if f.predicate != "connected"], "rr1")
    assert {f.key for f in watch.baseline().facts} == {f.key for f in RIGHT}
    assert set(watch.baseline().entities) == set(ENTITIES)


def test_approving_clears_what_it_allows_and_says_who(both: Watch) -> None:
    both.see()
    receipt = both.send(WRONG)
    both.cycle()
    before = both.wanted().derived
    approval = both.approve(who="ann")
    assert approval is not None
    assert (approval.approved_by, approval.provisional) == ("ann", False)
    assert (approval.approved_at, approval.snapshot) == (both.now, receipt.number)
    assert both.network().news > both.network().done
    summary = both.cycle().summary
    assert both.firing() == set()
    assert f"{BAD} is the expected value now" in both.alerts()[SLOT].events[-1].why
    assert both.wanted().derived != before
    assert summary["broken_intents"] == {"reachable": 0}
    assert summary["baseline"] == approval.number
    with both.database.read() as connection:
        history = approvals.history(connection, "net", 2**62, 9)
    assert [a.approved_by for a in history] == ["ann", "gsid"]


def test_the_past_can_be_approved(watch: Watch) -> None:
    first = watch.send()
    watch.cycle()
    watch.see(WRONG)
    approval = watch.approve(first.number)
    assert approval is not None
    assert approval.snapshot == first.number
    watch.cycle()
    assert watch.baseline().facts == RIGHT
    assert watch.firing() == {SLOT}


def test_once_somebody_approved_nothing_is_absorbed(watch: Watch) -> None:
    partial = [f for f in RIGHT if f.key != ROUTE]
    watch.see(partial)
    watch.approve()
    watch.see()
    assert ROUTE not in {f.key for f in watch.baseline().facts}
    assert not watch.baseline().approval.provisional


def test_a_session_that_is_down_and_moves_traffic_is_told_until_it_is_up(watch: Watch) -> None:
    peering = ROUTE.args[0]
    best = with_values(RIGHT, {SLOT: BAD})  # the peering that all prefer
    watch.see(best)
    down = [f for f in best if peering not in f.args]
    watch.see(down)
    (session,) = [f.key for f in best if f.predicate == "ebgp" and peering in f.args]
    assert watch.firing() == {(session, "session")}
    alert = watch.alerts()[session, "session"]
    assert (alert.observed, alert.expected) == ("down", "up")
    assert alert.moved
    for turn in range(3):
        watch.see(best if turn % 2 == 0 else down)
    assert watch.firing() == set()
    alert = watch.alerts()[session, "session"]
    assert alert.flapping
    turns = [event.what for event in alert.events]
    assert turns == ["opened", "resolved", "reopened", "resolved", "flapping"]


def test_a_router_of_which_nobody_tells_any_more_is_told(watch: Watch) -> None:
    watch.see()
    gateway = next(f.args[0] for f in RIGHT if f.predicate == "ebgp")
    gone = {gateway, *(f.args[1] for f in RIGHT if f.predicate == "ebgp" and gateway in f.args)}
    left = tuple(entity for entity in ENTITIES if entity.id not in gone)
    rest = [f for f in RIGHT if gone.isdisjoint(f.args)]
    watch.send(rest, entities=left)
    watch.cycle()
    down = {slot for slot in watch.firing() if slot[1] == "session"}
    assert down
    assert all(gateway in fact.args for fact, _ in down)
    watch.send((), entities=())
    watch.cycle()
    assert down <= watch.firing(), "what is worse resolves nothing"
    watch.see()
    assert watch.firing() == set()
    assert {alert.ending for alert in watch.alerts().values()} == {Ending.RESTORED}


def test_a_session_that_is_gone_with_approval_is_not_told(watch: Watch) -> None:
    watch.see()
    peering = ROUTE.args[0]
    watch.see([f for f in RIGHT if peering not in f.args])
    watch.approve()
    watch.cycle()
    assert watch.firing() == set()


def otherwise() -> Fact:
    """A next hop that R0 does not have by its values."""
    state = forward(build(ENTITIES, RIGHT))
    network = state.plane.networks[0]
    right = state.by_name(equal=True)[network]
    assert right is not None
    hop = next(h for h in state.plane.routers if h not in {"R0", *right["R0"]})
    return Fact("fwd", ("R0", network, hop))


def test_a_router_that_forwards_otherwise_for_long_is_told(watch: Watch) -> None:
    odd = otherwise()
    watch.see()
    watch.see([*RIGHT, odd])
    watch.later(80)
    watch.cycle()
    assert watch.firing() == set(), "others may not have been read since"
    watch.later(10)
    watch.cycle()
    assert watch.firing() == {(odd.key, "next_hop")}
    watch.see()
    assert watch.firing() == set()


def test_a_router_that_forwards_otherwise_for_a_moment_is_not_told(watch: Watch) -> None:
    watch.see()
    for facts in ([*RIGHT, otherwise()], RIGHT) * 3:
        watch.see(facts)
        watch.later(60)
        watch.cycle()
        assert watch.firing() == set()


def test_stated_intents_outlive_an_approval(watch: Watch) -> None:
    watch.see()
    stated = (Fact("fwd", ("R0", "N0", "R2"), holds=False),)
    with watch.database.write() as connection:
        approvals.want(connection, "net", watch.wanted()._replace(stated=stated), watch.now, "ann")
    watch.approve()
    assert watch.wanted().stated == stated


def test_there_is_nothing_to_approve_before_there_is_a_fact(watch: Watch) -> None:
    watch.send((), entities=())
    watch.cycle()
    assert watch.approve() is None


def test_what_somebody_approves_during_a_round_is_not_overridden(watch: Watch) -> None:
    watch.send()
    real = watch.service.expectations._provide

    def provide_overtaken(*given: object) -> object:
        watch.approve()
        return real(*given)  # type: ignore[arg-type]

    watch.service.expectations._provide = provide_overtaken  # type: ignore[method-assign,assignment]
    watch.cycle()
    assert watch.baseline().approval.approved_by == "ann"


@pytest.mark.parametrize("collector", ["c1", "c2"])
def test_an_id_that_turns_up_as_another_kind_does_not_stop_the_cycle(
    watch: Watch, collector: str
) -> None:
    """Facts that do not fit are left out; the provisional baseline must go without them too."""
    watch.see()
    peering = ROUTE.args[0]
    entities = tuple(Entity(e.id, "router") if e.id == peering else e for e in ENTITIES)
    facts = [f for f in RIGHT if peering not in f.args]
    watch.send([*facts, link("R0", peering, 9)], collector, entities=entities)
    watch.cycle()


# A value that is left out is the protocol's


def lacking(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """The routes without a local_pref, which is then 100."""
    return tuple(
        f._replace(params={k: v for k, v in f.params.items() if k != "local_pref"}) for f in facts
    )


def test_a_value_where_the_baseline_has_none_is_held_against_the_protocol_s(watch: Watch) -> None:
    watch.see(lacking(RIGHT))
    facts = tuple(
        f._replace(params={**f.params, "local_pref": 300}) if f.key == ROUTE else f
        for f in lacking(RIGHT)
    )
    watch.see(facts)
    (row,) = [row for row in watch.shown() if row[0] == str(ROUTE) and row[1] == 300]
    assert row[2] == 100


# Collectors that fall silent


def test_a_silent_collector_s_facts_are_stale_and_nothing_is_guessed(both: Watch) -> None:
    both.see()
    both.see(WRONG)
    before = both.alerts()
    both.later(STALE - 10)
    both.cycle()
    assert not any(row[3] for row in both.shown())
    fresh = both.alerts()
    both.later(20)
    summary = both.cycle().summary
    assert summary["stale_facts"] == len(WRONG)
    assert all(row[3] for row in both.shown())
    assert both.alerts() == fresh
    assert fresh.keys() == before.keys()
    both.see()
    assert not any(row[3] for row in both.shown())
    assert both.firing() == set()


def test_a_stale_value_opens_no_alert(watch: Watch) -> None:
    watch.see()
    watch.send(WRONG)
    watch.later(STALE + 1)
    watch.cycle()
    assert watch.highest() == SLOT
    assert watch.alerts() == {}


def test_what_another_collector_still_states_is_not_stale(watch: Watch) -> None:
    watch.send(collector="quiet")
    watch.later(STALE)
    seen = [f for f in RIGHT if f.predicate == "connected"]
    watch.send(seen, "alive")
    watch.later(1)
    assert watch.cycle().summary["stale_facts"] == len(RIGHT) - len(seen)


def test_who_looks_at_a_network_hides_no_silence_from_the_next_sweep(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.see()
    watch.later(STALE + 1)
    assert watch.service.merged("net")[1].stale
    woken: list[str] = []
    monkeypatch.setattr(watch.service, "wake", woken.extend)
    watch.service.sweep()
    assert woken == ["net"]


# Failures and restarts


class Moody:
    """A detector that fails on a network that has the router `broken`."""

    name = "moody"

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer

    def __call__(self, graph: Graph) -> Scores:
        if "broken" in graph.entities:
            raise ArithmeticError("it cannot be")
        return self.scorer(graph)


def test_a_failure_in_one_network_is_kept_and_stops_no_other(watch: Watch, scorer: Scorer) -> None:
    watch.detector = Moody(scorer)
    watch.restart()
    bad = (*ROUTERS, Entity("broken", "router"))
    watch.send([link("R1", "R2", 1)], entities=bad, network="bad")
    watch.send(network="good")
    watch.service.run_cycle("bad")
    watch.cycle("good")
    failed = watch.network("bad")
    assert failed.problem == "ArithmeticError: it cannot be"
    assert (failed.done, failed.scored) == (failed.news, 0)
    assert b'gsid_cycle_failures_total{network="bad"} 1.0' in watch.metrics.text()
    watch.send([link("R1", "R2", 1)], entities=ROUTERS, network="bad")
    assert watch.cycle("bad").scored > 0


class Absent(Here):
    """A diagnoser of which no process can be started while it is `gone`."""

    gone = True

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        if self.gone:
            raise NotStarted("no memory")
        return super().__call__(seen, limits)


def test_a_network_waits_while_nobody_scores(
    watch: Watch, scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "PAUSE_SECONDS", 0.01)
    watch.service.diagnose = absent = Absent(scorer, "absent")
    watch.send()
    jobs = watch.service.jobs
    jobs.start(watch.service._work())
    watch.service.wake(["net"])
    wait_until(lambda: b'gsid_cycle_failures_total{network="net"} 3.0' in watch.metrics.text())
    waits = watch.network()
    assert (waits.problem, waits.scored) == (None, 0)
    assert waits.done < waits.news
    absent.gone = False
    wait_until(lambda: watch.network().scored > 0)
    jobs.stop()


def test_a_round_that_hangs_does_not_keep_the_service_from_ending(
    watch: Watch, scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stopped = threading.Event(), threading.Event()

    class Hanging(Here):
        def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:  # noqa: ARG002
            begun.set()
            assert stopped.wait(10)
            raise NotStarted("the service is being stopped")

        def stop(self) -> None:
            stopped.set()

    monkeypatch.setattr(app, "ROUND_SECONDS", 0.1)
    monkeypatch.setattr(embedded, "PAUSE_SECONDS", 0.01)
    watch.service.diagnose = Hanging(scorer, "hanging")
    watch.send()
    watch.service.jobs.start(watch.service._work())
    watch.service.wake(["net"])
    assert begun.wait(10)
    watch.service.inbox.start()
    watch.service.stop()
    assert not watch.service.jobs.alive
    watch.restart()
    left = watch.network()
    assert left.done < left.news, "the next start goes on with it"


def test_a_network_that_is_not_known_is_no_failure(watch: Watch) -> None:
    watch.service.run_cycle("nobody")
    with watch.database.read() as connection:
        assert networks.names(connection) == []


def test_a_new_service_goes_on_where_the_last_one_ended(both: Watch) -> None:
    both.see()
    both.see(WRONG)
    before, scored = both.alerts(), both.shown()
    both.close()
    both.restart()
    both.cycle()
    assert {a.id for a in both.alerts().values()} == {a.id for a in before.values()}
    assert both.firing() == {SLOT}
    assert both.shown() == scored
    assert len(both.alerts()[SLOT].events) == 1
    both.send()
    both.close()
    both.restart()
    with both.database.read() as connection:
        assert networks.with_news(connection) == ["net"]
    both.cycle()
    assert both.firing() == set()
    with both.database.read() as connection:
        assert networks.with_news(connection) == []
        assert len(approvals.history(connection, "net", 2**62, 9)) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_database_that_is_away_for_a_moment_does_not_end_the_cycle(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "PAUSE_SECONDS", 0.01)
    watch.send()
    away = Away(watch.database)
    watch.service.database = away
    watch.service.jobs.start(watch.service._work())
    away.gone = True
    watch.service.wake(["net"])
    wait_until(lambda: away.asked)
    away.gone = False
    time.sleep(0.05)
    watch.service.wake(["net"])
    wait_until(lambda: watch.network().scored > 0)
    assert watch.service.jobs.alive
    watch.service.jobs.stop()


class Away(Database):
    """A database that cannot be reached while it is `gone`."""

    def __init__(self, real: Database) -> None:
        self.real, self.gone, self.asked = real, False, False
        self.is_sqlite = real.is_sqlite

    @contextmanager
    def read(self) -> Iterator[Connection]:
        if self.gone:
            self.asked = True
            raise ConnectionError("the server is restarting")
        with self.real.read() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self.real.write() as connection:
            yield connection


def wait_until(happened: Callable[[], object], seconds: float = 3.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


# What others do while a round goes on


def test_an_acknowledgement_during_a_round_is_not_lost(watch: Watch) -> None:
    watch.see()
    watch.see(WRONG)
    real = watch.service.diagnose

    class Overtaken(Here):
        def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
            found = real(seen, limits)
            acknowledge(watch)
            return found

    watch.service.diagnose = Overtaken(watch.detector, "test")
    watch.cycle()
    alert = watch.alerts()[SLOT]
    assert [event.what for event in alert.events] == ["opened", "acknowledged"]
    assert alert.status is Status.ACKNOWLEDGED


def test_intents_that_are_stated_during_a_round_are_not_lost(watch: Watch) -> None:
    stated = Intents((Fact("fwd", ("R0", "N0", "R2"), holds=False),), ())
    real = watch.service.expectations._provide

    def provide_overtaken(*given: object) -> object:
        with watch.database.write() as connection:
            approvals.want(connection, "net", stated, watch.now, "ann")
        return real(*given)  # type: ignore[arg-type]

    watch.service.expectations._provide = provide_overtaken  # type: ignore[method-assign,assignment]
    watch.see()
    assert watch.wanted().stated == stated.stated


# Order of arrival


def test_a_snapshot_that_comes_late_does_not_replace_newer_state(both: Watch) -> None:
    both.see()
    both.send(sequence=9)
    both.cycle()
    receipt = both.send(WRONG, sequence=5)
    assert receipt.outcome is Outcome.ACCEPTED
    before = both.shown()
    assert both.cycle().scored == receipt.number
    assert both.shown() == before
    assert both.alerts() == {}


def test_a_change_that_comes_late_takes_its_place_among_the_others(watch: Watch) -> None:
    (wrong,) = [f for f in WRONG if f.key == ROUTE]
    (right,) = [f for f in RIGHT if f.key == ROUTE]
    watch.see()
    watch.send([right], sequence=9, complete=False)
    watch.cycle()
    watch.send([wrong], sequence=5, complete=False)
    watch.cycle()
    assert watch.alerts() == {}
    watch.send([wrong], sequence=12, complete=False)
    watch.cycle()
    assert watch.firing() == {SLOT}


def test_the_highest_sequence_is_a_sequence_like_others(watch: Watch) -> None:
    watch.send([link("R1", "R2", 1)], entities=ROUTERS)
    watch.send([link("R1", "R2", 2)], entities=ROUTERS, sequence=2**63 - 2, complete=False)
    watch.cycle()
    watch.send([link("R1", "R3", 2)], entities=ROUTERS, sequence=5, complete=False)
    watch.cycle()
    assert [row[1] for row in watch.shown()] == [2, 2]


class Fair:
    """A detector that suspects nothing."""

    name = "fair"

    def __call__(self, graph: Graph) -> Scores:
        return Scores("fair", graph.facts, (), np.zeros((len(graph.facts), 0)))


NUMBERS = count()
PAIRS = [("R1", "R2"), ("R2", "R1"), ("R1", "R3")]


@st.composite
def arrivals(draw: st.DrawFn) -> list[Snapshot]:
    """Snapshots of two collectors in the order of their arrival."""
    found = []
    for collector in ("c1", "c2"):
        for sequence in draw(st.sets(st.integers(1, 9), min_size=1, max_size=5)):
            stated = draw(st.dictionaries(st.sampled_from(PAIRS), st.integers(1, 3)))
            gone = draw(st.sets(st.sampled_from(PAIRS))) - stated.keys()
            found.append(
                snapshot(
                    *(sequence, [link(*pair, w) for pair, w in stated.items()]),
                    collector=collector,
                    complete=draw(st.booleans()),
                    withdrawn=[FactKey("connected", pair) for pair in gone],
                )
            )
    return draw(st.permutations(found))


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(given_=arrivals(), rounds=st.sets(st.integers(0, 9)))
def test_any_interleaving_gives_the_same_state_however_often_the_cycle_looked(
    watch: Watch, given_: list[Snapshot], rounds: set[int]
) -> None:
    name = f"net{next(NUMBERS)}"
    later = NOW + timedelta(minutes=1)  # than all that is observed
    service = Service(SETTINGS, watch.database, Here(Fair(), "fair"), watch.metrics, lambda: later)
    found = Merged()
    for place, one in enumerate(given_):
        service.keep([incoming(replace(one, network=name))])
        if place in rounds or place == len(given_) - 1:
            _, found = service.merged(name)
    views: dict[str, View] = {}
    for one in sorted(given_, key=lambda s: s.sequence):
        views[one.collector.id] = extend(views.get(one.collector.id), one, "")
    expected = merge(views.values())
    assert (found.entities, found.conflicts) == (expected.entities, expected.conflicts)
    assert set(map(repr, found.facts)) == set(map(repr, expected.facts))
    assert found.complete == expected.complete
    past = service.state_at(name, 2**62)
    assert past.entities == found.entities
    assert set(map(repr, past.facts)) == set(map(repr, found.facts))


# Long chains of changes are written down whole


def test_disagreements_are_shown_with_the_network(watch: Watch) -> None:
    watch.send([link("R1", "R2", 1)], "c1", entities=ROUTERS)
    watch.send([link("R1", "R2", 5)], "c2", entities=ROUTERS)
    (conflict,) = watch.cycle().summary["conflicts"]
    assert conflict["fact"] == {"predicate": "connected", "args": ["R1", "R2"]}
    assert conflict["values"] == [
        {"collector": "c2", "value": 5},
        {"collector": "c1", "value": 1},
    ]


def test_a_clock_that_is_ahead_does_not_win_for_ever(watch: Watch) -> None:
    years = timedelta(days=3650)
    watch.send([link("R1", "R2", 1)], "c1", entities=ROUTERS, ahead=years)
    watch.send([link("R1", "R2", 5)], "c2", entities=ROUTERS)
    (conflict,) = watch.cycle().summary["conflicts"]
    assert [one["collector"] for one in conflict["values"]] == ["c2", "c1"]
    watch.send([link("R1", "R2", 1)], "c1", entities=ROUTERS, ahead=years)
    (conflict,) = watch.cycle().summary["conflicts"]
    assert [one["collector"] for one in conflict["values"]] == ["c1", "c2"]


def test_metrics_show_the_newest_round(watch: Watch) -> None:
    watch.see()
    watch.see(WRONG)
    text = watch.metrics.text().decode()
    assert 'gsid_alerts{network="net",severity="critical",status="firing"} 1.0' in text
    assert 'gsid_alerts{network="net",severity="minor",status="firing"} 0.0' in text
    assert text.count("\ngsid_anomaly_score{") == SETTINGS.metrics.highest_scores
    heard = (watch.now - timedelta(seconds=1)).timestamp()
    last = 'gsid_collector_last_snapshot_timestamp_seconds{collector="c1",network="net"}'
    (line,) = [line for line in text.splitlines() if line.startswith(last)]
    assert float(line.removeprefix(last)) == pytest.approx(heard, abs=1e-3)
    watch.see()
    text = watch.metrics.text().decode()
    assert 'gsid_alerts{network="net",severity="critical",status="firing"} 0.0' in text
    assert 'gsid_alerts{network="net",severity="critical",status="resolved"} 1.0' in text


def test_other_scores_to_open_at_are_heeded_from_the_next_round_on(watch: Watch) -> None:
    watch.see()
    strict = Alerts(open_score=1.0, close_score=0.99999)
    watch.service.settings = SETTINGS.model_copy(update={"alerts": strict})
    watch.see(WRONG)
    assert watch.alerts() == {}
    watch.service.settings = SETTINGS
    watch.cycle()
    assert watch.firing() == {SLOT}


def test_the_time_is_the_clock_s(watch: Watch) -> None:
    watch.now = datetime(2030, 1, 1, tzinfo=UTC)
    found = watch.see()
    assert found.created_at == datetime(2030, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert found.scored_at == watch.now


def test_a_network_without_anything_in_it_has_a_round_too(watch: Watch) -> None:
    watch.send((), entities=())
    watch.cycle()
    watch.see()
    assert watch.baseline().facts == RIGHT
    with watch.database.read() as connection:
        assert snapshots.newest(connection, "net") == watch.network().scored
