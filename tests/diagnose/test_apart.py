"""The process apart answers as this one would, comes back when it is lost, and ends with us."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gsid_service.diagnose import apart as apart_module
from gsid_service.diagnose.apart import Apart, Lost, NotStarted
from gsid_service.diagnose.diagnosis import Diagnosis, Limits, diagnose
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.diagnose.update import Update
from gsid_service.records import Intents
from gsid_service.score.scorer import BadModel, load, use_cores
from tests.flow.server import is_running
from tests.verify.test_repair import BY_A, ENTITIES, facts

MODEL = Path(__file__).parents[2] / "models" / "gsid-1"
SEEN = Observation(ENTITIES, facts(80, 100), Intents((BY_A,)), Reference(ENTITIES, facts(200, 100)))


def without_times(found: Diagnosis) -> tuple[object, ...]:
    return list(found.values), found.proofs, found.broken, found.differences


@pytest.fixture(scope="module")
def apart() -> Iterator[Apart]:
    process = Apart(MODEL, threads=1)
    yield process
    process.stop()


def test_the_answer_is_the_same(apart: Apart) -> None:
    assert apart.name == "gsid-1"
    there = apart(SEEN, Limits())
    use_cores(1)
    assert without_times(there) == without_times(diagnose(SEEN, load(MODEL)))


def test_what_fails_there_is_told_here_and_the_next_is_answered(apart: Apart) -> None:
    odd = Observation(ENTITIES, SEEN.facts, SEEN.wanted, Reference(ENTITIES, [None]))  # type: ignore[list-item]
    with pytest.raises(RuntimeError, match="TypeError"):
        apart(odd, Limits())
    assert apart(SEEN, Limits()).values


def test_of_a_network_that_it_remembers_only_what_differs_is_told(
    apart: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_cores(1)
    scorer, sent, exchange = load(MODEL), [], apart._exchange

    def spied(what: Observation | Update, limits: Limits) -> Any:
        sent.append(type(what))
        return exchange(what, limits)

    monkeypatch.setattr(apart, "_exchange", spied)
    for at_a, at_b, wanted in ((80, 100, (BY_A,)), (80, 90, (BY_A,)), (80, 90, ()), (200, 100, ())):
        seen = replace(SEEN, facts=facts(at_a, at_b), wanted=Intents(wanted), network="net")
        assert without_times(apart(seen, Limits())) == without_times(diagnose(seen, scorer))
    assert sent == [Observation, Update, Update, Update]
    os.kill(apart._process.pid or 0, signal.SIGKILL)
    assert without_times(apart(seen, Limits())) == without_times(diagnose(seen, scorer))
    assert sent[4:] == [Update, Observation]


class Ending:
    """Ends the process that is told this."""

    def __reduce__(self) -> tuple[Callable[[int], object], tuple[int]]:
        return os._exit, (7,)


def test_a_process_that_was_killed_is_started_anew_and_the_log_says_so(apart: Apart) -> None:
    os.kill(apart._process.pid or 0, signal.SIGKILL)
    with capture_logs() as logged:
        assert apart(SEEN, Limits()).values
    lost = [line for line in logged if line["log_level"] == "warning"]
    assert [line["exit_code"] for line in lost] == [-signal.SIGKILL]


def test_a_network_that_ends_it_again_is_given_up_and_the_next_is_answered(apart: Apart) -> None:
    ending = replace(SEEN, wanted=Ending())  # type: ignore[arg-type]
    with capture_logs() as logged, pytest.raises(Lost, match="7"):
        apart(ending, Limits())
    assert [line["exit_code"] for line in logged if line["log_level"] == "warning"] == [7]
    assert apart(SEEN, Limits()).values


def test_where_no_other_can_be_started_the_next_to_ask_tries_again(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.symlink_to(MODEL)
    process = Apart(model, threads=1)
    model.unlink()
    os.kill(process.pid, signal.SIGKILL)
    with capture_logs():
        for _ in range(2):
            with pytest.raises(NotStarted, match=str(model)):
                process(SEEN, Limits())
            assert process.pid == 0
        model.symlink_to(MODEL)
        assert process(SEEN, Limits()).values
    process.stop()


def test_where_no_process_can_be_made_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    process, refused = Apart(MODEL, threads=1), list[NotStarted]()

    def no_room(*_: object) -> subprocess.Popen[bytes]:
        raise BlockingIOError("no more processes")

    with monkeypatch.context() as patched, capture_logs():
        patched.setattr(apart_module, "launch", no_room)
        os.kill(process.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(NotStarted, match="no more processes") as caught:
                process(SEEN, Limits())
            refused.append(caught.value)  # with all that its frames hold
    with capture_logs():
        assert process(SEEN, Limits()).values
    process.stop()


def test_one_that_hangs_is_ended_by_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart_module, "ENDING_SECONDS", 0.1)
    process, told = Apart(MODEL, threads=1), list[type]()

    def ask() -> None:
        try:
            process(SEEN, Limits())
        except NotStarted as error:
            told.append(type(error))

    asking = threading.Thread(target=ask)
    child = process.pid
    os.kill(child, signal.SIGSTOP)
    asking.start()
    process.stop()
    asking.join(10)
    assert told == [NotStarted]
    assert not is_running(child)


def test_it_takes_nothing_from_the_folder_that_it_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit(3)")
    code = (
        "from pathlib import Path; from gsid_service.diagnose.apart import Apart; "
        f"one = Apart(Path({str(MODEL)!r}), 1); print(one.name); one.stop()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["gsid-1"]), done.stderr


def test_signals_that_go_to_all_processes_do_not_end_it(apart: Apart) -> None:
    before = apart._process.pid or 0
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(before, number)
    assert apart(SEEN, Limits()).values
    assert apart._process.pid == before


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModel, match=str(tmp_path)):
        Apart(tmp_path, threads=1)


LONG = f"""
from pathlib import Path
from gsid_service.diagnose.apart import Apart
from gsid_service.diagnose.known import Observation

class Long:
    def __reduce__(self):
        return exec, ("import os, time; print('pid', os.getpid(), flush=True); time.sleep(60)",)

Apart(Path({str(MODEL)!r}), threads=1)(Observation((), (), Long()), None)
"""


def test_it_ends_when_we_are_killed_also_in_the_middle_of_a_network() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout is not None
        child = next(int(line[4:]) for line in ours.stdout if line.startswith("pid "))
        ours.kill()
    until = time.monotonic() + 20
    while is_running(child):
        assert time.monotonic() < until, "the other process outlives us"
        time.sleep(0.05)
