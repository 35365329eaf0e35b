"""The process apart answers as this one would, comes back when it is lost, and ends with us."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gsid_service.apart import Apart, Lost
from gsid_service.diagnose import Diagnosis, Limits, Observation, Reference, diagnose
from gsid_service.records import Intents
from gsid_service.score.scorer import BadModel, load
from tests.verify.test_repair import BY_A, ENTITIES, facts

MODEL = Path(__file__).parent.parent / "models" / "gsid-1"
SEEN = Observation(ENTITIES, facts(80, 100), Intents((BY_A,)), Reference(ENTITIES, facts(200, 100)))


def without_times(found: Diagnosis) -> tuple[object, ...]:
    return found.values, found.proofs, found.broken, found.differences


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    process = Apart(MODEL, threads=1)
    yield process
    process.stop()


def test_the_answer_is_the_same(apart: Apart) -> None:
    assert apart.name == "gsid-1"
    there = apart(SEEN, Limits())
    assert without_times(there) == without_times(diagnose(SEEN, load(MODEL)))


def test_what_fails_there_is_told_here_and_the_next_is_answered(apart: Apart) -> None:
    odd = Observation(ENTITIES, SEEN.facts, SEEN.wanted, Reference(ENTITIES, [None]))  # type: ignore[list-item]
    with pytest.raises(RuntimeError, match="TypeError"):
        apart(odd, Limits())
    assert apart(SEEN, Limits()).values


def test_a_process_that_was_killed_is_started_anew(apart: Apart) -> None:
    os.kill(apart._process.pid or 0, signal.SIGKILL)
    with contextlib.suppress(Lost):  # where it is noticed only now
        apart(SEEN, Limits())
    assert apart(SEEN, Limits()).values


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=str(tmp_path)):
        Apart(tmp_path, threads=1)


def test_it_ends_when_we_are_killed() -> None:
    code = (
        "import sys, time; from pathlib import Path; from gsid_service.apart import Apart\n"
        f"if __name__ == '__main__':\n    apart = Apart(Path({str(MODEL)!r}), 1)\n"
        "    print(apart._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout is not None
        child = int(ours.stdout.readline())
        ours.kill()
    until = time.monotonic() + 20
    while Path(f"/proc/{child}/cmdline").exists() and _is_running(child):
        assert time.monotonic() < until, "the other process outlives us"
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
