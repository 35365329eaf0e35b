"""From the rows of a soak to a table that a person can read."""

import json
from pathlib import Path
from typing import Any

MEBIBYTE = 1 << 20
COUNTED = ("harmful", "harmful_paged", "pages_right", "pages_neither", "pages_wrong")
HEAD = (
    "| minutes | harmful | paged | pages right | neither | wrong | memory, MiB | database, MiB "
    "| rows | ms a round | core |",
    "|" + "---|" * 11,
)


def read(path: Path, row: str) -> list[dict[str, Any]]:
    """The rows of a kind; the last line of a run that was cut short may be half a line."""
    text = path.read_text()
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [line for line in lines if line["row"] == row]


def slices(path: Path, minutes: float = 5) -> list[dict[str, Any]]:
    """What happened in each so many minutes, from the rows alone: also of a run that was cut short.

    Mistakes count where they were made, and pages where they came.
    """
    mistakes, pages = read(path, "mistake"), read(path, "page")
    paged = {id(m): any(_is_about(p, m) for p in pages) for m in mistakes}
    last = max(s["minute"] for s in read(path, "sample"))
    found = []
    for number in range(max(1, round(last / minutes))):
        begin, end = number * minutes, (number + 1) * minutes
        made = [m for m in mistakes if begin <= m["minute"] < end and m["harmful"]]
        came = [p["about"] for p in pages if begin <= p["minute"] < end]
        found.append(
            {
                "begin": 60 * begin,
                "end": 60 * min(end, last),
                "harmful": len(made),
                "harmful_paged": sum(paged[id(m)] for m in made),
                "pages_right": came.count("harmful"),
                "pages_neither": came.count("harmless"),
                "pages_wrong": came.count("right"),
            }
        )
    return found


def _is_about(page: dict[str, Any], mistake: dict[str, Any]) -> bool:
    same = all(page[name] == mistake[name] for name in ("network", "fact", "parameter", "right"))
    return same and page["minute"] >= mistake["minute"]


def table(path: Path, summary: dict[str, Any]) -> str:
    """A line a slice; mistakes and pages that came in it, and what the server took at its end."""
    samples = read(path, "sample")
    lines = [_line(one, samples) for one in summary["slices"]]
    told = {key: value for key, value in summary.items() if key != "slices"}
    return "\n".join([*HEAD, *lines]) + "\n\n" + json.dumps(told, indent=1) + "\n"


def _line(one: dict[str, Any], samples: list[dict[str, Any]]) -> str:
    begin, end = one["begin"] / 60, one["end"] / 60
    cells = [f"{begin:.0f}–{end:.0f}", *(str(one[name]) for name in COUNTED)]
    cells += _taken([s for s in samples if begin <= s["minute"] <= end])
    return f"| {' | '.join(cells)} |"


def _taken(samples: list[dict[str, Any]]) -> list[str]:
    if len(samples) < 2:
        return [""] * 5
    first, last = samples[0], samples[-1]
    rounds = max(1, last["rounds"] - first["rounds"])
    seconds = 60 * (last["minute"] - first["minute"])
    return [
        f"{last['memory'] / MEBIBYTE:.0f}",
        f"{last['database'] / MEBIBYTE:.1f}",
        f"{sum(last['rows'].values())}",
        f"{1000 * (last['round_seconds'] - first['round_seconds']) / rounds:.0f}",
        f"{(last['processor'] - first['processor']) / seconds:.2f}",
    ]
