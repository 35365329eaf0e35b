"""`gsid demo` as a real process: a mistake found and resolved, and an end that leaves nothing."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import httpx
import pytest

from tests.flow.server import PROGRAM, environment, gsid, need_model, running

STARTS_WITHIN, ENDS_WITHIN = 120.0, 30.0
ADDRESS = re.compile(r"The console is at (http://127\.0\.0\.1:\d+)/")


class Demo:
    """The process, in a session of its own as on a terminal, with a folder for what it leaves."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.out, self.err = (folder / name for name in ("out", "err"))
        # Not in the test's own folder: the path of a socket has 107 characters at most.
        self.temporary = Path(mkdtemp(prefix="demo"))
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*PROGRAM, "demo", *arguments],
                env=environment(TMPDIR=str(self.temporary)),
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def address(self) -> str:
        """Where it serves, once it does."""
        self.until(lambda: ADDRESS.search(self.out.read_text()), STARTS_WITHIN)
        found = ADDRESS.search(self.out.read_text())
        assert found, self.err.read_text()
        return found[1]

    def until(self, done: Callable[[], object], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not done() and self.process.poll() is None:
            time.sleep(0.1)

    def family(self) -> list[int]:
        """Every process of its session that is not over, itself included."""
        return [
            pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if self._has(pid)
        ]

    def _has(self, pid: int) -> bool:
        try:
            # pid (name) state parent group session ...
            state, _, _, session = (
                Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
            )
        except (FileNotFoundError, ProcessLookupError):
            return False
        return int(session) == self.process.pid and state != "Z"

    def assert_left_alone(self) -> None:
        """Python's own tracker of resources hears of the end a moment after it."""
        deadline = time.monotonic() + ENDS_WITHIN
        while self.family() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.family() == []

    def assert_left_nothing(self) -> None:
        self.assert_left_alone()
        assert list(self.temporary.iterdir()) == []
        assert "Traceback" not in self.err.read_text() + self.out.read_text()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    need_model()
    started: list[Demo] = []

    def begin(*arguments: str) -> Demo:
        started.append(Demo(tmp_path, *arguments))
        return started[-1]

    yield begin
    for demo in started:
        for pid in demo.family():
            os.kill(pid, signal.SIGKILL)
        demo.process.wait()
        rmtree(demo.temporary)


def test_a_mistake_is_found_and_resolved(start: Callable[..., Demo]) -> None:
    demo = start("--once", "--mistake-after", "3")
    assert demo.process.wait(STARTS_WITHIN + 60) == 0, demo.err.read_text()
    said = demo.out.read_text()
    told = (
        r"topozoo/Abilene: 11 routers, 2 of them reflectors",
        r"\d s: re-tuned: ospf_weight",
        r"\d s: GSID is silent",
        r"\d s: typo: local_pref 200 -> 80 on (AS\d+@\S+) → (\S+)",
        r"\d s: GSID: local_pref on .* is 80, expected 200: .* restoring 200 repairs all",
        r"http://127\.0\.0\.1:\d+/alerts/a1",
        r"\d s: repaired: local_pref 80 -> 200",
        r"\d s: GSID: restored: local_pref",
    )
    assert re.search(".*".join(told), said, re.DOTALL), said
    demo.assert_left_nothing()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_told_to_and_leaves_nothing(
    start: Callable[..., Demo], number: signal.Signals
) -> None:
    demo = start()
    address = demo.address()
    assert httpx.get(f"{address}/api/v1/networks/abilene").json()["name"] == "abilene"
    assert len(demo.family()) > 2, "the service and its scoring process run beside it"
    if number is signal.SIGINT:
        os.killpg(demo.process.pid, number)  # as a terminal's Ctrl-C does
    else:
        demo.process.send_signal(number)
    assert demo.process.wait(ENDS_WITHIN) == 0
    demo.assert_left_nothing()
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_the_service_ends_with_it_even_if_it_is_killed(start: Callable[..., Demo]) -> None:
    demo = start()
    demo.address()
    demo.process.kill()
    demo.process.wait()
    demo.assert_left_alone()


def test_it_plays_against_a_service_that_asks_for_tokens(
    start: Callable[..., Demo], tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path}/gsid.db"
    files = {}
    for role in ("ingest", "operate"):
        made = gsid("token", "create", role, "--role", role, GSID_DATABASE_URL=database)
        files[role] = tmp_path / role
        files[role].write_text(made.stdout)
    with running(database, tmp_path) as server:
        demo = start(
            *("--against", server.url, "--once", "--mistake-after", "2"),
            *("--token-file", str(files["ingest"])),
            *("--operator-token-file", str(files["operate"])),
        )
        assert demo.process.wait(STARTS_WITHIN) == 0, demo.err.read_text()
        refused = gsid("demo", "--against", server.url)
        bearer = {"Authorization": f"Bearer {files['operate'].read_text().strip()}"}
        (alert,) = server.client.get("/api/v1/alerts", headers=bearer).json()["items"]
    assert (alert["network"], alert["status"]) == ("abilene", "resolved")
    assert refused.returncode == 2
    assert "401 a token is needed" in refused.stderr


def test_a_port_that_is_taken_is_said(start: Callable[..., Demo]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = start("--port", str(port))
        assert demo.process.wait(STARTS_WITHIN) == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in demo.err.read_text()
    demo.assert_left_nothing()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--topology", "topozoo/Atlantis"), "--topology: no topology named 'topozoo/Atlantis'"),
        (("--topology", "topozoo/Layer42"), "routers, fewer than 10"),
        (("--against", "http://127.0.0.1:1", "--port", "1"), "--against: no service is started"),
        (("--token-file", "/nowhere/token"), "/nowhere/token: No such file"),
    ],
)
def test_what_cannot_be_used_is_named(arguments: tuple[str, ...], reason: str) -> None:
    result = gsid("demo", *arguments)
    assert result.returncode == 2
    assert reason in result.stderr
