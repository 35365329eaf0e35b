"""Mistakes and meant changes on real routers: what is told, how soon, and whether it is true.

The service and the collector are processes of their own; what they say is held against the routers'
own forwarding tables. The times of each case are written to `build/lab.md`.
"""

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.flow.server import PROGRAM, ROOT, Server, environment
from tests.flow.server import running as serving
from tests.lab import plan
from tests.lab.design import PREFIXES, both_ways, peer, usual
from tests.lab.lab import Lab, Table, running

API = "/api/v1"
NETWORK = f"{API}/networks/lab"
WITHIN = 60.0
QUIET = 6.0  # three turns of every collector, and the service has nothing to add
FORWARDING_SECONDS = 10.0
FACTS = 30 + 17 + 5 + 18 + 60  # links, sessions inside and outside, routes, next hops


@dataclass
class Noc:
    """A lab that is watched."""

    lab: Lab
    server: Server
    log: Path  # of the collector
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def get(self, path: str, **query: Any) -> Any:
        return self.server.client.get(path, params=query).raise_for_status().json()

    def alerts(self, status: str = "firing") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"{API}/alerts", status=status)["items"]
        return found

    def paging(self) -> list[dict[str, Any]]:
        """What somebody would be paged for."""
        return [alert for alert in self.alerts() if alert["severity"] != "minor"]

    def facts(self) -> int:
        found: int = self.get(NETWORK)["facts"]
        return found

    def approve(self) -> None:
        self.server.client.put(f"{NETWORK}/baseline", json={"now": True}).raise_for_status()

    def want(self) -> None:
        """State what is so now: the derived intents, and every next hop of every router."""
        derived = self.get(f"{NETWORK}/intents", limit=1000)["items"]
        stated = [{key: one[key] for key in ("predicate", "args", "holds")} for one in derived]
        stated += [
            {"predicate": "fwd", "args": [router, prefix, hop], "holds": True}
            for (router, prefix), hops in self.lab.tables().items()
            for hop in hops
        ]
        unique = {(one["predicate"], *one["args"]): one for one in stated}
        wanted = {"intents": [*unique.values()]}
        self.server.client.put(f"{NETWORK}/intents", json=wanted).raise_for_status()

    def announce(self, ticket: str, changes: list[dict[str, Any]]) -> None:
        ends_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600))
        wanted = {"ticket": ticket, "changes": changes, "ends_at": ends_at}
        self.server.client.post(f"{NETWORK}/changes", json=wanted).raise_for_status()

    def accept(self) -> None:
        """End the change that was announced last: what is so now is approved, and wanted."""
        last = self.get(f"{NETWORK}/changes")["items"][0]["id"]
        self.approve()
        self.want()
        self.server.client.delete(f"{NETWORK}/changes/{last}").raise_for_status()

    def told(self, case: str, alert: dict[str, Any], seconds: float) -> None:
        what = f"{alert['parameter']} of {named_text(alert['fact'])}"
        moved = str(len(alert["moved"]))
        self.rows.append((case, what, alert["severity"], f"{seconds:.1f}", moved))

    def until(self, holds: Callable[[], Any], what: str) -> float:
        """Seconds until something holds."""
        begun = time.monotonic()
        while not holds():
            if time.monotonic() > begun + WITHIN:
                shown = [(a["summary"], a["score"]) for a in self.alerts()]
                raise AssertionError(f"{what}: not in {WITHIN} s; alerts: {shown}")
            time.sleep(0.2)
        return time.monotonic() - begun

    def quiet(self) -> None:
        """What fires resolves, and nothing follows it."""
        self.until(lambda: not self.alerts(), "no alert")
        self.silent()

    def silent(self) -> None:
        """Nobody is paged, for as long as it takes to be sure."""
        deadline = time.monotonic() + QUIET
        while time.monotonic() < deadline:
            assert [alert["summary"] for alert in self.paging()] == []
            time.sleep(0.5)


@pytest.fixture(scope="module")
def noc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noc]:
    folder = tmp_path_factory.mktemp("noc")
    database = f"sqlite:///{folder / 'gsid.db'}"
    patience = {"GSID_VERIFY_FORWARDING_SECONDS": str(FORWARDING_SECONDS)}
    with running() as lab, serving(database, folder, **patience) as server:
        lab.settle()
        settings = folder / "collect.toml"
        settings.write_text(
            lab.settings(server.url, folder / "state", interval_seconds=2, heartbeat_seconds=10)
        )
        command = [*PROGRAM, "collect", "--config", str(settings)]
        with (
            (folder / "collect.log").open("wb") as log,
            subprocess.Popen(command, env=environment(), stderr=log) as collector,
        ):
            try:
                watched = Noc(lab, server, folder / "collect.log")
                watched.until(lambda: knows(server) and watched.facts() == FACTS, "the whole lab")
                watched.approve()
                watched.want()
                watched.quiet()
                yield watched
            finally:
                collector.terminate()
        report(watched.rows)


def knows(server: Server) -> bool:
    return server.client.get(NETWORK).status_code == 200


