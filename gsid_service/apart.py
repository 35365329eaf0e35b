"""Diagnosing in a process of its own: the arithmetic of the model keeps no request waiting.

The other process loads the model once, and is told a network at a time. It ends with this one,
however this one ends; should it end itself, the next network starts another.
"""

import multiprocessing
import signal
import threading
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from gsid_service.diagnose import Diagnosis, Here, Limits, Observation

ENDING_SECONDS = 5.0


class Lost(RuntimeError):
    """The other process ended, or could not start; the message says why where it could say it."""


class Apart:
    """A diagnoser in another process."""

    def __init__(self, folder: Path, threads: int) -> None:
        self._given = folder, threads
        self._turn = threading.Lock()
        self._start()

    def __call__(self, seen: Observation, limits: Limits) -> Diagnosis:
        with self._turn:
            if not self._process.is_alive():
                self._start()
            try:
                self._ours.send((seen, limits))
                answer = self._ours.recv()
            except (EOFError, OSError):
                self.stop()
                raise Lost(f"the scoring process ended ({self._process.exitcode})") from None
        if isinstance(answer, Exception):
            raise answer
        diagnosis: Diagnosis = answer
        return diagnosis

    def stop(self) -> None:
        self._ours.close()
        self._process.join(ENDING_SECONDS)
        self._process.kill()
        self._process.join()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a process of many threads is not forked
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_answer, args=(theirs, *self._given), daemon=True)
        self._process.start()
        theirs.close()
        try:
            told: Any = self._ours.recv()
        except EOFError:
            self.stop()
            raise Lost(f"the scoring process did not start ({self._process.exitcode})") from None
        if isinstance(told, Exception):
            self.stop()
            raise told
        self.name: str = told


def _answer(ours: Connection, folder: Path, threads: int) -> None:
    """The life of the other process: load, then answer until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C goes to both
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    from gsid_service.score.scorer import BadModel, load, use_cores

    use_cores(threads)
    try:
        scorer = load(folder)
    except BadModel as error:
        ours.send(error)
        return
    diagnose = Here(scorer, scorer.name)
    ours.send(scorer.name)
    parent = multiprocessing.parent_process()
    while parent is not None:
        if ours not in wait([ours, parent.sentinel]):
            return
        try:
            seen, limits = ours.recv()
        except EOFError:
            return
        try:
            ours.send(diagnose(seen, limits))
        except Exception as error:  # of this network alone: told to whoever asked
            ours.send(RuntimeError(f"{type(error).__name__}: {error}"))
