"""Diagnosing in a process of its own: the arithmetic of the model keeps no request waiting.

The other process loads the model once, and is told a network at a time; of one that it remembers,
only what differs. It ends with this one, however this one ends; should it end itself, another takes
over. It holds nothing of this one but its end of the connection: no threads, and no port.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from gsid_service.diagnose.diagnosis import Diagnosis, Limits
from gsid_service.diagnose.known import Observation, scored_facts
from gsid_service.diagnose.update import FORGOTTEN, Said, Update, difference, named
from gsid_service.recent import Recent
from gsid_service.records import FactKey

log = structlog.get_logger()
ENDING_SECONDS = 5.0
ROOM = 4_000_000  # facts


class Told(NamedTuple):
    """What the other process was last told of a network, and the facts that it then scored."""

    seen: Observation
    facts: tuple[FactKey, ...]


class Lost(RuntimeError):
    """The other process ended; the message says why where it could say it."""


class NotStarted(Lost):
    """Another could not be started, through no fault of the network that was asked about."""


class Apart:
    """A diagnoser in another process."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._given = folder, threads
        self._turn = threading.Lock()
        self._stopped = False
        self._start()

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        with self._turn:
            try:
                answer = self._ask(seen, limits)
            except Lost:
                if self._stopped:
                    raise NotStarted("the service is being stopped") from None
                # Once more: it may have ended for another reason than this network.
                code = self._process.returncode
                log.warning("the scoring process ended, another is started", exit_code=code)
                with _starting():
                    self._start()
                answer = self._ask(seen, limits)
        if isinstance(answer, Exception):
            raise answer
        diagnosis: Diagnosis = answer
        return diagnosis

    @property
    def pid(self) -> int:
        """Of the process that scores; 0 where there is none."""
        return self._process.pid if self._process.returncode is None else 0

    def stop(self) -> None:
        self._stopped = True
        self._end()

    def _start(self) -> None:
        self._told = Recent[Told](ROOM)
        self._ours, theirs = Pipe()
        with theirs:  # which nobody holds on to where it cannot be started: who asks then must know
            self._process = launch(theirs, *self._given)
        try:
            told: Any = self._ours.recv()
        except EOFError:
            self._end()
            code = self._process.returncode
            raise NotStarted(f"the scoring process did not start (exit code {code})") from None
        if isinstance(told, Exception):
            self._end()
            raise told
        self.name: str = told
        log.info("the scoring process is ready", pid=self._process.pid)

    def _ask(self, seen: Observation, limits: Limits) -> Any:
        """What the other process says of a network, whole or by what differs from the last time."""
        told = self._told.get(seen.network)
        self._told.drop(seen.network)
        answer: Any = FORGOTTEN
        if told is not None:
            answer = self._exchange(difference(told.seen, seen), limits)
        if answer == FORGOTTEN:
            answer = self._exchange(seen, limits)
        if not isinstance(answer, Said):
            return answer
        facts = told.facts if told is not None and answer.as_before else scored_facts(seen)
        if seen.network:
            self._told.put(seen.network, Told(seen, facts), len(seen.facts))
        return named(answer.found, facts)

    def _exchange(self, what: Observation | Update, limits: Limits) -> Any:
        try:
            self._ours.send((what, limits))
            return self._ours.recv()
        except (EOFError, OSError):
            self._end()
            code = self._process.returncode
            raise Lost(f"the scoring process ended (exit code {code})") from None

    def _end(self) -> None:
        self._ours.close()
        try:
            self._process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class OnNeed:
    """The same, started when it is first asked: for a process that mostly does something else."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._given = folder, threads
        self._turn = threading.Lock()
        self._apart: Apart | None = None
        self.name = model_name(folder)

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        with self._turn, _starting():
            self._apart = self._apart or Apart(*self._given)
        return self._apart(seen, limits)

    @property
    def pid(self) -> int:
        return self._apart.pid if self._apart else 0

    def stop(self) -> None:
        if self._apart:
            self._apart.stop()


@contextmanager
def _starting() -> Iterator[None]:
    """While the service runs, whatever is wrong may be mended: model files, memory, processes."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise NotStarted(f"the scoring process did not start: {error}") from None


def launch(theirs: Connection, folder: Path, threads: int) -> "subprocess.Popen[bytes]":
    """Start a process that answers at this end of a connection."""
    number = theirs.fileno()
    command = ["-P", "-m", "gsid_service.diagnose.answering", str(number), str(folder)]
    # It finds our package, and (-P) nothing in the folder that the service was started in.
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(  # noqa: S603 (our own program)
        [sys.executable, *command, str(threads)],
        pass_fds=[number],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        process_group=0,  # what a terminal sends to the service is not for it
    )


def model_name(folder: Path) -> str:
    """Without loading it."""
    try:
        return str(json.loads((folder / "config.json").read_text()).get("name", folder.name))
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder}: config.json cannot be read: {error}") from None
