"""The service: wires the stages, and runs the cycle.

News of a network (a snapshot, an approval, other intents, a collector that fell silent) wakes the
cycle, in this process or in another one on the same database. It looks at the newest state of one
network, so that a burst costs one round, and a failure with one network stops no other.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from gsid_service.alert.changes import by_key, is_over, legitimised, marked
from gsid_service.alert.decide import Finding, Rules, decide
from gsid_service.assemble.merge import Merged, View, merge
from gsid_service.config import Settings
from gsid_service.cycle.expect import Expectations
from gsid_service.cycle.findings import (
    NEXT_HOP,
    SESSION,
    Told,
    finding,
    misrouted,
    number_of,
    scored,
    sessions,
    summary_of,
)
from gsid_service.cycle.kept import KeptScores
from gsid_service.cycle.publish import Shown, publish, show_alerts, show_collectors
from gsid_service.cycle.turns import log_turns
from gsid_service.cycle.views import Views, views_at
from gsid_service.diagnose.apart import NotStarted
from gsid_service.diagnose.diagnosis import Diagnoser, Diagnosis, Limits
from gsid_service.ingest.inbox import Inbox
from gsid_service.jobs import Away, Jobs, Work
from gsid_service.jobs.embedded import Embedded
from gsid_service.metrics import Metrics
from gsid_service.notifier import Notifier
from gsid_service.records import (
    Alert,
    FactKey,
    Move,
    Status,
)
from gsid_service.store import alerts, changes, networks, retention, scores, snapshots
from gsid_service.store.approvals import Approval
from gsid_service.store.database import Database
from gsid_service.store.networks import Network
from gsid_service.store.scored import PARAMETERS, Scored
from gsid_service.store.snapshots import Incoming, Outcome, Receipt

log = structlog.get_logger()
SWEEP_STEPS = 20
GIVE_WAY_SECONDS = 0.1
ROUND_SECONDS = 10.0  # for a round that is under way when the service is stopped
CHECKS_AT_ONCE = 4  # each takes as long as a cycle, and they take turns with it
ROLES = API, SCORER, NOTIFIER = "api", "scorer", "notifier"
EVERY_ROLE = frozenset(ROLES)
ALERT_PARAMETERS = frozenset({*PARAMETERS, SESSION, NEXT_HOP})


class Seen(NamedTuple):
    """What a round has seen of a network, beside its values."""

    newest: int  # snapshot
    merged: Merged
    summary: dict[str, Any]
    silent: list[str]  # collectors
    differing: Mapping[Move, datetime]  # routers that forward otherwise, and since when


class Approvable(NamedTuple):
    """A network as it can be approved."""

    number: int  # of the newest snapshot in it
    state: Merged
    clears: list[Alert]  # open ones that would be over, the gravest first


class Service:
    """Everything that runs beside the requests."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        diagnose: Diagnoser,
        metrics: Metrics,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        jobs: Jobs | None = None,
        roles: Collection[str] = EVERY_ROLE,
    ) -> None:
        self.settings, self.database, self.diagnose = settings, database, diagnose
        self.metrics, self.clock, self.roles = metrics, clock, frozenset(roles)
        self.jobs: Jobs = jobs or Embedded()
        self.inbox = Inbox(settings.ingest.queue, self.keep)
        self.notifier = Notifier(settings, database, metrics, clock, self.jobs)
        self._views = Views()
        self.expectations = Expectations(
            database, lambda: self.settings.cycle, clock, self._views.first
        )
        self._kept = KeptScores()
        self._shown = Shown(metrics, lambda: self.settings.metrics.highest_scores)
        self._taken = 0  # snapshots that had come in when the last cycle ended
        self.checking = threading.BoundedSemaphore(CHECKS_AT_ONCE)
        self._stopping = threading.Event()

    # Starting and stopping

    def start(self) -> None:
        """Go on where the last run ended."""
        with self.database.read() as connection:
            known, unfinished = networks.names(connection), networks.with_news(connection)
            counted = alerts.count(connection)
        for name in known if API in self.roles else ():
            self.metrics.know(name)
            show_alerts(self.metrics, name, counted.get(name, Counter()))
        if API in self.roles:
            self.inbox.start()
        if NOTIFIER in self.roles:
            self.notifier.prepare()
        self.jobs.start(self._work())
        # What was left undone first, then everything, so that all of it is shown.
        self.wake(unfinished if self.jobs.shared else [*unfinished, *known])

    def stop(self) -> None:
        self._stopping.set()
        self.inbox.stop()
        # A round may end what it does, and one that hangs does not keep the service from ending.
        patience = threading.Timer(ROUND_SECONDS, self.diagnose.stop)
        patience.start()
        self.jobs.stop()
        patience.cancel()
        self.diagnose.stop()
        self.notifier.close()
        self.database.close()

    @property
    def alive(self) -> bool:
        return self.jobs.alive and (self.inbox.alive or API not in self.roles)

    def _work(self) -> Work:
        return Work(
            score=self._score,
            sweep=self.sweep,
            forget=self.forget,
            sweep_seconds=lambda: self.settings.cycle.sweep_seconds,
            look=self.notifier.look,
            senders=self.notifier.workers,
            behind=self._behind,
            due=self.notifier.due,
        )

    def _score(self, name: str) -> None:
        self.run_cycle(name)
        self._give_way()

    def _behind(self) -> list[str]:
        with self.database.read() as connection:
            return networks.with_news(connection)

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
        self.jobs.score(names)

    def show(self) -> None:
        """Set the metrics that rest on the store; one role does, so that nothing counts twice."""
        if API not in self.roles:
            return
        self.notifier.show()
        if self.jobs.shared:
            with self.database.read() as connection:
                self._shown.refresh(connection)

    def take_over(self, settings: Settings) -> None:
        """Go on with other settings, by which every network is looked at anew."""
        with self.database.read() as connection:
            known = networks.names(connection)
        self.settings = settings
        self.wake(known)

    # The cycle

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
        except NotStarted as error:
            self.metrics.cycle_failures.labels(name).inc()
            raise Away(str(error)) from error
        except Exception as error:
            log.exception("cycle failed", network=name)
            self.metrics.cycle_failures.labels(name).inc()
            problem = f"{type(error).__name__}: {error}"
            with self.database.write() as connection:
                silent = self._silent(connection, name)
                networks.fail(connection, name, network.news, problem, sorted(silent))

    def _cycle(self, network: Network) -> None:
        with self.metrics.stage("merge"), self.database.steady():
            with self.database.read() as connection:
                silent = self._silent(connection, network.name)
            newest, merged = self.merged(network.name)
            expected = self.expectations.follow(network, newest, merged)
            seen = self.expectations.observation(network, merged, expected)
        with self.metrics.stage("diagnose"):
            diagnosis = self.diagnose(seen, self.limits())
        for stage, seconds in diagnosis.seconds.items():
            self.metrics.cycle.labels(stage).observe(seconds)
        with self.metrics.stage("save"):
            result = scored(diagnosis, merged)
            differing = self._differing(network, diagnosis)
            found = self._findings(network.name, diagnosis, merged, newest, differing)
            findings = marked(found, seen.contradicted, expected.under_way)
            summary = summary_of(merged, expected.wanted, diagnosis, expected.baseline)
            seen_so = Seen(newest, merged, summary, sorted(silent), differing)
            after = self._save(network, result, findings, seen_so)
        if not self.jobs.shared:  # otherwise the store tells whoever is asked
            at_most = self.settings.metrics.highest_scores
            publish(self.metrics, network.name, result, after, summary, at_most)

    def merged(self, name: str) -> tuple[int, Merged]:
        """The newest state of all collectors, and the newest snapshot in it."""
        with self.database.read() as connection:
            newest = snapshots.newest(connection, name)
            heard = snapshots.last_heard(connection, name)
        views, silent = self.views(name)
        if not self.jobs.shared:
            show_collectors(self.metrics, name, heard)
        return newest, self._views.merged(name, views, silent)

    def views(self, name: str) -> tuple[dict[str, View], set[str]]:
        """What each collector says of a network, and which of them are silent."""
        with self.database.read() as connection:
            views, silent = self._views.of(connection, name), self._silent(connection, name)
        return views, silent

    def state_at(self, name: str, number: int) -> Merged:
        """The network as its collectors saw it when a snapshot had come in."""
        with self.database.read() as connection:
            return merge(views_at(connection, name, number))

    def approvable(self, name: str, number: int | None = None) -> Approvable | None:
        """A network as it is, or as it was with a snapshot; None where there is nothing."""
        with self.database.read() as connection:
            if number is None:
                number = snapshots.newest(connection, name)
            unresolved = alerts.unresolved(connection, name)
        state = self.state_at(name, number)
        if not state.facts:
            return None
        return Approvable(number, state, legitimised(unresolved, by_key(state.facts)))

    def approve(self, network: Network, wanted: Approvable, who: str) -> Approval:
        approved = self.expectations.approve(network, wanted.state, wanted.number, who)
        self.wake([network.name])
        return approved

    def limits(self) -> Limits:
        wanted = self.settings
        return Limits(wanted.alerts.open_score, wanted.alerts.close_score, wanted.verify.seconds)

    def _findings(
        self,
        name: str,
        diagnosis: Diagnosis,
        merged: Merged,
        number: int,
        differing: Mapping[Move, datetime],
    ) -> dict[tuple[FactKey, str], Finding]:
        """What is known of each value that is, or may become, an alert's."""
        with self.database.read() as connection:
            watched = alerts.slots(connection, name)
            newest = Told(f"s{number}", snapshots.collector_of(connection, number))
        found = {
            (value.fact, value.parameter): finding(name, value, diagnosis, merged)
            for value in diagnosis.values.of({*diagnosis.proofs, *watched})
        }
        found |= sessions(name, diagnosis.lost, merged, watched, newest)
        return found | self._not_in_operation(name, differing, merged)

    def _differing(self, network: Network, diagnosis: Diagnosis) -> dict[Move, datetime]:
        """Routers that forward otherwise than their values say, and since when."""
        now = self.clock()
        before = {Move(*move): datetime.fromisoformat(at) for *move, at in network.differing or ()}
        return {difference: before.get(difference, now) for difference in diagnosis.differences}

    def _not_in_operation(
        self, name: str, since: Mapping[Move, datetime], merged: Merged
    ) -> dict[tuple[FactKey, str], Finding]:
        """Those that do so for some time: after a change some routers have been read again, and
        some have not."""
        now, patience = self.clock(), timedelta(seconds=self.settings.verify.forwarding_seconds)
        return {
            (finding.fact, finding.parameter): finding
            for difference in sorted(since)
            if now - since[difference] >= patience
            and (finding := misrouted(name, difference, merged)) is not None
        }

    def _save(
        self,
        network: Network,
        result: Scored,
        findings: dict[tuple[FactKey, str], Finding],
        seen: "Seen",
    ) -> list[Alert]:
        """Decide about each alert and keep all there is, in one transaction: nobody else's
        acknowledgement can come in between."""
        now, rules = self.clock(), self._rules()
        with self.database.write() as connection:
            current = networks.take_turn(connection, network.name, network.news)
            if current is None:
                log.warning("a later round was faster", network=network.name)
                return []
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
            kept = scores.replace(
                *(connection, network.name, result, lambda fact: number_of(fact, seen.merged), now),
                before=self._kept.of(current),
            )
            differing = [[*move, at.isoformat()] for move, at in seen.differing.items()]
            state = seen.newest, now, seen.summary, seen.silent, differing
            networks.finish(connection, network.name, network.news, *state)
            plan = self.notifier.plan(connection, network.name, after, now)
        log_turns(before, after)
        self._kept.put(network.name, now, kept)
        self.notifier.go(plan)
        return plan.alerts

    def _rules(self) -> Rules:
        wanted = self.settings.alerts
        within = timedelta(seconds=wanted.flap_seconds)
        return Rules(wanted.open_score, wanted.close_score, wanted.flap_changes, within)

    # What time alone asks for

    def sweep(self) -> None:
        """Look for collectors that fell silent or came back, for windows that begin or end and for
        routers that still forward otherwise."""
        with self.database.read() as connection:
            known = networks.last_seen(connection)
            silent = snapshots.silent(connection, self.clock() - self.settings.cycle.patience)
            changing = changes.networks_with_unclosed(connection)
            turning = {name for name in changing if self._is_turning(connection, name)}
        self.wake(
            name
            for name, (was_silent, differing) in known.items()
            if name in turning or differing or silent.get(name, set()) != was_silent
        )

    def forget(self) -> None:
        """Delete what is too old, of all networks; the next time goes on where a stop came."""
        with self.database.read() as connection:
            names = networks.names(connection)
        for name in names:
            if self._stopping.is_set():
                return
            self._forget(name)

    def _is_turning(self, connection: Connection, name: str) -> bool:
        """Whether the window of a change has begun or ended since the last round."""
        now, known = self.clock(), changes.unclosed(connection, name)
        heard = snapshots.last_heard(connection, name) if known else {}
        return any(
            is_over(change, heard, now, self.settings.cycle.patience)
            or (change.begins_at <= now and not change.observed)
            for change in known
        )

    def _silent(self, connection: Connection, name: str) -> set[str]:
        """The collectors that have said nothing for too long."""
        limit = self.clock() - self.settings.cycle.patience
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
