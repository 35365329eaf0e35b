"""What would be paged: operations cases diagnosed as the service does, counted as the NOC would.

A value is paged where its score opens an alert and it is proved to break an intent or to move
traffic. Of the anomalies those that move traffic count, and a page for one that moves none is
neither right nor wrong.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

from gsid_service.diagnose.diagnosis import Detector, Diagnosis, Judged, Limits, diagnose
from gsid_service.diagnose.known import Observation, Reference
from gsid_service.evaluate.verified import NO_HURRY
from gsid_service.records import Intents, Severity
from gsid_service.simulate.cases import Case

ORDER = tuple(Severity)  # the gravest first


@dataclass(frozen=True, slots=True)
class Pages:
    """Counts over cases; those of several add up."""

    harmful: int = 0  # anomalies that move traffic
    found: int = 0  # of these, how many are paged
    mistaken: int = 0  # pages for values that are right
    meant: int = 0  # cases with legitimate changes only
    silent: int = 0  # of these, how many page nobody
    breaking: int = 0  # cases with one anomaly, which breaks an intent
    named: int = 0  # of these, how many name it first
    expected: int = 0  # and with the value that it should have

    def __add__(self, other: Self) -> "Pages":
        return Pages(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def document(self) -> dict[str, Any]:
        return {
            "precision": _share(self.found, self.found + self.mistaken),
            "recall": _share(self.found, self.harmful),
            "silence": _share(self.silent, self.meant),
            "first_named": _share(self.named, self.breaking),
            "first_expected": _share(self.expected, self.breaking),
        } | {f.name: getattr(self, f.name) for f in fields(self)}


def pages(cases: Iterable[Case], detector: Detector, limits: Limits = NO_HURRY) -> Pages:
    """A detector's scores are the prior of the search for reverts, as in the service."""
    found = (
        _of(case, diagnose(_observation(case), detector, limits), limits.certain) for case in cases
    )
    return sum(found, Pages())


def _observation(case: Case) -> Observation:
    if case.baseline is None:
        raise ValueError("a clean case has no baseline: pages need an operations split")
    reference = Reference(*case.baseline)
    wanted = Intents(case.intents)
    return Observation(case.entities, case.facts, wanted, reference, always_compare_med=True)


def _of(case: Case, diagnosis: Diagnosis, certain: float) -> Pages:
    wrong = {(label.fact, label.parameter): label for label in case.labels}
    harmful = {slot for slot, moves in zip(wrong, case.harmful(), strict=True) if moves}
    paged = _paged(diagnosis, certain)
    breaking = len(wrong) == 1 and bool(diagnosis.broken)
    first = wrong.get(paged[0].slot) if breaking and paged else None
    return Pages(
        harmful=len(harmful),
        found=sum(value.slot in harmful for value in paged),
        mistaken=sum(value.slot not in wrong for value in paged),
        meant=not wrong,
        silent=not wrong and not paged,
        breaking=breaking,
        named=first is not None,
        expected=first is not None and first.expected == paged[0].expected,
    )


def _paged(diagnosis: Diagnosis, certain: float) -> list[Judged]:
    """In the order in which a page lists them: the gravest first, then the most suspicious."""
    grave = {slot: ORDER.index(proof.severity) for slot, proof in diagnosis.proofs.items()}
    found = [
        value
        for value in diagnosis.values
        if value.score >= certain
        and value.observed != value.expected
        and grave.get(value.slot, ORDER.index(Severity.MINOR)) < ORDER.index(Severity.MINOR)
    ]
    return sorted(found, key=lambda value: (grave[value.slot], -value.score))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
