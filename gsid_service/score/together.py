"""From graphs that several threads have at the same moment to one pass of the model.

One pass runs at a time; what comes while it does waits, and goes together in the next.
"""

import threading
from concurrent.futures import Future

from gsid_service.records import Graph, Scores
from gsid_service.score.scorer import Scorer


class Together:
    """A detector for many threads."""

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._waiting: list[tuple[Graph, Future[Scores]]] = []
        self._adding, self._turn = threading.Lock(), threading.Lock()

    def __call__(self, graph: Graph) -> Scores:
        scores = Future[Scores]()
        with self._adding:
            self._waiting.append((graph, scores))
        with self._turn:
            if not scores.done():
                self._score_waiting()
        return scores.result()

    def _score_waiting(self) -> None:
        with self._adding:
            taken, self._waiting = self._waiting, []
        try:
            found = self.scorer.score_many([graph for graph, _ in taken])
        except Exception as error:  # of one of them, which must not take the others with it
            if len(taken) == 1:
                taken[0][1].set_exception(error)
                return
            for graph, scores in taken:
                self._alone(graph, scores)
            return
        for (_, scores), these in zip(taken, found, strict=True):
            scores.set_result(these)

    def _alone(self, graph: Graph, scores: "Future[Scores]") -> None:
        try:
            scores.set_result(self.scorer(graph))
        except Exception as error:  # told to whoever asked
            scores.set_exception(error)
