"""The short form of the soak: seconds, few networks, much happens; the books must add up."""

from pathlib import Path
from typing import Any

import pytest

from tests.fault.soak import collecting
from tests.fault.soak.run import Soak
from tests.fault.soak.table import MEBIBYTE, read, table
from tests.flow.server import need_model

NETWORKS, SECONDS, PACE, SEED = 4, 6.0, 300, 34  # soon several mistakes that do harm
ROUGH = {"LATE": 0.3, "LATE_BY": 1.0, "DOUBLED": 0.3, "COMPLETE_EVERY": 1.0, "SILENT_EVERY": 5.0}
GROWTH_AT_MOST, MEMORY_AT_MOST = 64 * MEBIBYTE, 1024 * MEBIBYTE


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    need_model()
    folder = tmp_path_factory.mktemp("soak")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ROUGH.items():
            patch.setattr(collecting, name, value)
        soak = Soak(NETWORKS, seed=SEED, slice_seconds=2, out=folder, pace=PACE)
        return folder / "rows.jsonl", soak.run(SECONDS)


def test_every_harmful_mistake_is_paged_or_listed_as_missed(
    soaked: tuple[Path, dict[str, Any]],
) -> None:
    rows, summary = soaked
    made = read(rows, "mistake")
    assert len(made) == summary["mistakes"] > 0
    assert summary["harmful"] > 0
    outcomes = ("harmful_paged", "harmful_minor_only", "harmful_missed")
    assert summary["harmful"] == sum(summary[name] for name in outcomes)
    assert summary["harmful"] - summary["harmful_paged"] == len(summary["missed"])
    assert summary["harmful_paged"] > 0


def test_every_page_is_about_something(soaked: tuple[Path, dict[str, Any]]) -> None:
    rows, summary = soaked
    pages = read(rows, "page")
    kinds = ("pages_right", "pages_neither", "pages_wrong")
    assert len(pages) == summary["pages"] == sum(summary[name] for name in kinds)
    assert len(summary["wrong_pages"]) == summary["pages_wrong"]
    assert sum(one["pages"] for one in summary["slices"]) == summary["pages"]
    assert sum(one["harmful"] for one in summary["slices"]) == summary["harmful"]


def test_late_doubled_and_overtaken_snapshots_leave_the_state_right(
    soaked: tuple[Path, dict[str, Any]],
) -> None:
    _, summary = soaked
    on_their_way = summary["snapshots"]
    assert on_their_way["sent"] > 2 * NETWORKS
    assert min(on_their_way["late"], on_their_way["doubled"], on_their_way["overtaken"]) > 0
    assert summary["networks_that_differ"] == []
    assert summary["refused"] == []


def test_memory_stays_and_no_round_fails(soaked: tuple[Path, dict[str, Any]]) -> None:
    rows, summary = soaked
    first, last = read(rows, "sample")[0], read(rows, "sample")[-1]
    assert last["memory"] < MEMORY_AT_MOST
    assert last["memory"] - first["memory"] < GROWTH_AT_MOST
    assert last["rounds"] > first["rounds"]
    assert last["failed_rounds"] == 0
    assert table(rows, summary).count("\n| 0") == len(summary["slices"])
