"""The plot of a soak: what was injected and paged, precision and recall, memory and the database.

python -m tests.fault.soak.plot build/soak docs/results/soak.svg
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator

from gsid_service.evaluate.plots import COLOURS
from tests.fault.soak.table import MEBIBYTE, read, slices

BLUE, ORANGE, GREEN, *_, BLACK = COLOURS
Rows = list[dict[str, Any]]


def plot(folder: Path, path: Path) -> None:
    rows = folder / "rows.jsonl"
    counted, samples = slices(rows), read(rows, "sample")
    figure = Figure(figsize=(9, 6), layout="constrained")
    panels: list[Axes] = list(figure.subplots(2, 2, sharex=True).flat)
    _counts(panels[0], counted)
    _shares(panels[1], counted)
    _sizes(panels[2], samples, "memory", "memory of all processes, MiB")
    _sizes(panels[3], samples, "database", "database with its write-ahead log, MiB")
    _in_use(panels[3], samples)
    for panel in panels:
        panel.grid(alpha=0.3)
        panel.set_ylim(0, 1.3 * panel.get_ylim()[1])
        panel.xaxis.set_major_locator(MultipleLocator(10))
    figure.supxlabel("minutes; each is two hours of the networks' life", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def _counts(panel: Axes, counted: Rows) -> None:
    """Harmful mistakes by where they were made, and pages for right values by when they came."""
    width = (counted[0]["end"] - counted[0]["begin"]) / 60
    left = [s["begin"] / 60 for s in counted]
    paged = [s["harmful_paged"] for s in counted]
    not_paged = [s["harmful"] - s["harmful_paged"] for s in counted]
    bars = {"width": 0.42 * width, "align": "edge"}
    panel.bar(left, paged, color=BLUE, label="harmful mistakes, paged", **bars)
    panel.bar(left, not_paged, bottom=paged, color=ORANGE, hatch="//", label="not paged", **bars)
    beside = [x + 0.45 * width for x in left]
    wrong = [s["pages_wrong"] for s in counted]
    panel.bar(beside, wrong, color=BLACK, label="pages for right values", **bars)
    panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_title("in each 5 minutes", fontsize=9)
    panel.legend(fontsize=8, loc="upper right")


def _shares(panel: Axes, counted: Rows) -> None:
    minutes = [s["end"] / 60 for s in counted]
    precision = list(_running(counted, "pages_right", ("pages_right", "pages_wrong")))
    recall = list(_running(counted, "harmful_paged", ("harmful",)))
    panel.plot(minutes, precision, color=GREEN, marker="D", markersize=4, label="precision")
    panel.plot(minutes, recall, color=BLUE, marker="o", markersize=4, label="recall")
    panel.set_title("since the beginning", fontsize=9)
    panel.legend(fontsize=8, loc="lower right")


def _running(counted: Rows, part: str, whole: tuple[str, ...]) -> Iterator[float]:
    """A share over all slices so far; not a number where there is nothing yet."""
    top = bottom = 0
    for one in counted:
        top, bottom = top + one[part], bottom + sum(one[name] for name in whole)
        yield top / bottom if bottom else float("nan")


def _sizes(panel: Axes, samples: Rows, name: str, title: str) -> None:
    minutes = [s["minute"] for s in samples]
    panel.plot(minutes, [s[name] / MEBIBYTE for s in samples], color=BLUE, label=name)
    panel.set_title(title, fontsize=9)


def _in_use(panel: Axes, samples: Rows) -> None:
    minutes = [s["minute"] for s in samples]
    used = [s["in_use"] / MEBIBYTE for s in samples]
    panel.plot(minutes, used, color=ORANGE, ls="--", label="of it in use")
    panel.legend(fontsize=8, loc="lower right")


if __name__ == "__main__":
    plot(Path(sys.argv[1]), Path(sys.argv[2]))
