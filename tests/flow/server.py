"""The real server process for tests: started on a free port, killed, started again.

Without the model that ships tests are skipped, and with CI=true they fail. Where a test fails, the
end of the server's log is in what pytest shows as captured output.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.postgres import free_port, missing

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "gsid-1"
PROGRAM = [sys.executable, "-m", "gsid_service"]
START_WITHIN = 60.0
LOG_SHOWN = 8_000


def environment(**settings: str) -> dict[str, str]:
    """This process's variables without the settings of a developer, and with those given."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GSID_")}
    return own | {"PYTHONPATH": str(ROOT), "GSID_MODEL_FOLDER": str(MODEL)} | settings


def gsid(
    *arguments: str, stdin: str | None = None, **settings: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command line to its end."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=START_WITHIN,
        check=False,
    )


class Server:
    """`gsid serve` in a process of its own, on one database, as often as it is started."""

    program = tuple(PROGRAM)

    def __init__(
        self, database_url: str, log: Path, flags: tuple[str, ...], settings: Mapping[str, str]
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = {"GSID_DATABASE_URL": database_url, **settings}
        self.flags = ("--port", str(self.port), *flags)
        self.log = log
        self.client = httpx.Client(base_url=self.url, timeout=60)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def logged(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def launch(self) -> None:
        """Start it, and do not wait."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.program, "serve", *self.flags],
                env=environment(**self.settings),
                cwd=self.log.parent,
                stdout=log,
                stderr=log,
            )

    @property
    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def start(self) -> None:
        self.launch()
        self.wait_ready()

    def wait_ready(self) -> None:
        deadline = time.monotonic() + START_WITHIN
        while time.monotonic() < deadline:
            if self.ended:
                raise AssertionError(f"the server ended by itself:\n{self.logged[-LOG_SHOWN:]}")
            try:
                if self.client.get("/-/ready").is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError(f"not ready in {START_WITHIN} s:\n{self.logged[-LOG_SHOWN:]}")

    def kill(self) -> None:
        """As a power cut would, as far as a process can see."""
        self.signal(signal.SIGKILL)
        self.wait()

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)  # which does nothing to one that has ended

    def wait(self, seconds: float = 15) -> int:
        if self.process is None:
            raise AssertionError("the server was never started")
        return self.process.wait(seconds)

    def stop(self) -> int:
        """As an operator would; its exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def close(self) -> None:
        if not self.ended:
            self.kill()
        self.client.close()


def need_model() -> None:
    if not (MODEL / "weights.safetensors").exists():
        missing("the model models/gsid-1")


def is_running(pid: int) -> bool:
    """Whether a process is there that has not ended: nobody may have asked yet how it ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@contextmanager
def running(database_url: str, folder: Path, *flags: str, **settings: str) -> Iterator[Server]:
    """A server that is ready, and stopped at the end."""
    with started(Server(database_url, folder / "server.log", flags, settings)) as server:
        yield server


@contextmanager
def started(server: Server) -> Iterator[Server]:
    """The same of a server that is made already."""
    need_model()
    try:
        server.start()
        yield server
        server.stop()
    finally:
        server.close()
        sys.stderr.write(server.logged[-LOG_SHOWN:])
