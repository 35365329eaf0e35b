"""The process that scores: it loads the model once, then diagnoses the networks that it is told of.

`apart` starts it, with one end of a connection, and it ends when the other end is gone.
"""

import os
import select
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from gsid_service import memory
from gsid_service.diagnose.diagnosis import Here, Limits
from gsid_service.diagnose.known import Observation
from gsid_service.diagnose.update import FORGOTTEN, Said, Update, named, updated


def answer(asker: Connection, folder: Path, threads: int) -> None:
    """Load, then answer until nobody asks any more."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a terminal or systemd sends them to all processes
    threading.Thread(target=_end_with, args=(asker,), daemon=True).start()
    from gsid_service.score.scorer import BadModel, load, use_cores  # which takes a second or two

    use_cores(threads)
    try:
        scorer = load(folder)
    except BadModel as error:
        asker.send(error)
        return
    diagnose = Here(scorer, scorer.name)
    memory.settle()
    asker.send(scorer.name)
    with memory.giving_back():
        while True:
            try:
                asked = asker.recv()
            except EOFError:
                return
            try:
                asker.send(_said(diagnose, *asked))
            except Exception as error:  # of this network alone: told to whoever asked
                asker.send(RuntimeError(f"{type(error).__name__}: {error}"))
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


def _end_with(asker: Connection) -> None:
    """At once, whatever is being computed: nobody is there to be told."""
    gone = select.poll()
    gone.register(asker, 0)  # with no other event: that the other end is closed is always told
    gone.poll()
    os._exit(0)


if __name__ == "__main__":
    number, folder, threads = sys.argv[1:]
    answer(Connection(int(number)), Path(folder), int(threads))
