"""Sources that the large lab does not have, on real routers: BIRD, and FRR by BMP."""

import gzip
import json
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gsid_service.assemble.merge import View, extend
from gsid_service.collect.settings import Router
from gsid_service.collect.source import Sight, SourceError, open_source
from gsid_service.collect.view import everything
from gsid_service.ingest.wire import parse_snapshot
from gsid_service.records import Entity
from tests.collect.making import settings, view
from tests.lab.lab import ROOT, Lab, running
from tests.lab.small import BMP_PORT, COSTS, PREFIX6, PREFIXES, ROUTERS

WITHIN = 60.0
NAMES = {router_id: name for name, router_id in ROUTERS.items()}
FIRST, SECOND = PREFIXES


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with running("small") as started:
        yield started


def read(folder: Path, name: str, kind: str, **options: Any) -> Sight:
    router = Router.model_validate({"name": name, "source": kind, **options})
    return open_source(router, settings(folder, names=NAMES)).read()


def eventually(read: Callable[[], Sight], done: Callable[[Sight], bool]) -> Sight:
    """What a router sees once it sees all that there is."""
    deadline, sight = time.monotonic() + WITHIN, None
    while time.monotonic() < deadline:
        with suppress(SourceError):  # it has only just been started
            sight = read()
            if done(sight):
                return sight
        time.sleep(0.5)
    raise AssertionError(f"not in {WITHIN} s: {sight}")


def stated(sight: Sight) -> dict[str, dict[str, int]]:
    """Its facts as engineers write them, with their parameters."""
    return {str(fact.key): dict(fact.params) for fact in everything(view(sight)).facts}


def test_bird_tells_links_sessions_routes_and_next_hops(lab: Lab, tmp_path: Path) -> None:
    command = ["birdc", "-s", str(lab.folder / "B1" / "bird.ctl")]
    sight = eventually(
        lambda: read(tmp_path, "B1", "bird", command=command),
        lambda sight: len(sight.facts) == len(COSTS) + 3 and len(sight.hops) == 3,
    )
    peering, speaker = "AS65101@B1", 0x0A000001
    usual = {"as_path_length": 1, "origin": 0, "local_pref": 100, "med": 0, "speaker": speaker}
    assert stated(sight) == {
        **{f"connected({a}, {b})": {"ospf_weight": cost} for (a, b), cost in COSTS.items()},
        "ibgp(F2, B1)": {},
        "ibgp(B1, F1)": {},
        f"ebgp(B1, {peering})": {},
        f"bgp_route({peering}, {FIRST})": usual
        | {"local_pref": 200, "med": 7, "as_path_length": 2},
        f"bgp_route({peering}, {SECOND})": usual,
        f"bgp_route({peering}, {PREFIX6})": usual,
        **{f"fwd(B1, {prefix}, {peering})": {} for prefix in (FIRST, SECOND, PREFIX6)},
    }
    assert sight.role == "route_reflector"
    assert Entity("F1", "route_reflector") in sight.entities
    assert Entity("F2", "router") in sight.entities
    assert Entity(peering, "external_as", 65101) in sight.entities


def test_bird_can_tell_its_own_links_alone(lab: Lab, tmp_path: Path) -> None:
    command = ["birdc", "-s", str(lab.folder / "B1" / "bird.ctl")]
    sight = eventually(
        lambda: read(tmp_path, "B1", "bird", command=command, ospf="own"),
        lambda sight: any(fact.predicate == "connected" for fact in sight.facts),
    )
    links = {fact.args for fact in sight.facts if fact.predicate == "connected"}
    assert links <= {("B1", "F1"), ("B1", "F2")}


class Collecting:
    """A collector in a router's namespace; what it says stays in its spool."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.folder = folder
        file = folder / "collect.toml"
        file.write_text(
            'network = "lab"\n[service]\nurl = "http://127.0.0.1:9"\n[collector]\n'
            f'state = "{folder}"\nmetrics_port = 0\n[names]\n'
            + "".join(f'"{router_id}" = "{name}"\n' for router_id, name in NAMES.items())
            + f'[[routers]]\nname = "F1"\nsource = "bmp"\nport = {BMP_PORT}\n'
            'clients = ["10.0.0.3"]\n'
        )
        command = ["-m", "gsid_service", "collect", "--config", str(file)]
        lab.run_in("F1", "env", f"PYTHONPATH={ROOT}", sys.executable, *command)

    def view(self) -> View | None:
        """All that it has said, laid upon each other."""
        if not (self.folder / "spool.db").exists():
            return None
        with sqlite3.connect(f"file:{self.folder / 'spool.db'}?mode=ro", uri=True) as database:
            if not database.execute("SELECT 1 FROM sqlite_master").fetchall():
                return None
            rows = database.execute("SELECT body FROM waiting ORDER BY number").fetchall()
        view = None
        for (body,) in rows:
            view = extend(view, parse_snapshot(gzip.decompress(body)), "s")
        return view


def test_bmp_tells_what_frr_itself_tells_and_follows_it(lab: Lab, tmp_path: Path) -> None:
    collecting = Collecting(lab, tmp_path)
    frr = {"command": lab.command("F1"), "families": ["ipv4", "ipv6"], "ospf": "off"}

    def by_vtysh() -> dict[str, dict[str, int]]:
        facts = stated(read(tmp_path, "F1", "frr", **frr))
        # FRR 8.4 leaves the local preference of external routes out of what it tells by BMP.
        return {
            key: {name: value for name, value in params.items() if name != "local_pref"}
            for key, params in facts.items()
            if not key.startswith("fwd")
        }

    def by_bmp() -> dict[str, dict[str, int]]:
        view = collecting.view()
        return {} if view is None else {str(k): dict(s.fact.params) for k, s in view.facts.items()}

    wait_for_equal(by_vtysh, by_bmp)
    told = by_bmp()
    assert told[f"bgp_route(AS65102@F1, {FIRST})"]["med"] == 40
    assert len(told) == 9, "two sessions inside, two outside, five routes"
    lab.configure("F1", "route-map IN permit 10", "set metric 50")
    wait_for_equal(by_vtysh, by_bmp)
    assert by_bmp()[f"bgp_route(AS65102@F1, {FIRST})"]["med"] == 50
    lab.configure("F1", "router bgp 65000", "neighbor 172.16.2.2 shutdown")
    wait_for_equal(by_vtysh, by_bmp)
    assert "ebgp(F1, AS65103@F1)" not in by_bmp()


def wait_for_equal(one: Callable[[], Any], other: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WITHIN
    time.sleep(6)  # an edit of a route map takes effect 5 s later
    while one() != other() or not one():
        assert time.monotonic() < deadline, json.dumps([one(), other()], indent=1)
        time.sleep(0.5)
