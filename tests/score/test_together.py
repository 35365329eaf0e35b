"""Graphs of several threads in one pass score as each alone, and one that fails fails alone."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gsid_service.evaluate import settings
from gsid_service.evaluate.splits import SPLITS
from gsid_service.records import Graph, Scores
from gsid_service.score.scorer import Scorer, load
from gsid_service.score.together import Together

MODEL = Path(__file__).parents[2] / "models" / "gsid-1"
CASES = [SPLITS["operations-standard"].case("together", n) for n in range(6)]
GRAPHS = [settings.in_operation(case).graph for case in CASES]


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return load(MODEL)


class Noting:
    """A scorer that notes how many graphs came at once, and takes its time with the first."""

    def __init__(self, scorer: Scorer, bad: Graph | None = None) -> None:
        self.scorer, self.bad, self.passes = scorer, bad, list[int]()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def score_many(self, graphs: Sequence[Graph]) -> list[Scores]:
        self.passes.append(len(graphs))
        self.begun.set()
        assert self.go_on.wait(10)
        if any(graph is self.bad for graph in graphs):
            raise ArithmeticError("it cannot be")
        return self.scorer.score_many(graphs)

    def __call__(self, graph: Graph) -> Scores:
        return self.score_many([graph])[0]


def at_the_same_time(noting: Any) -> list[Scores | BaseException]:
    """All graphs, of which the later ones come while the first is scored."""
    together = Together(noting)
    with ThreadPoolExecutor(len(GRAPHS)) as threads:
        first = threads.submit(together, GRAPHS[0])
        assert noting.begun.wait(10)
        rest = [threads.submit(together, graph) for graph in GRAPHS[1:]]
        while len(together._waiting) < len(rest):
            threading.Event().wait(0.01)
        noting.go_on.set()
        return [f.exception() or f.result() for f in (first, *rest)]


def test_what_comes_meanwhile_goes_together(scorer: Scorer) -> None:
    noting = Noting(scorer)
    found = at_the_same_time(noting)
    assert noting.passes == [1, len(GRAPHS) - 1]
    for graph, scores in zip(GRAPHS, found, strict=True):
        assert isinstance(scores, Scores)
        np.testing.assert_allclose(scores.probability, scorer(graph).probability, atol=1e-5)


def test_a_graph_that_cannot_be_scored_takes_no_other_with_it(scorer: Scorer) -> None:
    found = at_the_same_time(Noting(scorer, bad=GRAPHS[2]))
    failed = [isinstance(scores, ArithmeticError) for scores in found]
    assert failed == [graph is GRAPHS[2] for graph in GRAPHS]
