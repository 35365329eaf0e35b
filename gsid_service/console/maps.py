"""The drawings of networks, remembered until something of them changes."""

import threading
from typing import Any

from gsid_service.app import Service
from gsid_service.console.drawing import Drawing, draw
from gsid_service.console.layout import Places
from gsid_service.records import Entity, FactKey
from gsid_service.store import approvals, scores

KEPT = 32  # drawings and layouts that are remembered
SHOWN_FROM = 0.05  # a score that is worth telling the map
Outline = tuple[tuple[Entity, ...], list[FactKey]]


class Maps:
    """Draws networks; what was approved has its place by that alone, so that nothing jumps."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lock = threading.Lock()  # a drawing is made once, however many ask for it
        self._drawings: dict[tuple[str, int, str | None], tuple[Outline, Drawing]] = {}
        self._approved: dict[tuple[str, int], Places] = {}

    def of(self, name: str, centre: str | None = None) -> Drawing:
        """What is drawn; it stays the same as long as no entity or fact comes or goes."""
        with self.service.database.read() as connection:
            approval = approvals.newest(connection, name)
        _, merged = self.service.merged(name)
        outline = merged.entities, [fact.key for fact in merged.facts]
        with self._lock:
            known = self._drawings.get((name, approval, centre))
            if known is None or known[0] != outline:
                fixed = self._fixed(name, approval)
                known = outline, draw(merged.entities, merged.facts, fixed, centre)
                _remember(self._drawings, (name, approval, centre), known)
        return known[1]

    def _fixed(self, name: str, approval: int) -> Places:
        if (found := self._approved.get((name, approval))) is None:
            with self.service.database.read() as connection:
                baseline = approvals.baseline(connection, name)
            found = draw(baseline.entities, baseline.facts, {}).places if baseline else {}
            _remember(self._approved, (name, approval), found)
        return found

    def marks(self, name: str) -> dict[str, Any]:
        """The scores worth a colour, and which facts are stale, by the facts' digests."""
        with self.service.database.read() as connection:
            found = scores.marks(connection, name, SHOWN_FROM)
        highest: dict[str, float] = {}
        for fact, score, _ in found:
            highest[fact] = max(round(score, 3), highest.get(fact, 0.0))
        return {"scores": highest, "stale": sorted({fact for fact, _, stale in found if stale})}


def _remember(kept: dict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    if len(kept) > KEPT:
        kept.pop(next(iter(kept)))
