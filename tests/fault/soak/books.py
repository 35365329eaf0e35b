"""The books of a soak: every mistake that was made, every page that came, and whether it was right.

A page is an alert that is major or critical. It is right for a wrong value that moves traffic, a
mistake of the service for a value that is right, and neither for a wrong value that moves none.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from time import time
from typing import Any, TextIO

from gsid_service.records import FactKey, Severity, Status
from tests.fault.soak.agenda import SCALE
from tests.fault.soak.life import Life, Mistake, Slot

PAGED = (Severity.CRITICAL.value, Severity.MAJOR.value)
HARMFUL, HARMLESS, RIGHT = "harmful", "harmless", "right"
SLACK = (
    5.0  # seconds after the service was told of a repair, in which a round may still be under way
)
RESOLVED_WITHIN = 30.0


@dataclass
class Page:
    """An alert that paged, and what it was about."""

    came_at: float
    network: str
    alert: str
    about: str  # harmful, harmless or right
    severity: str
    fact: str
    parameter: str
    observed: Any
    expected: Any
    right: int | None  # the value that it should have, where it is wrong
    score: float
    broken: int
    repairs: int
    moved: int
    change: str | None  # the announced change in whose window it came
    touched: str  # how the value last changed by intention
    beside: int  # mistakes that stand in the network
    formerly: list[int] = field(default_factory=list)  # wrong values that it had before


class Books:
    def __init__(self, path: Path, lives: Sequence[Life]) -> None:
        self.lives = {life.name: life for life in lives}
        self.file: TextIO = path.open("w")
        self.begun = 0.0
        self.mistakes: list[Mistake] = []
        self.pages: list[Page] = []
        self.alerts: dict[tuple[str, str], str] = {}  # the severity of each opening
        self.paged: set[tuple[str, str]] = set()
        self.opened: Counter[str] = Counter()  # by severity
        self.firing: dict[str, dict[str, Any]] = {}
        self.changes: Counter[str] = Counter()
        self.refusals: list[str] = []

    def write(self, row: str, at: float, **more: Any) -> None:
        line = {"row": row, "minute": round((at - self.begun) / 60, 3), **more}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def refused(self, why: str) -> None:
        self.refusals.append(why)
        self.write("refused", time(), why=why)

    # What the service was told

    def told(self, network: str, values: dict[Slot, int], now: float) -> None:
        """What a collector's view holds, now that the service has it."""
        for mistake in self.mistakes:
            if mistake.network != network or mistake.gone_at or mistake.slot not in values:
                continue
            stands = values[mistake.slot] == mistake.wrong
            if stands and mistake.told_at is None:
                mistake.told_at = now
            if not stands and mistake.ended_at:
                mistake.gone_at = now

    # What the service says

    def look(self, alerts: Iterable[dict[str, Any]], now: float) -> list[Page]:
        """New pages among alerts, open and resolved."""
        return [page for alert in alerts if (page := self._look(alert, now)) is not None]

    def _look(self, alert: dict[str, Any], now: float) -> Page | None:
        key, since = (alert["id"], alert["since"]), _seconds(alert["since"])
        if since < self.begun:
            return None
        mistake = self._mistake(alert, since)
        if key not in self.alerts:
            self.opened[alert["severity"]] += 1
        fresh = key not in self.alerts
        self.alerts[key] = alert["severity"]
        if mistake is not None:
            mistake.alerted_at = mistake.alerted_at or since
            self._settle(mistake, alert)
        if alert["severity"] not in PAGED or key in self.paged:
            return None
        self.paged.add(key)
        page = self._page(alert, mistake, since if fresh else now)
        if mistake is not None:
            mistake.paged_at = mistake.paged_at or page.came_at
        self.pages.append(page)
        self.write("page", page.came_at, **asdict(page))
        return page

    def _settle(self, mistake: Mistake, alert: dict[str, Any]) -> None:
        if alert["status"] == Status.RESOLVED.value:
            if mistake.ended_at and mistake.resolved_at is None:
                mistake.resolved_at = _seconds(alert["last_seen"])
        elif mistake.ended_at is None:
            mistake.resolved_at = None

    def _mistake(self, alert: dict[str, Any], at: float) -> Mistake | None:
        """The mistake that an alert which opened then is about."""
        slot = slot_of(alert)
        mine = [m for m in self.mistakes if m.network == alert["network"] and m.slot == slot]
        return next((m for m in reversed(mine) if m.stands_at(at, SLACK)), None)

    def _page(self, alert: dict[str, Any], mistake: Mistake | None, at: float) -> Page:
        life, slot = self.lives[alert["network"]], slot_of(alert)
        about = RIGHT if mistake is None else HARMFUL if mistake.harmful else HARMLESS
        return Page(
            came_at=at,
            network=life.name,
            alert=alert["id"],
            about=about,
            severity=alert["severity"],
            fact=str(slot[0]),
            parameter=slot[1],
            observed=alert["observed"],
            expected=alert["expected"],
            right=None if mistake is None else mistake.right,
            score=round(alert["score"], 3),
            broken=len(alert["broken_intents"]),
            repairs=alert["reverting_repairs"],
            moved=len(alert["moved"]),
            change=alert["change"],
            touched=life.touched.get(slot, ""),
            beside=len(life.wrong),
            formerly=[m.wrong for m in self.mistakes if _is_of(m, life, slot)],
        )

    # What it comes to

    def slice(self, begin: float, end: float) -> dict[str, Any]:
        """What happened between two moments; mistakes count where they were made."""
        made = [m for m in self.mistakes if begin <= m.made_at < end]
        pages = [p for p in self.pages if begin <= p.came_at < end]
        ends = {"begin": round(begin - self.begun), "end": round(end - self.begun)}
        return ends | _counted(made, pages)

    def summary(self) -> dict[str, Any]:
        total = _counted(self.mistakes, self.pages)
        return total | {
            "precision": _share(total["pages_right"], total["pages_right"] + total["pages_wrong"]),
            "recall": _share(total["harmful_paged"], total["harmful"]),
            "alerts": dict(self.opened),
            "changes": dict(self.changes),
            "seconds_to_page": _spread(
                m.paged_at - m.told_at for m in self.mistakes if m.paged_at and m.told_at
            ),
            "minutes_of_life_to_page": _spread(
                (m.paged_at - m.made_at) * SCALE / 60 for m in self.mistakes if m.paged_at
            ),
            "resolved": _resolved(self.mistakes),
            "missed": [_described(m) for m in self.mistakes if m.harmful and not m.paged_at],
            "refused": self.refusals,
            "wrong_pages": [asdict(p) for p in self.pages if p.about == RIGHT],
        }


