"""A network's people: they change it, announced or not, make mistakes, and react to pages."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from time import time
from typing import Any

from gsid_service.demo.remote import Remote
from gsid_service.ingest.wire import dump_snapshot
from gsid_service.records import Snapshot
from gsid_service.simulate.designs import Design
from tests.fault.soak.agenda import Agenda, days, hours
from tests.fault.soak.books import PAGED, RIGHT, Books, Page, slot_of
from tests.fault.soak.collecting import Collecting, Counts
from tests.fault.soak.life import Life, Slot, values_of
from tests.flow.network import views

INSIDE, OUTSIDE = "igp", "bgp"
ANNOUNCED, APPROVED, NEVER = "announced", "approved", "never approved"
SHARES = {ANNOUNCED: 0.45, APPROVED: 0.4, NEVER: 0.15}
CHANGE_EVERY, MISTAKE_EVERY, AUDIT_EVERY = days(1), days(2.5), days(2)
AHEAD, WINDOW = (hours(1), hours(6)), (hours(1), hours(3))
APPROVED_AFTER = (hours(2), hours(12))
REACTS_AFTER = (hours(1 / 12), hours(1))  # to a page
LOOKS_AFTER = (hours(2), hours(8))  # at an alert that does not page
AGAIN = hours(1 / 3)  # before something that cannot be done yet is tried again
CHECKED = hours(1 / 3)  # between putting things right in an audit and approving them


@dataclass
class Operator:
    """The people of one network, and its collectors."""

    life: Life
    remote: Remote
    agenda: Agenda
    books: Books
    rng: Random
    counts: Counts
    is_busy: bool = False  # with a change

    def __post_init__(self) -> None:
        self.collecting = [
            Collecting(
                self.life.name,
                name,
                self.agenda,
                Random(self.rng.random()),
                self._send,
                self.counts,
            )
            for name in (INSIDE, OUTSIDE)
        ]

    # The beginning

    def open(self) -> None:
        """The first views are approved, and what is wanted is stated."""
        self.show()
        compared = {"always_compare_med": True}
        self.remote.client.patch(self._url(""), json=compared).raise_for_status()
        self.remote.approve()
        self.remote.state(self.life.wanted)

    def live(self, pace: float) -> None:
        """Go on by itself; a pace above 1 makes changes and mistakes so much more frequent."""
        for one in self.collecting:
            one.live()
        self.agenda.by_chance(CHANGE_EVERY / pace, self.change, self.rng)
        self.agenda.by_chance(MISTAKE_EVERY / pace, self.err, self.rng)
        first = self.rng.uniform(0, AUDIT_EVERY)
        self.agenda.after(first, lambda: self.agenda.every(AUDIT_EVERY, self.audit))

    def show(self) -> None:
        """The network changed; whoever sees it tells the service."""
        for one, facts in zip(self.collecting, views(self.life.facts), strict=True):
            one.see(self.life.design.entities, facts)

    def _send(self, snapshot: Snapshot) -> None:
        self.remote.send(snapshot)
        for one in self.collecting:
            view = one.known()
            if one.collector == snapshot.collector and view is not None:
                facts = tuple(stated.fact for stated in view.facts.values())
                self.books.told(self.life.name, values_of(facts), time())

    # Meant changes

    def change(self) -> None:
        if self.is_busy:
            return
        how = self.rng.choices(list(SHARES), list(SHARES.values()))[0]
        if how == ANNOUNCED:
            self._announce()
        else:
            kind, design = self.life.plan()
            self._apply(kind, design, how)
            if how == APPROVED:
                self.agenda.after(self.rng.uniform(*APPROVED_AFTER), self.approve)

    def _apply(self, kind: str, design: Design, how: str) -> None:
        """The intents that the change contradicts are withdrawn before: it is meant."""
        respected = self.life.respected(design)
        if respected != self.life.wanted:
            self.remote.state(respected)
        self.life.wanted = respected
        self.life.adopt(kind, design, how, time())
        self.books.changes[f"{kind}, {how}"] += 1
        self.books.write("change", time(), network=self.life.name, kind=kind, how=how)
        self.show()

    def _announce(self) -> None:
        """For a window ahead; nothing else is planned until it is applied."""
        kind, design = self.life.plan()
        ahead, window = self.rng.uniform(*AHEAD), self.rng.uniform(*WINDOW)
        begins_at = datetime.now(UTC) + timedelta(seconds=ahead)
        announcement = {
            "ticket": f"CHG-{self.rng.randrange(10**6)}",
            "begins_at": begins_at.isoformat(),
            "ends_at": (begins_at + timedelta(seconds=window)).isoformat(),
        }
        answer = self.remote.client.post(
            self._url("/changes"), json=announcement | self._announced(design)
        )
        answer.raise_for_status()
        self.is_busy = True

        def apply() -> None:
            self.is_busy = False
            self._apply(kind, design, ANNOUNCED)

        self.agenda.after(ahead + self.rng.uniform(0.1, 0.7) * window, apply)

    def _announced(self, design: Design) -> dict[str, Any]:
        """New values; where facts are new, the whole view of who will see them."""
        before, after = values_of(self.life.design.facts), values_of(design.facts)
        if before.keys() == after.keys():
            changes = [
                {
                    "fact": {"predicate": key.predicate, "args": list(key.args)},
                    "parameter": parameter,
                    "value": after[key, parameter],
                }
                for key, parameter in after
                if before[key, parameter] != after[key, parameter]
            ]
            return {"changes": changes}
        return {"candidate": dump_snapshot(self._candidate(design))}

    def _candidate(self, design: Design) -> Snapshot:
        facts = views(design.facts)[1]
        there = {arg for fact in facts for arg in fact.args}
        return Snapshot(
            self.life.name,
            self.collecting[1].collector,
            10**9,
            datetime.now(UTC),
            True,
            tuple(e for e in design.entities if e.id in there),
            tuple(facts),
        )

    def approve(self, and_state: bool = False) -> None:
        """As it is, once everything is told; not while a page about something wrong is open.
        Intents can be stated of what is approved."""
        if not self._is_told() or self._is_paged():
            self.agenda.after(AGAIN, lambda: self.approve(and_state))
            return
        self.remote.approve()
        self.books.write("approval", time(), network=self.life.name)
        if and_state:
            self.life.restate()
            self.remote.state(self.life.wanted)

    def _is_told(self) -> bool:
        there = {fact.key: fact.params for fact in self.life.facts}
        known: dict[Any, Any] = {}
        for one in self.collecting:
            view = one.known()
            known |= {k: s.fact.params for k, s in view.facts.items()} if view else {}
        return known == there

    def _is_paged(self) -> bool:
        return any(
            alert["network"] == self.life.name
            and alert["severity"] in PAGED
            and slot_of(alert) in self.life.wrong
            for alert in self.books.firing.values()
        )

    # Mistakes

    def err(self) -> None:
        for mistake in self.life.slip(time()):
            self.books.mistakes.append(mistake)
            self.books.write(
                "mistake",
                mistake.made_at,
                network=mistake.network,
                fact=str(mistake.slot[0]),
                parameter=mistake.slot[1],
                right=mistake.right,
                wrong=mistake.wrong,
                kind=mistake.kind,
                harmful=mistake.harmful,
            )
        self.show()

    def repair(self, slots: list[Slot], how: str) -> None:
        standing = [slot for slot in slots if slot in self.life.wrong]
        for slot in standing:
            self.life.end(slot, how, time())
            self.books.write("repair", time(), network=self.life.name, fact=str(slot[0]), how=how)
        if standing:
            self.show()

    def answer(self, page: Page, slot: Slot) -> None:
        """Look at a page some time after it came: put the value right, or say that it is."""

        def react() -> None:
            if page.about == RIGHT:
                self.remote.client.post(
                    f"{self.remote.url}/api/v1/alerts/{page.alert}/verdict",
                    json={"alarm": "false"},
                ).raise_for_status()
                self.approve()
            else:
                self.repair([slot], "paged")

        self.agenda.after(self.rng.uniform(*REACTS_AFTER), react)

    def notice(self, slot: Slot) -> None:
        """An alert that does not page is looked at when there is time."""
        seconds = self.rng.uniform(*LOOKS_AFTER)
        self.agenda.after(seconds, lambda: self.repair([slot], "alerted"))

    def audit(self) -> None:
        """Everything is compared with the design, put right and approved; intents are stated."""
        self.repair(list(self.life.wrong), "audit")
        self.agenda.after(CHECKED, lambda: self.approve(and_state=True))

    def _url(self, path: str) -> str:
        return f"{self.remote.url}{self.remote.path}{path}"
