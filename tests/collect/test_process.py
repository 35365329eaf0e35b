"""The collector as a process: what it needs, what it survives, and that it loses nothing."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.collect.test_frr import printing
from tests.collect.test_sender import Receiver, address
from tests.flow.network import small
from tests.flow.server import PROGRAM, environment
from tests.waiting import until

MEBIBYTE = 1 << 20
NAMES = '[names]\n"10.0.0.6" = "R6"\n'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


class Collector:
    """`gsid collect` on a folder of its own, as often as it is started."""

    def __init__(self, folder: Path, url: str, routers: str, **more: Any) -> None:
        self.log, self.starts = folder / "log", 0
        self.settings = folder / "collect.toml"
        lines = [f"{key} = {json.dumps(value)}" for key, value in more.items()]
        self.settings.write_text(
            f'network = "net"\n[service]\nurl = "{url}"\n[collector]\nstate = "{folder}/state"\n'
            "metrics_port = 0\ninterval_seconds = 0.2\n" + "\n".join(lines) + f"\n{NAMES}{routers}"
        )

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        command = [*PROGRAM, "collect", "--config", str(self.settings)]
        self.starts += 1
        with (
            self.log.open("ab") as log,
            subprocess.Popen(command, env=environment(), stderr=log) as process,
        ):
            try:
                yield process
            finally:
                process.terminate()

    @property
    def logged(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def metrics(self) -> str:
        """Of the one that was started last."""
        until(lambda: len(self._addresses()) == self.starts)
        return httpx.get(self._addresses()[-1]).text

    def _addresses(self) -> list[str]:
        return re.findall(r"http://\S+/metrics", self.logged)


def from_file(folder: Path) -> str:
    """The settings of a router whose state is in a file."""
    write(folder, 200)
    return f'[[routers]]\nname = "rr1"\nsource = "file"\npath = "{folder}/view.json"\n'


def write(folder: Path, preference: int) -> None:
    fresh = folder / "view.new"
    fresh.write_text(json.dumps(small("net", local_pref=preference)))
    fresh.rename(folder / "view.json")


def got(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in receiver.got]


def preferences(documents: list[dict[str, Any]]) -> list[int]:
    """Of the route that changes, in each snapshot that names it."""
    return [
        fact["params"]["local_pref"]
        for document in documents
        for fact in document["facts"]
        if fact["args"] == ["AS65101@R3", "203.0.113.0/24"]
    ]


def memory(process: "subprocess.Popen[bytes]") -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def test_it_starts_without_heavy_libraries() -> None:
    code = (
        "import sys, gsid_service.__main__, gsid_service.collect.process as process\n"
        "from gsid_service.collect import bird, bmp, file, frr, openconfig, simulated\n"
        "heavy = {'torch', 'scipy', 'sqlalchemy', 'fastapi', 'httpx', 'grpc', 'pygnmi'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_it_tells_what_a_router_sees_and_what_changes(tmp_path: Path, receiver: Receiver) -> None:
    collector = Collector(tmp_path, address(receiver), from_file(tmp_path))
    with collector.running() as process:
        until(lambda: len(receiver.got) == 1)
        write(tmp_path, 80)
        until(lambda: len(receiver.got) == 2)
        assert 'gsid_collect_sent_total{outcome="accepted",router="rr1"} 2.0' in collector.metrics()
        assert memory(process) < 80 * MEBIBYTE
    first, second = got(receiver)
    assert (first["complete"], second["complete"]) == (True, False)
    assert second["sequence"] == first["sequence"] + 1
    assert preferences([first, second]) == [200, 80]
    assert len(second["facts"]) == 1
    assert process.returncode == 0


def test_what_the_spool_took_outlives_a_kill_while_the_service_is_away(
    tmp_path: Path, receiver: Receiver
) -> None:
    routers = from_file(tmp_path)
    away = Collector(tmp_path, "http://127.0.0.1:9", routers)
    for number in (1, 2, 3):
        write(tmp_path, 100 + number)
        with away.running() as process:
            wait_for(away, f"gsid_collect_spool_snapshots {float(number)}")
            process.send_signal(signal.SIGKILL)
            process.wait()
    write(tmp_path, 104)
    with Collector(tmp_path, address(receiver), routers).running():
        until(lambda: len(receiver.got) >= 4)
    documents = got(receiver)
    assert preferences(documents) == [101, 102, 103, 104]
    sequences = [document["sequence"] for document in documents]
    assert sequences == [*range(sequences[0], sequences[0] + 4)]


def wait_for(collector: Collector, series: str) -> None:
    until(lambda: series in collector.metrics())


def test_a_service_that_comes_back_gets_everything_in_order(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answers = [503] * 3 + [429]
    with Collector(tmp_path, address(receiver), from_file(tmp_path)).running():
        until(lambda: len(receiver.got) >= 2)
        write(tmp_path, 80)
        until(lambda: len(receiver.got) == 6)
    assert preferences(got(receiver)[-2:]) == [200, 80]


def test_routers_that_fail_are_said_and_read_again(tmp_path: Path, receiver: Receiver) -> None:
    """One that hangs, one that prints garbage, one that is restarted; and one that is well."""
    good = printing(tmp_path)
    scripts = {
        "hanging": f"test -e {tmp_path}/well || sleep 60; {good}",
        "garbage": f"test -e {tmp_path}/well || {{ head -c 9999 /dev/urandom; exit; }}; {good}",
        "restarting": f"test -e {tmp_path}/well || {{ echo down >&2; exit 1; }}; {good}",
        "good": good,
    }
    settings = ""
    for name, script in scripts.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        settings += f'[[routers]]\nname = "{name}"\nsource = "frr"\nospf = "off"\n'
        settings += f'command = ["{program}"]\ntimeout_seconds = 1\n'
    collector = Collector(tmp_path, address(receiver), settings)

    def heard() -> set[str]:
        return {document["collector"]["id"] for document in got(receiver)}

    with collector.running() as process:
        until(lambda: heard() == {"good"})
        until(lambda: "hanging: cannot be read: " in collector.logged)
        assert "did not end within 1 s" in collector.logged
        assert "garbage: cannot be read: no answer to" in collector.logged
        assert "restarting: cannot be read: " in collector.logged
        (tmp_path / "well").touch()
        until(lambda: heard() == set(scripts))
        assert "hanging: is read again" in collector.logged
        assert collector.logged.count("garbage: cannot be read") == 1, "said once"
        assert memory(process) < 80 * MEBIBYTE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "network: Field required"),
        ("network = 7", "network: Input should be a valid string"),
        ("[", "collect.toml: Invalid"),
        ("[collector]\nintervall = 2", "collector.intervall: no such setting; known: state, "),
    ],
)
def test_bad_settings_end_it_with_a_line(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "collect.toml"
    file.write_text(text)
    done = subprocess.run(
        [*PROGRAM, "collect", "--config", str(file)],
        env=environment() | {"COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_once_prints_what_routers_see(tmp_path: Path) -> None:
    collector = Collector(tmp_path, "http://127.0.0.1:9", from_file(tmp_path))
    done = subprocess.run(
        [*PROGRAM, "collect", "--config", str(collector.settings), "--once"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    (document,) = json.loads(done.stdout)
    assert preferences([document]) == [200]
    assert not (tmp_path / "state").exists()


OWN = """
from gsid_service.collect.source import Polled, Sight


