"""The running lab: started and ended, its routers configured, its forwarding tables read."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest

from tests.lab import boot, plan
from tests.lab.design import PEERS, PREFIXES, ROUTERS, Design, both_ways, peer
from tests.waiting import until

ROOT = Path(__file__).parents[2]
NEEDED = ("/usr/lib/frr/zebra", "/usr/sbin/bird", "/usr/bin/unshare")
SETTLE_SECONDS = 60.0
TAKES_EFFECT_SECONDS = 1.5  # after an edit of a route map; the routers wait for 1 s

Table = dict[tuple[str, str], frozenset[str]]  # the next hops of each router for each prefix


def need() -> None:
    """Skip without root or routers; with CI=true that is a failure."""
    missing = [path for path in NEEDED if not Path(path).exists()]
    if os.geteuid() != 0:
        missing.append("root")
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"the lab needs {', '.join(missing)}")
    if missing:
        pytest.skip(f"the lab needs {', '.join(missing)}")


class Lab:
    """Routers in namespaces; each speaker has a folder with its sockets."""

    def __init__(self, folder: Path, boot: IO[bytes]) -> None:
        self.folder, self._boot = folder, boot

    def run_in(self, name: str, *command: str) -> None:
        """Start a command in a speaker's namespace; it ends with the lab at the latest."""
        self._boot.write(json.dumps([name, *command]).encode() + b"\n")
        self._boot.flush()

    def kill(self, name: str) -> None:
        """End all daemons of a router, as a power cut would; over when none of them answers."""
        self.run_in(name, "sh", "-c", f"kill -9 $(cat {self.folder / name}/*.pid)")
        asked = [*self.command(name), "-c", "show version"]
        deadline = time.monotonic() + SETTLE_SECONDS
        while subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            assert time.monotonic() < deadline, f"{name} is still there"
            time.sleep(0.1)

    def start(self, name: str) -> None:
        """Start the daemons of a router again, with the configuration that it was built with."""
        folder = self.folder / name
        for daemon in ("zebra", "ospfd", "ospf6d", "bgpd", "staticd"):
            self.run_in(name, *boot.command(folder, daemon))

    def command(self, name: str) -> list[str]:
        """How a router is spoken to."""
        at = str(self.folder / name)
        return ["vtysh", "--vty_socket", at, "--config_dir", at]

    def vtysh(self, name: str, *commands: str) -> str:
        arguments = [part for command in commands for part in ("-c", command)]
        done = subprocess.run(
            [*self.command(name), *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{name}: {commands}: {done.stdout}{done.stderr}"
        return done.stdout

    def configure(self, name: str, *lines: str) -> None:
        self.vtysh(name, "configure terminal", *lines)

    def apply(self, design: Design) -> None:
        """Bring all routers to a design.

        FRR 8.4's bgpd was once seen to end when its route maps changed; it is started again, as
        watchfrr would.
        """
        _each(ROUTERS, lambda name: self.configure(name, *_lines(name, design)))
        time.sleep(TAKES_EFFECT_SECONDS)
        for name in ROUTERS:
            if not self._has_bgpd(name):
                self.run_in(name, *boot.command(self.folder / name, "bgpd"))
                until(partial(self._has_bgpd, name))
                time.sleep(TAKES_EFFECT_SECONDS)  # it reads its own configuration first
                self.configure(name, *_lines(name, design))

    def _has_bgpd(self, name: str) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.folder / name / "bgpd.vty")) == 0

    def set_cost(self, start: str, end: str, cost: int) -> None:
        at = f"interface {plan.interface(end)}"
        self.configure(start, at, f"ip ospf cost {cost}", f"ipv6 ospf6 cost {cost}")

    def tables(self) -> Table:
        """The routers' own forwarding tables; an interface is named for whom it leads to."""
        found: Table = {}
        for name, routes in zip(ROUTERS, _each(ROUTERS, self._routes), strict=True):
            for prefix in PREFIXES:
                found[name, prefix] = frozenset(_hops(routes.get(prefix, [])))
        return found

    def _routes(self, name: str) -> dict[str, Any]:
        printed = self.vtysh(name, "show ip route json", "show ipv6 route json").lstrip()
        routes: dict[str, Any]
        routes, end = json.JSONDecoder().raw_decode(printed)
        return routes | dict(json.loads(printed[end:]))

    def settle(self, quiet_seconds: float = 2.0) -> Table:
        """Wait until the forwarding tables have not changed for so long."""
        tables, since = self.tables(), time.monotonic()
        deadline = since + SETTLE_SECONDS
        while time.monotonic() < since + quiet_seconds:
            assert time.monotonic() < deadline, "the lab does not settle"
            time.sleep(0.3)
            now = self.tables()
            if now != tables or not all(now.values()):
                tables, since = now, time.monotonic()
        return tables

    def settings(self, url: str, state: Path, **collector: float) -> str:
        """Settings of a collector that reads all routers."""
        lines = ['network = "lab"', "[service]", f'url = "{url}"', "[collector]"]
        lines += [f'state = "{state}"', "metrics_port = 0"]
        lines += [f"{key} = {value}" for key, value in collector.items()]
        lines += ["[names]", *(f'"{plan.router_id(name)}" = "{name}"' for name in ROUTERS)]
        for name in ROUTERS:
            lines += ["[[routers]]", f'name = "{name}"', 'source = "frr"', 'ospf = "own"']
            lines += [f"command = {json.dumps(self.command(name))}", 'families = ["ipv4", "ipv6"]']
        return "\n".join(lines) + "\n"


def _lines(name: str, design: Design) -> list[str]:
    lines = []
    for start, end in both_ways():
        if start == name:
            cost = design.costs[start, end]
            lines += [f"interface {plan.interface(end)}", f"ip ospf cost {cost}"]
            lines += [f"ipv6 ospf6 cost {cost}", "exit"]
    for one in PEERS:
        if one.gateway == name:
            lines += [f"no route-map {one.name}-{family}" for family in ("ipv4", "ipv6")]
            lines += plan.policies(one, design)
    return lines


def _hops(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for hop in entry["nexthops"] if entry.get("selected") else ():
            if hop.get("fib"):
                end = hop["interfaceName"].removeprefix("to-")
                yield end if end in ROUTERS else peer(end).entity


def _each(names: tuple[str, ...], do: Callable[[str], Any]) -> list[Any]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(do, names))


@contextmanager
def _folder() -> Iterator[Path]:
    """Not one of pytest's, which are closed to others, since the routers run as user frr."""
    with tempfile.TemporaryDirectory(prefix="gsid-lab-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


@contextmanager
def running(design: str = "usual") -> Iterator[Lab]:
    """A lab, built; all of it ends with the process that built it."""
    need()
    unshare = [shutil.which("unshare") or "", "--mount", "--pid", "--fork", "--kill-child"]
    with (
        _folder() as folder,
        (folder / "boot.log").open("wb") as log,
        subprocess.Popen(
            [*unshare, sys.executable, "-m", "tests.lab.boot", str(folder), design],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"built\n", (folder / "boot.log").read_text()
            yield Lab(folder, process.stdin)
        finally:
            process.kill()
