"""Plots of results, readable in print and by the colour-blind: each line has its own mark too."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gsid_service.schema import SCHEMA

mpl.use("svg")
mpl.rcParams["svg.fonttype"] = "none"  # text stays text
mpl.rcParams["svg.hashsalt"] = "gsid"  # and the same plot the same file
PARAMETERS = [parameter.name for parameter in SCHEMA.monitored]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKS = "osD^vX*"
Documents = Sequence[dict[str, Any]]


def by_rate(rows: Documents, path: Path) -> None:
    """F1 against the anomaly rate: a panel a data set and parameter, a line a method.

    `rows` are those of `gsid evaluate --json`; several seeds become a mean and a band.
    """
    data_sets, methods = _unique(rows, "split"), _unique(rows, "method")
    figure, panels = _panels(len(data_sets), len(PARAMETERS))
    for line, data_set in zip(panels, data_sets, strict=True):
        for panel, parameter in zip(line, PARAMETERS, strict=True):
            panel.set_title(f"{parameter}, {data_set}", fontsize=9)
            panel.set_xscale("log")
            rates = sorted({row["rate"] for row in rows})
            panel.set_xticks(rates, [f"{100 * rate:g}" for rate in rates], fontsize=8)
            panel.minorticks_off()
            for i, method in enumerate(methods):
                points: dict[float, list[float]] = defaultdict(list)
                for row in rows:
                    if (row["split"], row["method"], row["parameter"]) == (
                        data_set,
                        method,
                        parameter,
                    ):
                        points[row["rate"]].append(row["f1"] or 0.0)
                _line(panel, sorted(points), [points[x] for x in sorted(points)], i, method)
    _finish(figure, panels, "values replaced, %", "F1", path)


def convergence(runs: Documents, path: Path, parameters: Sequence[str] = PARAMETERS) -> None:
    """F1 on the training batches against the step, a panel a parameter, a line a method."""
    figure, panels = _panels(1, len(parameters))
    for panel, parameter in zip(panels[0], parameters, strict=True):
        panel.set_title(parameter, fontsize=9)
        _curves(panel, runs, parameter)
    _finish(figure, panels, "training step", "F1", path)


def sensitivity(groups: Mapping[str, Documents], parameter: str, path: Path) -> None:
    """F1 of one parameter against the step, a panel for each thing that is varied."""
    figure, panels = _panels(1, len(groups))
    for panel, (title, runs) in zip(panels[0], groups.items(), strict=True):
        panel.set_title(f"{parameter}, by {title}", fontsize=9)
        _curves(panel, runs, parameter)
        panel.legend(fontsize=8, loc="lower right")
    _finish(figure, panels, "training step", "F1", path, legend=False)


def study(runs: Documents, unlearned: Documents, folder: Path) -> None:
    """All plots of a study, or of as much of it as was done."""
    compared = [run for run in runs if "=" not in run["method"]]
    full = max(run["rate"] for run in compared)
    for rate in _unique(compared, "rate"):
        there = [run for run in compared if run["rate"] == rate]
        convergence(there, folder / f"convergence-{100 * rate:.0f}.svg")
    rows = [row for run in compared if run["rate"] == full for row in run["rows"]]
    by_rate([*rows, *unlearned], folder / "rates.svg")
    usual = compared[0]  # GSID, the first seed
    groups = {
        title: [
            usual | {"method": f"{key} = {value}"},
            *(run for run in runs if run["method"].startswith(f"{key} =")),
        ]
        for key, (title, value) in VARIED.items()
    }
    sensitivity(groups, PARAMETERS[0], folder / "sensitivity.svg")


VARIED = {"n": ("width n", 64), "H": ("heads H", 8), "L": ("layers L", 2)}


def _curves(panel: Axes, runs: Documents, parameter: str) -> None:
    for i, method in enumerate(_unique(runs, "method")):
        curves = [run["curve"] for run in runs if run["method"] == method]
        steps = [epoch["step"] for epoch in curves[0]]
        values = zip(*([e["f1"][parameter] for e in curve] for curve in curves), strict=True)
        _line(panel, steps, list(map(list, values)), i, method)


def _line(
    panel: Axes, x: Sequence[float], y: Sequence[Sequence[float]], number: int, label: str
) -> None:
    """The mean, with a band of one deviation where there are several."""
    mean, spread = np.array([np.mean(v) for v in y]), np.array([np.std(v) for v in y])
    colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
    every = max(1, len(x) // 8)
    panel.plot(
        x, mean, color=colour, marker=mark, markevery=every, markersize=4, lw=1.4, label=label
    )
    panel.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0)


def _panels(rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(3.1 * columns, 2.5 * rows + 0.7), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for panel in axes.flat:
        panel.grid(alpha=0.3)
        panel.set_ylim(0, 1.02)
    return figure, axes.tolist()


def _finish(
    figure: Figure, panels: list[list[Axes]], x: str, y: str, path: Path, legend: bool = True
) -> None:
    figure.supxlabel(x, fontsize=9)
    figure.supylabel(y, fontsize=9)
    if legend:
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata=None if path.suffix != ".svg" else {"Date": None})


def _unique(rows: Iterable[dict[str, Any]], field: str) -> list[Any]:
    return list(dict.fromkeys(row[field] for row in rows))