class Nothing(Polled):
    def __init__(self, router, settings):
        self.name = router.name

    def read(self):
        return Sight(self.name, "router", (), ())
"""


def test_a_source_of_one_s_own_lies_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "own_source.py").write_text(OWN)
    settings = Collector(tmp_path, "http://127.0.0.1:9", from_file(tmp_path)).settings
    text = settings.read_text().replace('"file"', '"own_source:Nothing"')
    settings.write_text(text)
    done = subprocess.run(
        [*PROGRAM, "collect", "--config", str(settings), "--once"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    (document,) = json.loads(done.stdout)
    assert document["facts"] == []


def test_it_starts_within_a_second_of_processor_time(tmp_path: Path, receiver: Receiver) -> None:
    """Of processor time, since what else the machine does must not decide."""
    collector = Collector(tmp_path, address(receiver), from_file(tmp_path), jitter=0)
    with collector.running() as process:
        until(lambda: len(receiver.got) == 1)
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    assert used < 2.0, "a second on a quiet machine"


def test_it_ends_at_once_when_told(tmp_path: Path, receiver: Receiver) -> None:
    with Collector(tmp_path, address(receiver), from_file(tmp_path)).running() as process:
        until(lambda: len(receiver.got) == 1)
        begun = time.monotonic()
        process.terminate()
        assert process.wait(10) == 0
    assert time.monotonic() - begun < 5
