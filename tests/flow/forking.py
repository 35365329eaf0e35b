"""`gsid serve` again and again without the seconds that Python takes to import torch.

A parent process imports what the service needs and forks for every start: each server is a process
of its own that runs the same command line, and can be killed like any other.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from gsid_service.config import Settings
from gsid_service.diagnose import Here
from gsid_service.score.scorer import load
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
        self.kill()
        self.client.close()
        self.parent.stdin.close()  # type: ignore[union-attr]
        self.parent.wait(15)
        self.parent.stdout.close()  # type: ignore[union-attr]


def in_this_process(settings: Settings) -> Here:
    """The model without a process of its own, which would take those seconds at each start."""
    scorer = load(settings.model.folder)
    return Here(scorer, scorer.name)


def main(load_model: Callable[[Settings], Here] = in_this_process) -> None:
    from gsid_service import serve
    from gsid_service.__main__ import main as run

    serve._load_model = load_model  # type: ignore[assignment]
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
    main()
