"""Plays a script against a service in real time, and tells what happens and what it says to it."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from gsid_service.demo.collectors import Collectors
from gsid_service.demo.network import network
from gsid_service.demo.play import Act, Kind, Script, Slot, Values, configured, sampled
from gsid_service.demo.remote import Remote
from gsid_service.records import ChangeStatus, Fact, FactKey, Snapshot, Status
from gsid_service.schema import NETWORK, ROUTE_REFLECTOR, ROUTER
from gsid_service.simulate.topologies import Topology

BEAT_SECONDS = 30.0  # after which each collector says that it is there
FOUND_WITHIN_SECONDS = 60.0
LOOK_SECONDS = 1.0


class Played(NamedTuple):
    """An act, and whether the service did with it as it should."""

    act: Act
    well: bool


class Stage:
    """The network as it is, its collectors, and the alerts as they were last seen."""

    def __init__(
        self,
        remote: Remote,
        whole: Snapshot,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.remote, self.whole, self.tell = remote, whole, tell
        self.clock, self.sleep = clock, sleep
        self.collectors = Collectors(remote.send)
        self.alerts: dict[str, str] = {}  # the status of each
        self.changes: dict[str, str] = {}  # the id of each that was announced, by its ticket
        self.opened = self.beaten = clock()

    def open(self, wanted: Iterable[Fact]) -> None:
        """The first views; these are approved, and what is wanted of the network is stated."""
        snapshots = self.collectors.observe(self.whole)
        self.remote.approve()
        self.remote.state(wanted)
        self.remote.until_scored(snapshots[-1])
        self.alerts = {alert["id"]: alert["status"] for alert in self.remote.alerts()}
        self.opened = self.beaten = self.clock()

    def play(self, acts: Iterable[Act]) -> Iterator[Played]:
        """One act after another, each at its time; what is late makes all that follows late."""
        begun = self.opened
        for act in acts:
            self._rest(begun + act.at)
            begun = max(begun, self.clock() - act.at)
            self._say(act.told)
            yield Played(act, self._perform(act))

    def _rest(self, until: float) -> None:
        while (now := self.clock()) < until:
            if now >= self.beaten + BEAT_SECONDS:
                self.beaten = now
                self.collectors.beat()
                self._firing()
            else:
                self.sleep(min(until, self.beaten + BEAT_SECONDS) - now)

    def _perform(self, act: Act) -> bool:
        match act.kind:
            case Kind.RETUNED:
                return self._configure_quietly(act.values)
            case Kind.ANNOUNCED:
                self._announce(act)
                return self._configure_quietly(act.values)
            case Kind.OVER:
                return self._close(act.ticket)
            case Kind.APPROVED:
                self.remote.approve()
                return True
            case Kind.MISTAKE:
                self._configure(act.values)
                return self._until(lambda: self._is_found(act.values), "did not find it")
            case Kind.REPAIRED:
                self._configure(act.values)
                return self._until(lambda: not self._is_found(act.values), "did not resolve it")

    def _configure(self, values: Values) -> None:
        """Change the network; whoever sees it tells the service, and that looks at it."""
        self.whole = configured(self.whole, values)
        self.remote.until_scored(self.collectors.observe(self.whole)[-1])

    def _configure_quietly(self, values: Values) -> bool:
        before = self._firing()
        self._configure(values)
        is_silent = self._firing() <= before
        if is_silent:
            self._say("GSID is silent: this was meant")
        return is_silent

    def _announce(self, act: Act) -> None:
        ends_at = datetime.now(UTC) + timedelta(seconds=act.until - act.at)
        self.changes[act.ticket] = self.remote.announce(act.values, ends_at, act.ticket, act.told)
        self.remote.state(act.wanted)

    def _close(self, ticket: str) -> bool:
        """A change is closed once all collectors have spoken after its window."""
        self.remote.until_scored(self.collectors.beat()[-1])
        status = self.remote.status_of(self.changes[ticket])
        self._say(f"GSID: {ticket} is {status}")
        return status == ChangeStatus.APPLIED.value

    def _is_found(self, values: Values) -> bool:
        return not self._firing().isdisjoint(values)

    def _firing(self) -> set[Slot]:
        """The values about which there are alerts; what is new of these is told."""
        firing: set[Slot] = set()
        for alert in self.remote.alerts():
            if alert["status"] != Status.RESOLVED.value:
                key = FactKey(alert["fact"]["predicate"], tuple(alert["fact"]["args"]))
                firing.add((key, alert["parameter"]))
            if alert["status"] != self.alerts.get(alert["id"]):
                self._say(f"GSID: {alert['summary']} {self.remote.page_of(alert['id'])}")
            self.alerts[alert["id"]] = alert["status"]
        return firing

    def _until(self, done: Callable[[], bool], otherwise: str) -> bool:
        until = self.clock() + FOUND_WITHIN_SECONDS
        while not done():
            if self.clock() > until:
                self._say(f"GSID {otherwise} in {FOUND_WITHIN_SECONDS:.0f} s")
                return False
            self.sleep(LOOK_SECONDS)
        return True

    def _say(self, what: str) -> None:
        self.tell(f"{self.clock() - self.opened:.0f} s: {what}")


def perform(
    remote: Remote,
    topology: Topology,
    seed: int,
    mistake_after: float,
    every: float,
    tell: Callable[[str], None],
) -> Iterator[Played]:
    """A network with its collectors at a service, and all that happens to it."""
    whole = network(remote.network, topology, seed)
    wanted = sampled(whole, seed)
    stage = Stage(remote, whole, tell)
    stage.open(wanted)
    told = Counter(entity.kind for entity in whole.entities)
    reflectors, routers = (told[kind.name] for kind in (ROUTE_REFLECTOR, ROUTER))
    tell(
        f"{topology.name}: {reflectors + routers} routers, {reflectors} of them reflectors; "
        f"{told[NETWORK.name]} destinations; {len(stage.collectors.told)} collectors; "
        f"{len(wanted)} intents"
    )
    tell(f"The console is at {remote.url}/ and this network at {remote.page}.")
    tell(f"A mistake comes after {mistake_after:g} s, and then every {every:g} s. Ctrl-C ends it.")
    yield from stage.play(Script(whole, wanted, seed).acts(mistake_after, every))
