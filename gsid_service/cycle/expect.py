"""What is expected of a network: the approved state, the intents, and the changes under way.

A network as it is seen goes in, and what to compare it with comes out. On the way is approved, and
kept: the first complete view of each collector, provisionally, and what a change that ends has
changed.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from gsid_service.alert.changes import accepted, by_key, expected, followed, is_under_way
from gsid_service.assemble.merge import Merged, View, fitting, joined, merge
from gsid_service.config import Cycle
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.recent import Recent
from gsid_service.records import Change, Entity, Fact, FactKey, Intents
from gsid_service.simulate import intents
from gsid_service.simulate.forwarding import forward
from gsid_service.simulate.plane import build
from gsid_service.store import approvals, changes, networks, snapshots
from gsid_service.store.approvals import Approval, Baseline
from gsid_service.store.database import Database
from gsid_service.store.networks import Network
from gsid_service.store.snapshots import Kept

ROOM = 4_000_000  # facts of baselines
SERVICE = "gsid"  # who approved what nobody did
ALWAYS_COMPARE_MED = "always_compare_med"


class Expected(NamedTuple):
    baseline: Baseline | None
    wanted: Intents
    under_way: Sequence[Change] = ()


class Expectations:
    """Of all networks, as they are approved and announced in the store."""

    def __init__(
        self,
        database: Database,
        settings: Callable[[], Cycle],
        clock: Callable[[], datetime],
        first_view: Callable[[str, Kept], View],
    ) -> None:
        self.database, self.settings, self.clock = database, settings, clock
        self._first_view = first_view
        self._baselines = Recent[Baseline](ROOM)

    def follow(self, network: Network, newest: int, merged: Merged) -> Expected:
        """In the round of a network whose newest snapshot this is: what is new is taken over."""
        baseline, wanted = self._approved(network, newest, merged)
        under_way, closing = self._followed(network.name, merged)
        for change in closing:
            baseline, wanted = self._close(network, newest, merged, baseline, wanted, change)
        return Expected(baseline, wanted, under_way)

    def observe(self, network: Network, merged: Merged) -> Observation:
        """All that is known of a network in some state, for who asks beside the cycle."""
        with self.database.read() as connection:
            baseline = self._baseline(connection, network.name, merged)
            wanted = approvals.wanted(connection, network.name)
            known = changes.unclosed(connection, network.name)
        under_way = [change for change in known if is_under_way(change, self.clock())]
        return self.observation(network, merged, Expected(baseline, wanted, under_way))

    def observation(self, network: Network, merged: Merged, given: Expected) -> Observation:
        """What is seen, and what is expected of it while changes are under way."""
        baseline, wanted, under_way = given
        reference, contradicted = None, frozenset[tuple[FactKey, str]]()
        if baseline is not None:
            facts, entities = baseline.facts, baseline.entities
            if under_way:
                facts, contradicted = expected(facts, by_key(merged.facts), under_way)
                entities = joined(baseline.entities, merged.entities)
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
            network.name,
        )

    def approve(self, network: Network, state: Merged, number: int, who: str) -> Approval:
        """Approve a network as it was with the snapshot of this number."""
        now, derived = self.clock(), self.derive(network, state.entities, state.facts)
        with self.database.write() as connection:
            networks.find(connection, network.name, to_change=True)
            approved = approvals.approve(
                connection,
                *(network.name, state.entities, state.facts, now, who),
                provisional=False,
                snapshot=number,
                collectors=sorted({stated.collector for stated in state.source.values()}),
            )
            wanted = approvals.wanted(connection, network.name)._replace(derived=derived)
            approvals.want(connection, network.name, wanted, now, who)
            snapshots.touch(connection, [network.name])
        return approved.approval

    def derive(
        self, network: Network, entities: Sequence[Entity], facts: Sequence[Fact]
    ) -> tuple[Fact, ...]:
        """The intents that an approved state stands for."""
        state = forward(build(entities, facts), _compares_med(network))
        return intents.derive(state, self.settings().intents_at_most)

    def derive_again(self, network: Network, who: str) -> Intents | None:
        """The intents, those derived from the baseline anew; None where there is none."""
        name = network.name
        with self.database.read() as connection:
            baseline = approvals.baseline(connection, name)
        if baseline is None:
            return None
        derived = self.derive(network, baseline.entities, baseline.facts)
        with self.database.write() as connection:
            networks.find(connection, name, to_change=True)
            wanted = approvals.wanted(connection, name)._replace(derived=derived)
            approvals.want(connection, name, wanted, self.clock(), who)
            snapshots.touch(connection, [name])
        return wanted

    def follow_settings(self, before: Network, after: Network, who: str) -> None:
        """Derive intents anew where the network is simulated by other rules than before."""
        if _compares_med(before) != _compares_med(after):
            self.derive_again(after, who)

    # What collectors first saw

    def _baseline(self, connection: Connection, name: str, merged: Merged) -> Baseline | None:
        """The newest approval; what is still as it was approved is kept once."""
        number, known = approvals.newest(connection, name), self._baselines.get(name)
        if known and known.approval.number == number:
            return known
        baseline = approvals.baseline(connection, name)
        return baseline and self._kept(name, baseline, merged)

    def _kept(self, name: str, baseline: Baseline, merged: Merged) -> Baseline:
        """Remember a baseline, without another copy of what is still as it was approved."""
        entities = merged.same_entities(baseline.entities)
        facts = merged.same_facts(baseline.facts)
        baseline = baseline._replace(entities=entities, facts=facts)
        self._baselines.put(name, baseline, len(facts))
        return baseline

    def _approved(
        self, network: Network, newest: int, merged: Merged
    ) -> tuple[Baseline | None, Intents]:
        """The baseline and the intents; what collectors first saw is approved provisionally. What
        came in since this round looked is not: it would be missing from what is seen."""
        with self.database.read() as connection:
            baseline = self._baseline(connection, network.name, merged)
            wanted = approvals.wanted(connection, network.name)
            if baseline and not baseline.approval.provisional:
                return baseline, wanted
            known = baseline.approval.collectors if baseline else ()
            fresh = snapshots.first_complete(connection, network.name, newest, known)
        return self._provide(network, merged, baseline, fresh) if fresh else (baseline, wanted)

    def _provide(
        self, network: Network, merged: Merged, before: Baseline | None, fresh: Sequence[Kept]
    ) -> tuple[Baseline | None, Intents]:
        """Approve, for the time being, the first complete view of each collector."""
        state = merge(self._first_view(network.name, kept) for kept in fresh)
        facts = {fact.key: fact for fact in state.facts}
        entities, collectors = state.entities, [kept.collector for kept in fresh]
        if before:
            facts |= {fact.key: fact for fact in before.facts}
            entities = joined(before.entities, entities)
            collectors += before.approval.collectors
        known = {entity.id: entity for entity in entities}
        approved = (
            merged.same_entities(entities),
            merged.same_facts(fitting(facts.values(), known)),
        )
        del state, entities, facts, known  # as many again, while the new ones are simulated
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
        return self._kept(name, baseline, merged), wanted

    # Announced changes

    def _followed(self, name: str, merged: Merged) -> tuple[list[Change], list[Change]]:
        """The changes that are under way, as far as each is, and those to be closed."""
        now, patience = self.clock(), self.settings().patience
        with self.database.read() as connection:
            known = changes.unclosed(connection, name)
            heard = snapshots.last_heard(connection, name) if known else {}
        seen = by_key(merged.facts) if known else {}
        after = [followed(change, seen, heard, now, patience) for change in known]
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
        entities = joined(baseline.entities, merged.entities) if baseline else ()
        if baseline and facts != baseline.facts:
            derived = self.derive(network, entities, facts)
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
                *(name, entities, facts, now, change.author),
                provisional=before.provisional,
                snapshot=newest,
                collectors=before.collectors,
                ticket=change.ticket,
            )
            approvals.want(connection, name, wanted, now, change.author)
        return baseline, wanted


def _compares_med(network: Network) -> bool:
    return bool(network.settings.get(ALWAYS_COMPARE_MED, False))