def report(rows: list[tuple[str, ...]]) -> None:
    head = ("case", "told", "severity", "seconds", "moved")
    lines = ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]
    file = ROOT / "build" / "lab.md"
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n")


# Mistakes


@dataclass(frozen=True)
class Mistake:
    """What somebody types on a router, what is wrong by it, and how it is put right again."""

    name: str
    router: str
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    fact: tuple[str, ...]
    parameter: str
    observed: int
    expected: int


def named(fact: tuple[str, ...]) -> dict[str, Any]:
    return {"predicate": fact[0], "args": list(fact[1:])}


def named_text(fact: dict[str, Any]) -> str:
    return f"{fact['predicate']}({', '.join(fact['args'])})"


def entry(name: str, prefix: str) -> str:
    return f"route-map {plan.map_name(peer(name), prefix)} permit {plan.entry_number(prefix)}"


def route(name: str, prefix: str) -> tuple[str, ...]:
    return ("bgp_route", peer(name).entity, prefix)


FIRST, SECOND, THIRD, *_ = PREFIXES
V6 = "2001:db8:1::/48"
MISTAKES = (
    Mistake(
        "a wrong local preference",
        "R3",
        (entry("X1", FIRST), "set local-preference 20"),
        (entry("X1", FIRST), "set local-preference 200"),
        route("X1", FIRST),
        *("local_pref", 20, 200),
    ),
    Mistake(
        "a wrong local preference, IPv6",
        "R3",
        (entry("X1", V6), "set local-preference 20"),
        (entry("X1", V6), "set local-preference 200"),
        route("X1", V6),
        *("local_pref", 20, 200),
    ),
    Mistake(
        "an extra AS-path prepend",
        "R8",
        (entry("X4", THIRD), "set as-path prepend 65102 65102 65102"),
        (entry("X4", THIRD), "no set as-path prepend"),
        route("X4", THIRD),
        *("as_path_length", 5, 2),
    ),
    Mistake(
        "a wrong MED",
        "R3",
        (entry("X1", SECOND), "set metric 100"),
        (entry("X1", SECOND), "set metric 10"),
        route("X1", SECOND),
        *("med", 100, 10),
    ),
    Mistake(
        "a wrong OSPF cost: a digit lost",
        "R5",
        ("interface to-R6", "ip ospf cost 3", "ipv6 ospf6 cost 3"),
        ("interface to-R6", "ip ospf cost 35", "ipv6 ospf6 cost 35"),
        ("connected", "R5", "R6"),
        *("ospf_weight", 3, 35),
    ),
    Mistake(
        "an OSPF cost that differs between the two ends: a digit too many",
        "R7",
        ("interface to-R3", "ip ospf cost 200", "ipv6 ospf6 cost 200"),
        ("interface to-R3", "ip ospf cost 20", "ipv6 ospf6 cost 20"),
        ("connected", "R7", "R3"),
        *("ospf_weight", 200, 20),
    ),
)


def difference(before: Table, after: Table) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    """Every router and prefix whose next hops moved."""
    return {p: (set(before[p]), set(after[p])) for p in before if before[p] != after[p]}


def claimed(alert: dict[str, Any]) -> dict[tuple[str, str], tuple[set[str], set[str]]]:
    return {
        (move["router"], move["network"]): (
            set((move["before"] or "").split(", ")),
            set((move["after"] or "").split(", ")),
        )
        for move in alert["moved"]
    }


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_harmful_mistake_is_told_and_what_is_told_is_true(noc: Noc, mistake: Mistake) -> None:
    before = noc.lab.tables()
    noc.lab.configure(mistake.router, *mistake.wrong)
    fact = named(mistake.fact)

    def about() -> list[dict[str, Any]]:
        return [a for a in noc.paging() if (a["fact"], a["parameter"]) == (fact, mistake.parameter)]

    seconds = noc.until(about, mistake.name)
    after = noc.lab.settle()
    (alert,) = noc.paging()
    assert (alert["fact"], alert["parameter"]) == (fact, mistake.parameter)
    assert (alert["observed"], alert["expected"]) == (mistake.observed, mistake.expected)
    assert claimed(alert) == difference(before, after)
    assert alert["moved"], "it is harmful"
    noc.told(mistake.name, alert, seconds)
    noc.lab.configure(mistake.router, *mistake.right)
    noc.quiet()
    assert noc.lab.settle() == before


def test_an_edit_that_is_not_in_operation_is_told_once_it_is(noc: Noc) -> None:
    """FRR with a delay-timer of 0 applies an edited route map only when it is told to."""
    before = noc.lab.tables()
    noc.lab.configure("R3", "bgp route-map delay-timer 0")
    noc.lab.configure("R3", entry("X1", FIRST), "set local-preference 20")
    noc.quiet()
    assert noc.lab.tables() == before, "it is configured, and nothing moved"
    noc.lab.vtysh("R3", "clear bgp ipv4 unicast * soft in")
    seconds = noc.until(noc.paging, "an edit that takes effect")
    (alert,) = noc.paging()
    assert (alert["parameter"], alert["observed"]) == ("local_pref", 20)
    assert claimed(alert) == difference(before, noc.lab.settle())
    noc.told("an edit, from its taking effect", alert, seconds)
    noc.lab.configure("R3", "bgp route-map delay-timer 1")
    noc.lab.configure("R3", entry("X1", FIRST), "set local-preference 200")
    noc.lab.vtysh("R3", "clear bgp ipv4 unicast * soft in")
    noc.quiet()


