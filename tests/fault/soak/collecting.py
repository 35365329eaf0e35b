"""A network's two collectors: what each sees goes to the service, late, doubled and out of order.

Each tells what is new at once and all it sees at an interval, and is silent now and then. What the
service makes of what it has taken so far is known, so that nobody blames it for what it was not
told.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from gsid_service.assemble.merge import View, extend
from gsid_service.demo.collectors import news
from gsid_service.records import Collector, Entity, Fact, Snapshot
from gsid_service.schema import ROUTE_REFLECTOR
from tests.fault.soak.agenda import Agenda, days, hours

COMPLETE_EVERY = hours(1)
LATE, LATE_BY = 0.05, hours(1 / 3)  # how often, and by how much at most
DOUBLED = 0.03
SILENT_EVERY, SILENT_FOR = days(2), (hours(1), hours(6))
Send = Callable[[Snapshot], None]


@dataclass
class Counts:
    """What happened to snapshots on their way."""

    sent: int = 0
    late: int = 0
    doubled: int = 0
    overtaken: int = 0  # came in after one that was sent later
    silences: int = 0


class Collecting:
    """One collector of one network."""

    def __init__(
        self,
        network: str,
        name: str,
        agenda: Agenda,
        rng: random.Random,
        send: Send,
        counts: Counts,
    ) -> None:
        self.network, self.collector = network, Collector(name, ROUTE_REFLECTOR.name)
        self.agenda, self.rng, self.send, self.counts = agenda, rng, send, counts
        self.sequences = count(1)
        self.seen = self.told = Snapshot(
            network, self.collector, 0, datetime.now(UTC), True, (), ()
        )
        self.taken: dict[int, Snapshot] = {}  # since the last complete one that the service took
        self.is_silent = False

    def live(self) -> None:
        """Go on by itself from here."""
        every = COMPLETE_EVERY * self.rng.uniform(0.9, 1.1)
        self.agenda.after(self.rng.uniform(0, every), lambda: self.agenda.every(every, self.beat))
        self.agenda.by_chance(SILENT_EVERY, self._fall_silent, self.rng)

    def see(self, entities: tuple[Entity, ...], facts: list[Fact]) -> None:
        """The network as it is now; what is new of it is told."""
        there = {arg for fact in facts for arg in fact.args}
        named = tuple(entity for entity in entities if entity.id in there)
        self.seen = replace(self.seen, entities=named, facts=tuple(facts))
        if not self.is_silent and self.seen.facts != self.told.facts:
            before = self.told
            self._tell(news(before, self._numbered()) if before.sequence else self._numbered())

    def beat(self) -> None:
        """Tell all of it."""
        if not self.is_silent:
            self._tell(self._numbered())

    def settle(self) -> None:
        """Tell all of it at last, whatever was silent, late or lost."""
        self.is_silent = False
        self._deliver(self._numbered())

    def _numbered(self) -> Snapshot:
        now = datetime.now(UTC)
        self.told = replace(self.seen, sequence=next(self.sequences), observed_at=now)
        return self.told

    def _fall_silent(self) -> None:
        self.is_silent = True
        self.counts.silences += 1
        self.agenda.after(self.rng.uniform(*SILENT_FOR), self._speak)

    def _speak(self) -> None:
        self.is_silent = False
        self.beat()

    def _tell(self, snapshot: Snapshot) -> None:
        if self.told.sequence > 1 and self.rng.random() < LATE:
            self.counts.late += 1
            self.agenda.after(self.rng.uniform(0, LATE_BY), lambda: self._deliver(snapshot))
        else:
            self._deliver(snapshot)
        if self.rng.random() < DOUBLED:
            self.counts.doubled += 1
            self.agenda.after(self.rng.uniform(0, LATE_BY), lambda: self.send(snapshot))

    def _deliver(self, snapshot: Snapshot) -> None:
        self.counts.sent += 1
        self.counts.overtaken += snapshot.sequence < max(self.taken, default=0)
        self.taken[snapshot.sequence] = snapshot
        complete = max((n for n, s in self.taken.items() if s.complete), default=0)
        self.taken = {n: s for n, s in self.taken.items() if n >= complete}
        self.send(snapshot)

    def known(self) -> View | None:
        """What the service can know of this view."""
        view = None
        for number in sorted(self.taken):
            view = extend(view, self.taken[number], "")
        return view