def slot_of(alert: dict[str, Any]) -> Slot:
    fact = alert["fact"]
    return FactKey(fact["predicate"], tuple(fact["args"])), alert["parameter"]


def _counted(made: Sequence[Mistake], pages: Sequence[Page]) -> dict[str, int]:
    harmful = [m for m in made if m.harmful]
    return {
        "mistakes": len(made),
        "harmful": len(harmful),
        "harmful_paged": sum(m.paged_at is not None for m in harmful),
        "harmful_minor_only": sum(m.paged_at is None and m.alerted_at is not None for m in harmful),
        "harmful_missed": sum(m.alerted_at is None for m in harmful),
        "harmless_alerted": sum(m.alerted_at is not None for m in made if not m.harmful),
        "pages": len(pages),
        "pages_right": sum(p.about == HARMFUL for p in pages),
        "pages_right_value": sum(p.about == HARMFUL and p.expected == p.right for p in pages),
        "pages_neither": sum(p.about == HARMLESS for p in pages),
        "pages_wrong": sum(p.about == RIGHT for p in pages),
    }


def _resolved(mistakes: Sequence[Mistake]) -> dict[str, Any]:
    """Of what was alerted and then put right: whether and when the alert resolved."""
    over = [m for m in mistakes if m.alerted_at and m.gone_at]
    took = [m.resolved_at - m.gone_at for m in over if m.resolved_at and m.gone_at]
    late = [seconds for seconds in took if seconds > RESOLVED_WITHIN]
    return {
        "put_right": len(over),
        "resolved": len(took),
        "later_than_30_s": len(late),
        "seconds": _spread(took),
    }


def _described(mistake: Mistake) -> dict[str, Any]:
    told = asdict(mistake) | {"fact": str(mistake.slot[0]), "parameter": mistake.slot[1]}
    del told["slot"]
    return told | {"outcome": "minor only" if mistake.alerted_at else "no alert"}


def _is_of(mistake: Mistake, life: Life, slot: Slot) -> bool:
    return mistake.network == life.name and mistake.slot == slot


def _spread(values: Iterable[float]) -> dict[str, float]:
    ordered = sorted(values)
    if not ordered:
        return {}
    nth = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    return {
        "count": len(ordered),
        "median": round(median(ordered), 2),
        "p95": round(nth, 2),
        "max": round(ordered[-1], 2),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