def test_a_static_route_in_the_way_is_told(noc: Noc) -> None:
    """Values that are right, and a router that forwards otherwise."""
    before = noc.lab.tables()
    static = f"ip route {FIRST} {plan.addresses('R8', 'R7')[0]}"
    noc.lab.configure("R7", static)
    seconds = noc.until(noc.paging, "a static route")
    (alert,) = noc.paging()
    assert alert["parameter"] == "next_hop"
    assert claimed(alert) == difference(before, noc.lab.settle())
    noc.told("a static route in the way", alert, seconds)
    noc.lab.configure("R7", f"no {static}")
    noc.quiet()


def test_a_session_that_flaps_is_told_and_no_value_is_blamed(noc: Noc) -> None:
    before = noc.lab.tables()
    neighbours = [f"neighbor {address}" for address in plan.addresses("X1", "R3")]
    for _ in range(2):
        noc.lab.configure("R3", "router bgp 65000", *(f"{n} shutdown" for n in neighbours))
        seconds = noc.until(noc.paging, "a session that is down")
        after = noc.lab.settle()
        noc.until(lambda after=after: tells(noc, before, after), "all that moved")  # type: ignore[misc]
        (alert,) = noc.paging()
        assert (alert["fact"], alert["observed"]) == (named(("ebgp", "R3", "AS65101@R3")), "down")
        noc.lab.configure("R3", "router bgp 65000", *(f"no {n} shutdown" for n in neighbours))
        noc.until(lambda: not noc.alerts(), "the session is up again")
    noc.told("a session that flaps", alert, seconds)
    noc.quiet()
    flapped = noc.get(f"{API}/alerts/{alert['id']}")
    assert flapped["flapping"]
    assert noc.lab.settle() == before


def tells(noc: Noc, before: Table, after: Table) -> bool:
    return [claimed(alert) for alert in noc.paging()] == [difference(before, after)]


def test_a_router_that_restarts_is_read_again(noc: Noc) -> None:
    before, logged = noc.lab.tables(), len(noc.log.read_text())

    def said(what: str) -> bool:
        return f"R4: {what}" in noc.log.read_text()[logged:]

    noc.lab.kill("R4")
    noc.until(lambda: said("cannot be read"), "a router that is away")
    noc.lab.start("R4")
    noc.until(lambda: said("is read again"), "a router that is back")
    noc.until(lambda: noc.facts() == FACTS and not noc.alerts(), "all that it told before")
    # Its neighbours may leave it aside for longer than `settle` watches.
    noc.until(lambda: noc.lab.tables() == before, "traffic as it was")


# Changes that are meant


def link(start: str, end: str, cost: int) -> dict[str, Any]:
    fact = {"predicate": "connected", "args": [start, end]}
    return {"fact": fact, "parameter": "ospf_weight", "value": cost}


def test_a_router_that_is_drained_as_announced_pages_nobody(noc: Noc) -> None:
    before = noc.lab.tables()
    links = [pair for pair in both_ways() if "R7" in pair]

    def cost(costs: dict[tuple[str, str], int]) -> None:
        noc.announce("CHG-1", [link(*pair, costs[pair]) for pair in links])
        for pair in links:
            noc.lab.set_cost(*pair, costs[pair])

    cost(dict.fromkeys(links, 30_000))
    after = noc.lab.settle()
    assert not [pair for pair, hops in after.items() if "R7" in hops and pair[0] != "R7"]
    noc.silent()
    noc.accept()
    noc.silent()
    cost(usual().costs)
    assert noc.lab.settle() == before
    noc.silent()
    noc.accept()


def test_a_prefix_that_is_moved_to_another_gateway_as_announced_pages_nobody(noc: Noc) -> None:
    before = noc.lab.tables()

    def prefer(at_r3: int, at_r8: int) -> None:
        values = {"X1": at_r3, "X5": at_r8}
        changes = [
            {"fact": named(route(name, FIRST)), "parameter": "local_pref", "value": value}
            for name, value in values.items()
        ]
        noc.announce("CHG-2", changes)
        for name, value in values.items():
            wanted = f"set local-preference {value}"
            noc.lab.configure(peer(name).gateway, entry(name, FIRST), wanted)

    prefer(at_r3=90, at_r8=200)
    noc.until(lambda: noc.lab.tables()["R8", FIRST] == {"AS65103@R8"}, "the other gateway")
    noc.silent()
    noc.accept()
    noc.silent()
    prefer(at_r3=200, at_r8=90)
    noc.until(lambda: noc.lab.tables() == before, "the first gateway")
    noc.silent()
