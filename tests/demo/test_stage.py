"""The stage: acts at their time, what the service says to them, and heartbeats in between."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from gsid_service.demo import stage
from gsid_service.demo.network import network
from gsid_service.demo.play import Act, Kind, Slot, Values
from gsid_service.demo.remote import Remote
from gsid_service.demo.stage import Played, Stage
from gsid_service.records import Fact, Snapshot
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF
from gsid_service.simulate.topologies import real

WHOLE = network("abilene", real("topozoo/Abilene"), 0)
ROUTE = next(f for f in WHOLE.facts if f.predicate == BGP_ROUTE.name)
SLOT: Slot = (ROUTE.key, LOCAL_PREF.name)
WRONG, RIGHT = {SLOT: 80}, {SLOT: ROUTE.params[LOCAL_PREF.name]}


class Clock:
    """Time that passes only in sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Watcher(Remote):
    """A service that has an alert whenever the route's local_pref is not as it was."""

    def __init__(self, blind: bool = False, nervous: bool = False) -> None:
        super().__init__("http://service", WHOLE.network)
        self.blind, self.nervous = blind, nervous
        self.sent: list[Snapshot] = []
        self.done: list[str] = []
        self.values: dict[Slot, int] = {}

    def send(self, snapshot: Snapshot) -> str:
        self.sent.append(snapshot)
        self.values |= {(f.key, p): v for f in snapshot.facts for p, v in f.params.items()}
        return f"s{len(self.sent)}"

    def approve(self) -> None:
        self.done.append("approve")

    def state(self, intents: Iterable[Fact]) -> None:
        self.done.append(f"state {len(list(intents))}")

    def announce(self, values: Values, ends_at: datetime, ticket: str, comment: str) -> str:  # noqa: ARG002
        self.done.append(f"announce {ticket}")
        return "c1"

    def status_of(self, change: str) -> str:
        assert change == "c1"
        return "applied"

    def until_scored(self, snapshot: str) -> None:
        assert snapshot == f"s{len(self.sent)}", "the newest is waited for"

    def alerts(self) -> list[dict[str, Any]]:
        wrong = self.values[SLOT] != RIGHT[SLOT]
        fact = {"predicate": ROUTE.predicate, "args": list(ROUTE.args)}
        alert = {"id": "a1", "fact": fact, "parameter": LOCAL_PREF.name, "summary": "it is wrong"}
        if self.blind or not (wrong or self.done.count("seen")):
            return []
        self.done.append("seen")
        return [alert | {"status": "firing" if wrong or self.nervous else "resolved"}]


def played(remote: Watcher, *acts: Act) -> tuple[list[Played], list[str]]:
    said: list[str] = []
    clock = Clock()
    on = Stage(remote, WHOLE, said.append, clock, clock.sleep)
    on.open(())
    return list(on.play(acts)), said


def test_a_mistake_is_found_and_its_repair_resolved() -> None:
    done, said = played(
        Watcher(),
        Act(20, Kind.MISTAKE, "typo", WRONG),
        Act(50, Kind.REPAIRED, "repaired", RIGHT),
    )
    assert [well for _, well in done] == [True, True]
    assert said == [
        "20 s: typo",
        "20 s: GSID: it is wrong http://service/alerts/a1",
        "50 s: repaired",
        "50 s: GSID: it is wrong http://service/alerts/a1",
    ]


def test_a_mistake_that_is_not_found_is_waited_for_and_said() -> None:
    done, said = played(Watcher(blind=True), Act(20, Kind.MISTAKE, "typo", WRONG))
    assert [well for _, well in done] == [False]
    assert said[-1] == "81 s: GSID did not find it in 60 s"


def test_what_is_late_makes_all_that_follows_late() -> None:
    acts = (Act(20, Kind.MISTAKE, "typo", WRONG), Act(30, Kind.APPROVED, "approved"))
    _, said = played(Watcher(blind=True), *acts)
    assert said[-1] == "81 s: approved"
    later = (*acts, Act(40, Kind.APPROVED, "approved again"))
    _, said = played(Watcher(blind=True), *later)
    assert said[-1] == "91 s: approved again"


def test_silence_about_what_was_meant_is_said() -> None:
    key = next(f.key for f in WHOLE.facts if f.predicate == BGP_ROUTE.name and f != ROUTE)
    meant = Act(5, Kind.RETUNED, "re-tuned", {(key, LOCAL_PREF.name): 300})
    done, said = played(Watcher(), meant)
    assert done == [Played(meant, True)]
    assert said == ["5 s: re-tuned", "5 s: GSID is silent: this was meant"]


def test_an_alert_about_what_was_meant_is_no_silence() -> None:
    done, said = played(Watcher(), Act(5, Kind.RETUNED, "re-tuned", WRONG))
    assert [well for _, well in done] == [False]
    assert said == ["5 s: re-tuned", "5 s: GSID: it is wrong http://service/alerts/a1"]


def test_a_change_is_announced_before_it_is_made() -> None:
    remote = Watcher(blind=True)
    change = Act(5, Kind.ANNOUNCED, "swapped", WRONG, "CHG-1", 15, (ROUTE,))
    done, said = played(remote, change, Act(15, Kind.OVER, "over", ticket="CHG-1"))
    assert [well for _, well in done] == [True, True]
    assert remote.done == ["approve", "state 0", "announce CHG-1", "state 1"]
    assert said[-1] == "15 s: GSID: CHG-1 is applied"
    collectors = len({s.collector for s in remote.sent})
    assert len(remote.sent) == collectors + 1 + collectors, "all speak after the window"


@pytest.mark.parametrize(("rest", "beats"), [(29, 0), (31, 1), (95, 3)])
def test_collectors_say_that_they_are_there(rest: float, beats: int) -> None:
    remote = Watcher()
    played(remote, Act(rest, Kind.APPROVED, "approved"))
    collectors = len({s.collector for s in remote.sent})
    assert stage.BEAT_SECONDS == 30
    assert len(remote.sent) == (1 + beats) * collectors
