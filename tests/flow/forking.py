"""`gsid serve` again and again without the seconds that Python takes to import what it needs.

A parent process imports it once and forks for every start: each server is a process of its own that
runs the same command line, and can be killed like any other. So do the processes that score: all
servers have them forked from one process, where each would otherwise start one that imports torch.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import Any

from gsid_service.diagnose import apart
from gsid_service.diagnose.answering import answer
from tests.flow.server import Server, environment


class Forked(Server):
    """A server whose process is forked."""

    module = "tests.flow.forking"  # whose `main` forks

    def __init__(
        self, database_url: str, log: Path, flags: tuple[str, ...], settings: Mapping[str, str]
    ) -> None:
        super().__init__(database_url, log, flags, settings)
        self.parent = subprocess.Popen(
            [sys.executable, "-m", self.module],
            env=environment(**self.settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.child = 0

    def _ask(self, *what: object) -> int:
        if self.parent.stdin is None or self.parent.stdout is None:
            raise AssertionError
        self.parent.stdin.write(json.dumps(what) + "\n")
        self.parent.stdin.flush()
        return int(self.parent.stdout.readline())

    def launch(self) -> None:
        self.child = self._ask("start", str(self.log), ["gsid", "serve", *self.flags])

    @property
    def ended(self) -> bool:
        return not self.child or not Path(f"/proc/{self.child}/cmdline").read_bytes()

    def signal(self, number: signal.Signals) -> None:
        if self.child:
            os.kill(self.child, number)

    def wait(self, seconds: float = 15) -> int:  # noqa: ARG002
        if not self.child:
            return 0
        status, self.child = self._ask("wait", self.child), 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        super().close()
        self.parent.stdin.close()  # type: ignore[union-attr]
        self.parent.wait(15)
        self.parent.stdout.close()  # type: ignore[union-attr]


class Scoring:
    """A forked process that scores, with as much of `Popen` as is used of one."""

    def __init__(self, *given: Any) -> None:
        self._process = get_context("forkserver").Process(target=answer, args=given)
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> None:
        self._process.join(seconds)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("scoring", seconds or 0)

    def kill(self) -> None:
        self._process.kill()


def import_torch_once() -> None:
    forkserver.set_forkserver_preload([answer.__module__, "gsid_service.score.scorer"])
    forkserver.ensure_running()
    # It is there, but no child of the servers: they would ask in vain how it is.
    forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]
    apart.launch = Scoring  # type: ignore[assignment]


def main() -> None:
    import gsid_service.serve  # noqa: F401
    from gsid_service.__main__ import main as run

    for line in sys.stdin:
        what, *more = json.loads(line)
        if what == "wait":
            _, number = os.waitpid(more[0], 0)
        else:
            number = os.fork()
            if number == 0:
                log = os.open(more[0], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                for stream in (1, 2):
                    os.dup2(log, stream)
                os.close(0)
                sys.argv = more[1]
                run()
                return
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import_torch_once()
    main()
