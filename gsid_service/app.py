"""The service: wires the stages, and runs the cycle.

News of a network (a snapshot, an approval, other intents, a collector that fell silent) wakes the
cycle. It takes one network at a time, looks at its newest state only, so that a burst costs one
round, and a failure with one network stops no other.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from gsid_service.alert.changes import (
    accepted,
    by_key,
    expected,
    followed,
    is_over,
    is_under_way,
    marked,
)
from gsid_service.alert.decide import Finding, Rules, decide
from gsid_service.assemble.merge import Merged, View, fitting, merge
from gsid_service.config import Settings
from gsid_service.diagnose import Diagnoser, Diagnosis, Limits, Observation, Reference
from gsid_service.findings import finding, misrouted, scores_of, summary_of
from gsid_service.ingest.inbox import Inbox
from gsid_service.metrics import Metrics
from gsid_service.notifier import Notifier
from gsid_service.records import (
    Alert,
    Change,
    Entity,
    Fact,
    FactKey,
    Intents,
    Move,
    Severity,
    Status,
)
from gsid_service.simulate import intents
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.store import alerts, approvals, changes, networks, retention, scores, snapshots
from gsid_service.store.approvals import Approval, Baseline
from gsid_service.store.database import Database
from gsid_service.store.networks import Network
from gsid_service.store.scores import Score
from gsid_service.store.snapshots import Incoming, Kept, Outcome, Receipt
from gsid_service.views import Views, extended, views_at

log = structlog.get_logger()
SERVICE = "gsid"  # who did what nobody did
ALWAYS_COMPARE_MED = "always_compare_med"
SWEEP_STEPS = 20
GIVE_WAY_SECONDS = 0.1
CHECKS_AT_ONCE = 4  # each takes as long as a cycle, and they take turns with it
PAUSE_SECONDS = 1.0  # before a database that does not answer is asked again


class Service:
    """Everything that runs beside the requests."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        diagnose: Diagnoser,
        metrics: Metrics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings, self.database, self.diagnose = settings, database, diagnose
        self.metrics, self.clock = metrics, clock
        self.inbox = Inbox(settings.ingest.queue, self.keep)
        self.notifier = Notifier(settings, database, metrics, clock, self.wake)
        self._views = Views()
        self._known_silent: dict[str, set[str]] = {}  # as the last cycle had it
        self._differing: dict[str, set[Move]] = {}  # likewise
        self._pending: dict[str, None] = {}
        self._taken = 0  # snapshots that had come in when the last cycle ended
        self._wake = threading.Condition()
        self._stopping = False
        self.checking = threading.BoundedSemaphore(CHECKS_AT_ONCE)
        self._thread = threading.Thread(target=self._run, name="cycle", daemon=True)

    # Starting and stopping

    def start(self) -> None:
        """Go on where the last run ended."""
        with self.database.read() as connection:
            known, unfinished = networks.names(connection), networks.with_news(connection)
            counted = alerts.count(connection)
        for name in known:
            self.metrics.know(name)
            self._show_alerts(name, counted.get(name, Counter()))
        self.inbox.start()
        self.notifier.start()
        self._thread.start()
        # What was left undone first, then everything, so that all of it is shown.
        self.wake([*unfinished, *known])

    def stop(self) -> None:
        self.inbox.stop()
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()
        self.diagnose.stop()
        self.notifier.stop()
        self.database.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and self.inbox.alive and self.notifier.alive

    # News

    def keep(self, incoming: Sequence[Incoming]) -> list[Receipt]:
        """Store snapshots durably, and wake the cycle for them."""
        with self.database.write() as connection:
            receipts = snapshots.add(connection, incoming, self.clock())
        self.wake(
            item.snapshot.network
            for item, receipt in zip(incoming, receipts, strict=True)
            if receipt.outcome is Outcome.ACCEPTED
        )
        return receipts

    def wake(self, names: Iterable[str]) -> None:
        with self._wake:
            self._pending |= dict.fromkeys(names)
            self._wake.notify()

    # The cycle

    def _run(self) -> None:
        swept = self.clock()
        while True:
            with self._wake:
                if not self._pending and not self._stopping:
                    self._wake.wait(self.settings.cycle.sweep_seconds)
                if self._stopping:
                    return
                name = next(iter(self._pending), None)
                self._pending.pop(name or "", None)
            try:
                if name is not None:
                    self.run_cycle(name)
                    self._give_way()
                if self.clock() - swept >= timedelta(seconds=self.settings.cycle.sweep_seconds):
                    swept = self.clock()
                    self._sweep()
            except Exception:
                # Such as a database that is away, and may come back. What is pending stays so.
                log.exception("the cycle goes on", network=name)
                self.wake([name] if name is not None else [])
                time.sleep(PAUSE_SECONDS)

    def _give_way(self) -> None:
        """Where snapshots come in one after another, leave them time: scoring the newest state a
        little later costs less than letting a collector wait."""
        if self.inbox.taken > self._taken:
            time.sleep(GIVE_WAY_SECONDS)
        self._taken = self.inbox.taken

    def run_cycle(self, name: str) -> None:
        """One round for one network; what goes wrong is logged, kept and shown."""
        with self.database.read() as connection:
            network = networks.find(connection, name)
        if network is None:
            return
        try:
            self._cycle(network)
        except OperationalError:
            raise
        except Exception as error:
            log.exception("cycle failed", network=name)
            self.metrics.cycle_failures.labels(name).inc()
            with self.database.write() as connection:
                networks.fail(connection, name, network.news, f"{type(error).__name__}: {error}")

    def _cycle(self, network: Network) -> None:
        with self.metrics.stage("merge"):
            newest, merged = self.merged(network.name)
            baseline, wanted = self._approved(network)
            under_way, closing = self._followed(network.name, merged)
            for change in closing:
                baseline, wanted = self._close(network, newest, merged, baseline, wanted, change)
            seen = self._observation(network, merged, baseline, wanted, under_way)
        with self.metrics.stage("diagnose"):
            diagnosis = self.diagnose(seen, self.limits())
        for stage, seconds in diagnosis.seconds.items():
            self.metrics.cycle.labels(stage).observe(seconds)
        with self.metrics.stage("save"):
            scored = scores_of(diagnosis, merged)
            found = self._findings(network.name, diagnosis, merged)
            findings = marked(found, seen.contradicted, under_way)
            summary = summary_of(merged, wanted, diagnosis, baseline)
            after = self._save(network, newest, scored, findings, summary)
        self._publish(network.name, merged, scored, after, summary)

    def merged(self, name: str) -> tuple[int, Merged]:
        """The newest state of all collectors, and the newest snapshot in it."""
        with self.database.read() as connection:
            newest = snapshots.newest(connection, name)
        views, silent = self.views(name)
        self._known_silent[name] = silent
        for collector, view in views.items():
            at = view.observed_at.timestamp()
            self.metrics.last_snapshot.labels(name, collector).set(at)
        return newest, merge(views.values(), silent)

    def views(self, name: str) -> tuple[dict[str, View], set[str]]:
        """What each collector says of a network, and which of them are silent."""
        with self.database.read() as connection:
            views, silent = self._views.of(connection, name), self._silent(connection, name)
        return views, silent

    def state_at(self, name: str, number: int) -> Merged:
        """The network as its collectors saw it when a snapshot had come in."""
        with self.database.read() as connection:
            return merge(views_at(connection, name, number))

    def observe(self, network: Network, merged: Merged) -> Observation:
        """All that is known of a network in some state, for who asks beside the cycle."""
        with self.database.read() as connection:
            baseline = approvals.baseline(connection, network.name)
            wanted = approvals.wanted(connection, network.name)
            known = changes.unclosed(connection, network.name)
        under_way = [change for change in known if is_under_way(change, self.clock())]
        return self._observation(network, merged, baseline, wanted, under_way)

    def _observation(
        self,
        network: Network,
        merged: Merged,
        baseline: Baseline | None,
        wanted: Intents,
        under_way: Sequence[Change],
    ) -> Observation:
        """What is seen, and what is expected of it while changes are under way."""
        reference, contradicted = None, frozenset[tuple[FactKey, str]]()
        if baseline is not None:
            facts, entities = baseline.facts, baseline.entities
            if under_way:
                facts, contradicted = expected(facts, by_key(merged.facts), under_way)
                entities = _joined(baseline, merged)
            if facts != baseline.facts:
                wanted = wanted._replace(derived=self.derive(network, entities, facts))
            reference = Reference(entities, facts)
        return Observation(
            merged.entities,
            merged.facts,
            wanted,
            reference,
            frozenset(merged.stale),
            _compares_med(network),
            contradicted,
        )

    # Announced changes

    def _followed(self, name: str, merged: Merged) -> tuple[list[Change], list[Change]]:
        """The changes that are under way, as far as each is, and those to be closed."""
        now, seen = self.clock(), by_key(merged.facts)
        with self.database.read() as connection:
            known = changes.unclosed(connection, name)
            heard = snapshots.last_heard(connection, name) if known else {}
        after = [followed(change, seen, heard, now, self._patience()) for change in known]
        under_way = [change for change in after if is_under_way(change, now)]
        fresh = [change for change in under_way if change not in known]
        if fresh:
            with self.database.write() as connection:
                for change in fresh:
                    changes.save(connection, change)
        return under_way, [change for change in after if change.closed_at is not None]

    def _close(
        self,
        network: Network,
        newest: int,
        merged: Merged,
        baseline: Baseline | None,
        wanted: Intents,
        change: Change,
    ) -> tuple[Baseline | None, Intents]:
        """End a change: what was applied of it is approved by its author, and nothing else."""
        name, now, derived = network.name, self.clock(), wanted.derived
        facts = accepted(baseline.facts, by_key(merged.facts), change) if baseline else ()
        if baseline and facts != baseline.facts:
            derived = self.derive(network, _joined(baseline, merged), facts)
        with self.database.write() as connection:
            networks.find(connection, name, to_change=True)
            wanted = approvals.wanted(connection, name)
            if approvals.newest(connection, name) != (baseline.approval.number if baseline else 0):
                return approvals.baseline(connection, name), wanted  # closed in the next round
            if not changes.save(connection, change) or not baseline or facts == baseline.facts:
                return baseline, wanted
            before, wanted = baseline.approval, wanted._replace(derived=derived)
            baseline = approvals.approve(
                connection,
                *(name, _joined(baseline, merged), facts, now, change.author),
                provisional=before.provisional,
                snapshot=newest,
                collectors=before.collectors,
                ticket=change.ticket,
            )
            approvals.want(connection, name, wanted, now, change.author)
        return baseline, wanted

    def _patience(self) -> timedelta:
        return timedelta(seconds=self.settings.cycle.stale_seconds)

    def approve(self, network: Network, number: int | None, who: str) -> Approval | None:
        """Approve a network as it is, or as it was with a snapshot; None where there is nothing."""
        with self.database.read() as connection:
            newest = snapshots.newest(connection, network.name)
        state = self.state_at(network.name, newest if number is None else number)
        if not state.facts:
            return None
        now, derived = self.clock(), self.derive(network, state.entities, state.facts)
        with self.database.write() as connection:
            networks.find(connection, network.name, to_change=True)
            approved = approvals.approve(
                connection,
                *(network.name, state.entities, state.facts, now, who),
                provisional=False,
                snapshot=newest if number is None else number,
                collectors=sorted({stated.collector for stated in state.source.values()}),
            )
            wanted = approvals.wanted(connection, network.name)._replace(derived=derived)
            approvals.want(connection, network.name, wanted, now, who)
            snapshots.touch(connection, [network.name])
        self.wake([network.name])
        return approved.approval

    def _approved(self, network: Network) -> tuple[Baseline | None, Intents]:
        """The baseline and the intents; what collectors first saw is approved provisionally."""
        with self.database.read() as connection:
            baseline = approvals.baseline(connection, network.name)
            wanted = approvals.wanted(connection, network.name)
            first = snapshots.first_complete(connection, network.name)
        known = set(baseline.approval.collectors) if baseline else set()
        fresh = [kept for kept in first if kept.collector not in known]
        if not fresh or (baseline and not baseline.approval.provisional):
            return baseline, wanted
        return self._provide(network, baseline, fresh)

    def _provide(
        self, network: Network, before: Baseline | None, fresh: Sequence[Kept]
    ) -> tuple[Baseline | None, Intents]:
        """Approve, for the time being, the first complete view of each collector."""
        state = merge(extended(None, [kept]) for kept in fresh)
        facts = {fact.key: fact for fact in state.facts}
        entities = {entity.id: entity for entity in state.entities}
        collectors = [kept.collector for kept in fresh]
        if before:
            facts |= {fact.key: fact for fact in before.facts}
            entities |= {entity.id: entity for entity in before.entities}
            collectors += before.approval.collectors
        approved = tuple(entities.values()), tuple(fitting(facts.values(), entities))
        derived = self.derive(network, *approved)
        now, name = self.clock(), network.name
        with self.database.write() as connection:
            networks.find(connection, name, to_change=True)
            wanted = approvals.wanted(connection, name)
            if approvals.newest(connection, name) != (before.approval.number if before else 0):
                return approvals.baseline(connection, name), wanted  # an operator was faster
            baseline = approvals.approve(
                connection,
                *(name, *approved, now, SERVICE),
                provisional=True,
                snapshot=max(kept.number for kept in fresh),
                collectors=collectors,
            )
            wanted = wanted._replace(derived=derived)
            approvals.want(connection, name, wanted, now, SERVICE)
        return baseline, wanted

    def derive(
        self, network: Network, entities: Sequence[Entity], facts: Sequence[Fact]
    ) -> tuple[Fact, ...]:
        """The intents that an approved state stands for."""
        state = forward(build(entities, facts), _compares_med(network))
        return intents.derive(state, self.settings.cycle.intents_at_most)

    def limits(self) -> Limits:
        wanted = self.settings
        return Limits(wanted.alerts.open_score, wanted.alerts.close_score, wanted.verify.seconds)

    def _findings(
        self, name: str, diagnosis: Diagnosis, merged: Merged
    ) -> dict[tuple[FactKey, str], Finding]:
        """What is known of each value that is, or may become, an alert's."""
        with self.database.read() as connection:
            watched = alerts.slots(connection, name)
        found = {
            (value.fact, value.parameter): finding(name, value, diagnosis, merged)
            for value in diagnosis.values
            if value.slot in diagnosis.proofs or value.slot in watched
        }
        return found | self._not_in_operation(name, diagnosis, merged)

    def _not_in_operation(
        self, name: str, diagnosis: Diagnosis, merged: Merged
    ) -> dict[tuple[FactKey, str], Finding]:
        """Routers that forward otherwise than their values say, in two states one after another:
        a snapshot may fall between a change and its effect."""
        now = set(diagnosis.differences)
        before, self._differing[name] = self._differing.get(name, set()), now
        return {
            (finding.fact, finding.parameter): finding
            for difference in sorted(now & before)
            if (finding := misrouted(name, difference, merged)) is not None
        }

    def _save(
        self,
        network: Network,
        newest: int,
        scored: Sequence[Score],
        findings: dict[tuple[FactKey, str], Finding],
        summary: dict[str, Any],
    ) -> list[Alert]:
        """Decide about each alert and keep all there is, in one transaction: nobody else's
        acknowledgement can come in between."""
        now, rules = self.clock(), self._rules()
        with self.database.write() as connection:
            before = alerts.of_network(connection, network.name, now - rules.flap_within)
            held_back = self.notifier.holding(connection, network.name, now)
            after = []
            for slot in sorted(before.keys() | findings.keys()):
                known, found = before.get(slot), findings.get(slot)
                if (known is None or known.status is Status.RESOLVED) and held_back(*slot):
                    found = None
                alert = decide(known, found, rules, now)
                if alert is not None and alert != known:
                    alert = alerts.save(connection, alert, len(known.events) if known else 0)
                if alert is not None:
                    after.append(alert)
            scores.replace(connection, network.name, scored, now)
            networks.finish(connection, network.name, network.news, newest, now, summary)
            plan = self.notifier.plan(connection, network.name, after, now)
        self.notifier.go(plan)
        return plan.alerts

    def _rules(self) -> Rules:
        wanted = self.settings.alerts
        within = timedelta(seconds=wanted.flap_seconds)
        return Rules(wanted.open_score, wanted.close_score, wanted.flap_changes, within)

    def _publish(
        self,
        name: str,
        merged: Merged,
        scored: Sequence[Score],
        after: Sequence[Alert],
        summary: dict[str, Any],
    ) -> None:
        metrics = self.metrics
        metrics.know(name)
        highest = scored[: self.settings.metrics.highest_scores]
        most: dict[str, float] = {}
        for score in scored:
            most[score.parameter] = max(score.score, most.get(score.parameter, 0.0))
        metrics.show_scores(name, [(s.parameter, str(s.fact), s.score) for s in highest], most)
        metrics.show_parameters(name, Counter(s.parameter for s in scored))
        metrics.show_broken_intents(name, summary["broken_intents"])
        metrics.stale_facts.labels(name).set(len(merged.stale))
        self._show_alerts(name, Counter((a.severity.value, a.status.value) for a in after))

    def _show_alerts(self, name: str, counted: Counter[tuple[str, str]]) -> None:
        none = {(severity.value, status.value): 0 for severity in Severity for status in Status}
        self.metrics.show_alerts(name, none | counted)

    # What time alone asks for

    def _sweep(self) -> None:
        """Look for collectors that fell silent or came back and for windows that begin or end, and
        forget what is too old."""
        with self.database.read() as connection:
            names = networks.names(connection)
            silent = {name: self._silent(connection, name) for name in names}
            turning = {name for name in names if self._is_turning(connection, name)}
        for name in names:
            self._forget(name)
        known = self._known_silent
        self.wake(n for n in names if n in turning or silent[n] != known.get(n, set()))

    def _is_turning(self, connection: Connection, name: str) -> bool:
        """Whether the window of a change has begun or ended since the last round."""
        now, known = self.clock(), changes.unclosed(connection, name)
        heard = snapshots.last_heard(connection, name) if known else {}
        return any(
            is_over(change, heard, now, self._patience())
            or (change.begins_at <= now and not change.observed)
            for change in known
        )

    def _silent(self, connection: Connection, name: str) -> set[str]:
        """The collectors that have said nothing for too long."""
        limit = self.clock() - self._patience()
        heard = snapshots.last_heard(connection, name)
        return {collector for collector, at in heard.items() if at < limit}

    def _forget(self, name: str) -> None:
        """Small steps, each a transaction of its own, and not without end."""
        kept = self.settings.retention
        before = self.clock() - timedelta(days=kept.days)
        for _ in range(SWEEP_STEPS):
            with self.database.write() as connection:
                gone = retention.forget_snapshots(connection, name, before, kept.snapshots)
                gone += retention.forget_history(connection, name, before)
                gone += retention.forget_deliveries(connection, name, before)
            if not gone:
                return


def _compares_med(network: Network) -> bool:
    return bool(network.settings.get(ALWAYS_COMPARE_MED, False))


def _joined(baseline: Baseline, merged: Merged) -> tuple[Entity, ...]:
    """The entities that were approved, and those that are new."""
    entities = {entity.id: entity for entity in merged.entities}
    return tuple((entities | {entity.id: entity for entity in baseline.entities}).values())
