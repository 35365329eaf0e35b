"""Diagnosing in a process of its own: the arithmetic of the model keeps no request waiting.

The other process loads the model once, and is told a network at a time; of one that it remembers,
only what differs. It ends with this one, however this one ends; should it end itself, another takes
over. Each is forked from a third process, which has imported torch once and holds nothing of this
one: no threads, and no port.
"""

import atexit
import gc
import json
import multiprocessing
import os
import signal
import threading
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from gsid_service.diagnose.diagnosis import Diagnosis, Here, Limits
from gsid_service.diagnose.known import Observation, scored_facts
from gsid_service.diagnose.update import Update, difference, updated
from gsid_service.recent import Recent
from gsid_service.records import FactKey

log = structlog.get_logger()
IMPORTED_ONCE = ["gsid_service.diagnose.apart", "gsid_service.score.scorer"]
ENDING_SECONDS = 5.0
ROOM = 4_000_000  # facts
FORGOTTEN = "forgotten"  # the answer to what differs from what is not remembered


class Told(NamedTuple):
    """What the other process was last told of a network, and the facts that it then scored."""

    seen: Observation
    facts: tuple[FactKey, ...]


class Said(NamedTuple):
    """The answer without the names of facts, which who asked knows: they are most of it."""

    found: Diagnosis
    as_before: bool  # whether the facts are those of the last time


class Lost(RuntimeError):
    """The other process ended, or could not start; the message says why where it could say it."""


class Apart:
    """A diagnoser in another process."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._given = folder, threads
        self._turn = threading.Lock()
        self._stopped = False
        self._start()
        atexit.register(self.stop)  # since Python waits at its end for processes that it started

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        with self._turn:
            try:
                answer = self._ask(seen, limits)
            except Lost:
                if self._stopped:
                    raise
                # Once more: it may have ended for another reason than this network.
                code = self._process.exitcode
                log.warning("the scoring process ended, another is started", exit_code=code)
                self._start()
                answer = self._ask(seen, limits)
        if isinstance(answer, Exception):
            raise answer
        diagnosis: Diagnosis = answer
        return diagnosis

    @property
    def pid(self) -> int:
        """Of the process that scores; 0 where there is none."""
        return self._process.pid or 0

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self._stopped = True
        self._end()

    def _start(self) -> None:
        self._told = Recent[Told](ROOM)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(IMPORTED_ONCE)
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_answer, args=(theirs, *self._given), daemon=True)
        self._process.start()
        theirs.close()
        try:
            told: Any = self._ours.recv()
        except EOFError:
            self._end()
            raise Lost(f"the scoring process did not start ({self._process.exitcode})") from None
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
            raise Lost(f"the scoring process ended ({self._process.exitcode})") from None

    def _end(self) -> None:
        self._ours.close()
        self._process.join(ENDING_SECONDS)
        self._process.kill()
        self._process.join()


class OnNeed:
    """The same, started when it is first asked: for a process that mostly does something else."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._given = folder, threads
        self._turn = threading.Lock()
        self._apart: Apart | None = None
        self.name = model_name(folder)

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        with self._turn:
            self._apart = self._apart or Apart(*self._given)
        return self._apart(seen, limits)

    @property
    def pid(self) -> int:
        return self._apart.pid if self._apart else 0

    def stop(self) -> None:
        if self._apart:
            self._apart.stop()


def model_name(folder: Path) -> str:
    """Without loading it."""
    try:
        return str(json.loads((folder / "config.json").read_text()).get("name", folder.name))
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder}: config.json cannot be read: {error}") from None


def _answer(ours: Connection, folder: Path, threads: int) -> None:
    """The life of the other process: load, then answer until nobody asks any more."""
    gc.freeze()  # what it shares with the process that it is forked from stays shared
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a terminal or systemd sends them to all processes
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from gsid_service.score.scorer import BadModel, load, use_cores

    use_cores(threads)
    try:
        scorer = load(folder)
    except BadModel as error:
        ours.send(error)
        return
    diagnose = Here(scorer, scorer.name)
    ours.send(scorer.name)
    while True:
        try:
            asked = ours.recv()
        except EOFError:
            return
        try:
            ours.send(_said(diagnose, *asked))
        except Exception as error:  # of this network alone: told to whoever asked
            ours.send(RuntimeError(f"{type(error).__name__}: {error}"))
        del asked  # a large network must not be there twice when it is told again


def _said(diagnose: Here, what: Observation | Update, limits: Limits) -> Said | str:
    if not isinstance(what, Update):
        return Said(named(diagnose(what, limits), ()), as_before=False)
    known = diagnose.known.get(what.rest.network)
    if known is None:
        return FORGOTTEN
    seen, facts = updated(known.simulated.seen, what), known.graph.facts
    del known  # which the diagnosis lets go when it can
    found = diagnose(seen, limits)
    return Said(named(found, ()), as_before=found.values.facts is facts)


def named(found: Diagnosis, facts: tuple[FactKey, ...]) -> Diagnosis:
    """With these as the facts that its rows are about."""
    return replace(found, values=replace(found.values, facts=facts))


def _end_with_parent() -> None:
    """At once, whatever is being computed: nobody is there to be told."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
