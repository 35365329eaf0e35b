"""What each router sees: from a snapshot of the whole to the partial views of its collectors.

Collectors stand at the reflectors and at the gateways. A reflector tells the links, which it has in
its link-state database as every router has, and its own sessions; a gateway tells its sessions and
what its peers announce. Together they tell the whole.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gsid_service import schema
from gsid_service.records import Collector, Entity, Fact, Snapshot

GATEWAY = "gateway"
COMPLETE_EVERY = timedelta(hours=1)  # history before a complete view may be forgotten


def views(whole: Snapshot) -> tuple[Snapshot, ...]:
    """The complete view of each collector, the reflectors' first."""
    reflectors = [e.id for e in whole.entities if e.kind == schema.ROUTE_REFLECTOR.name]
    gateway_of = {f.args[1]: f.args[0] for f in whole.facts if f.predicate == schema.EBGP.name}
    roles = dict.fromkeys(sorted(gateway_of.values()), GATEWAY)
    collectors = dict.fromkeys(reflectors, schema.ROUTE_REFLECTOR.name) | {
        router: role for router, role in roles.items() if router not in reflectors
    }

    def sees(router: str, fact: Fact) -> bool:
        if fact.predicate == schema.CONNECTED.name:
            return router in reflectors
        if fact.predicate == schema.BGP_ROUTE.name:
            return gateway_of.get(fact.args[0]) == router
        return router in fact.args

    return tuple(
        _view(whole, Collector(router, role), tuple(f for f in whole.facts if sees(router, f)))
        for router, role in collectors.items()
    )


def _view(whole: Snapshot, collector: Collector, facts: tuple[Fact, ...]) -> Snapshot:
    entities = _named(whole.entities, facts, collector.id)
    return replace(whole, collector=collector, entities=entities, facts=facts)


def _named(entities: tuple[Entity, ...], facts: tuple[Fact, ...], *more: str) -> tuple[Entity, ...]:
    there = {*more, *(arg for fact in facts for arg in fact.args)}
    return tuple(entity for entity in entities if entity.id in there)


def news(before: Snapshot, after: Snapshot) -> Snapshot:
    """What a collector has to tell that it has not told yet: an incremental snapshot."""
    known = {fact.key: fact for fact in before.facts}
    changed = tuple(fact for fact in after.facts if known.get(fact.key) != fact)
    gone = known.keys() - {fact.key for fact in after.facts}
    return replace(
        after,
        complete=False,
        entities=_named(after.entities, changed),
        facts=changed,
        withdrawn=tuple(key for key in known if key in gone),
    )


class Collectors:
    """The collectors of one network: each tells all it sees first, and then what is new."""

    def __init__(
        self,
        send: Callable[[Snapshot], str],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.send, self.clock = send, clock
        self.told: dict[str, Snapshot] = {}  # what each sees, as it last told it
        self.complete_at: dict[str, datetime] = {}  # when each last told all of it

    def observe(self, whole: Snapshot) -> list[str]:
        """Whoever sees something new sends it; the ids of the snapshots."""
        return [self._tell(view) for view in views(whole) if not self._knows(view)]

    def beat(self) -> list[str]:
        """All say that they are there, and that nothing changed."""
        return [self._tell(view) for view in list(self.told.values())]

    def _knows(self, view: Snapshot) -> bool:
        told = self.told.get(view.collector.id)
        return told is not None and told.facts == view.facts

    def _tell(self, view: Snapshot) -> str:
        who, now = view.collector.id, self.clock()
        told = self.told.get(who)
        # By the clock, so that a demo that is started again goes on above its last one.
        sequence = max(int(now.timestamp() * 1000), told.sequence + 1 if told else 0)
        self.told[who] = view = replace(view, sequence=sequence, observed_at=now)
        if told is not None and now - self.complete_at[who] < COMPLETE_EVERY:
            return self.send(news(told, view))
        self.complete_at[who] = now
        return self.send(view)
