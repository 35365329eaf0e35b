"""Pages are counted as the NOC meets them, by detectors of which it is known what they say."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gsid_service.__main__ import app
from gsid_service.diagnose.diagnosis import Detector
from gsid_service.evaluate.documents import to_line
from gsid_service.evaluate.pages import Pages, pages
from gsid_service.evaluate.settings import in_operation
from gsid_service.evaluate.splits import EDITION, SPLITS
from gsid_service.evaluate.verified import NO_HURRY
from gsid_service.records import Graph, Scores
from gsid_service.score.rivals import diff
from gsid_service.simulate.cases import Case
from gsid_service.simulate.faults import with_values

CASES = [SPLITS["operations-standard"].case("pages", i) for i in range(24)]
MEANT = [case for case in CASES if case.changes and not case.labels]
SINGLE = [case for case in CASES if len(case.labels) == 1]


def knowing(case: Case) -> Detector:
    """A detector that knows what is wrong in one case."""

    def judge(graph: Graph) -> Scores:
        scores = diff(graph)
        wrong = in_operation(case).wrong.astype(np.float64)
        return replace(scores, probability=np.where(np.isnan(scores.probability), np.nan, wrong))

    return judge


def known(cases: list[Case]) -> Pages:
    return sum((pages([case], knowing(case)) for case in cases), Pages())


def test_who_knows_what_is_wrong_pages_nothing_else() -> None:
    found = known(CASES)
    assert found.mistaken == 0
    assert found.harmful == sum(sum(case.harmful()) for case in CASES)
    assert 0.9 * found.harmful < found.found <= found.harmful  # some only show with another one
    assert found.meant == sum(not case.labels for case in CASES) == found.silent


def test_who_knows_what_is_wrong_names_it_first() -> None:
    found = known(SINGLE)
    assert 0 < found.breaking <= len(SINGLE)
    assert found.named == found.breaking


def test_flagging_every_change_pages_for_what_was_meant() -> None:
    found = pages(MEANT, diff)
    assert found.meant == len(MEANT)
    assert found.mistaken > 0
    assert found.silent < found.meant
    assert found.document()["precision"] == 0
    assert found.document()["recall"] is None


def test_a_wrong_expectation_is_not_right() -> None:
    """Where a mistake lies upon a legitimate change, the approved value is not the right one."""
    case = next(case for case in SINGLE if known([case]).expected)
    (label,) = case.labels
    assert case.baseline
    entities, approved = case.baseline
    another = label.expected - 1 if label.expected > 1 else label.expected + 1
    older = with_values(approved, {(label.fact, label.parameter): another})
    found = known([replace(case, baseline=(entities, older))])
    assert found.expected == 0


@pytest.fixture
def few_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cases in place of the 300, as a cache has them."""
    monkeypatch.setenv("GSID_CACHE", str(tmp_path))
    path = tmp_path / f"operations-standard-test-300.{EDITION}.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(map(to_line, CASES[:3]))


@pytest.mark.usefixtures("few_cases")
def test_the_command_prints_them() -> None:
    result = CliRunner().invoke(
        app, ["evaluate", "--setting", "operations", "--pages", "--methods", "verifier", "--json"]
    )
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)
    assert (row["split"], row["method"]) == ("standard", "verifier")
    assert row["harmful"] == sum(sum(case.harmful()) for case in CASES[:3])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--setting", "reference"), "--pages: needs --setting operations"),
        (("--setting", "operations", "--methods", "diff"), "none of the methods has the verifier"),
    ],
)
def test_what_cannot_be_paged_is_refused(arguments: tuple[str, ...], why: str) -> None:
    result = CliRunner().invoke(app, ["evaluate", "--pages", *arguments])
    assert result.exit_code == 2
    assert why in result.output


def test_a_lower_threshold_pages_what_scores_less() -> None:
    def doubting(graph: Graph) -> Scores:
        scores = diff(graph)
        return replace(scores, probability=0.5 * scores.probability)

    usual, low = pages(MEANT, doubting), pages(MEANT, doubting, replace(NO_HURRY, certain=0.5))
    assert usual.mistaken == 0 < low.mistaken
    assert low.silent < usual.silent
