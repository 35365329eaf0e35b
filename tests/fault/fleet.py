"""Several `gsid serve` processes on one database, with somebody who starts again what was killed.

All are forked from one process that has imported everything once; each runs its own command line on
a port of its own, and can be killed like any other.
"""

import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.flow import forking
from tests.flow.forking import Forked
from tests.flow.server import Server, environment

RESTART_SECONDS = 1.0  # as a supervisor waits
PROCESSES = ("api", "scorer", "scorer", "scorer", "notifier", "notifier")


class Member(Forked):
    """One process of the fleet, which shares the one that forks."""

    def __init__(self, fleet: "Fleet", role: str, log: Path) -> None:
        Server.__init__(self, fleet.url, log, ("--role", role, *fleet.flags), fleet.settings)
        self.role, self.fleet, self.parent, self.child = role, fleet, fleet.parent, 0

    def _ask(self, *what: object) -> int:
        with self.fleet.turn:
            return super()._ask(*what)

    def close(self) -> None:
        Server.close(self)


class Fleet:
    """The processes, and how often each was killed."""

    def __init__(
        self, url: str, folder: Path, flags: Sequence[str], settings: Mapping[str, str]
    ) -> None:
        self.url, self.flags, self.settings = url, flags, settings
        self.turn = threading.Lock()
        self.parent = subprocess.Popen(
            [sys.executable, "-m", "tests.fault.fleet"],
            env=environment(GSID_DATABASE_URL=url, **settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.members = [
            Member(self, role, folder / f"{role}{place}.log")
            for place, role in enumerate(PROCESSES)
        ]
        self.kills: Counter[str] = Counter()

    @property
    def api(self) -> Member:
        return self.members[0]

    def start(self) -> None:
        self.api.start()  # which makes the tables
        for member in self.members[1:]:
            member.launch()
        for member in self.members[1:]:
            member.wait_ready()

    def kill_at_random(self, ending: threading.Event, every: float, rng: random.Random) -> None:
        """Until the end: kill -9 somebody."""
        while not ending.wait(rng.uniform(0.5 * every, 1.5 * every)):
            member = rng.choice(self.members)
            if not member.ended:
                member.signal(signal.SIGKILL)
                self.kills[member.role] += 1

    def supervise(self, ending: threading.Event) -> None:
        """Until the end: start whoever has ended, also those that met a database that was away."""
        while not ending.wait(RESTART_SECONDS):
            for member in self.members:
                if member.ended:
                    member.wait()
                    member.launch()

    def logged(self, words: str) -> list[str]:
        return [line for m in self.members for line in m.logged.splitlines() if words in line]

    def close(self) -> None:
        for member in self.members:
            with suppress(ProcessLookupError):
                member.close()
        self.parent.stdin.close()  # type: ignore[union-attr]
        self.parent.wait(15)
        self.parent.stdout.close()  # type: ignore[union-attr]


if __name__ == "__main__":
    import gsid_service.jobs.postgres
    import gsid_service.score.scorer  # noqa: F401

    forking.main()
