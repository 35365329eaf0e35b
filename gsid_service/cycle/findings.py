"""From a diagnosis to what is kept of a network: scores, findings and a summary."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gsid_service.alert.decide import Finding
from gsid_service.assemble.merge import Merged
from gsid_service.diagnose.diagnosis import Diagnosis, Judged
from gsid_service.records import Fact, FactKey, Intents, Move, Severity
from gsid_service.schema import FWD
from gsid_service.store.approvals import Baseline
from gsid_service.store.scored import Scored
from gsid_service.verify.proof import Proof

NEXT_HOP = "next_hop"  # the parameter of an alert about forwarding as it is reported
SESSION, UP, DOWN = "session", "up", "down"  # that of one about a session, and its values
MISSING_AT_MOST = 1000  # facts that are gone, remembered to explain alerts


class Told(NamedTuple):
    """The snapshot that says something, and whose it is."""

    snapshot_id: str
    collector: str


def scored(diagnosis: Diagnosis, merged: Merged) -> Scored:
    """The scores, as they are kept."""
    values = diagnosis.values
    stale = [fact in merged.stale for fact in values.facts] if merged.stale else False
    marks = np.broadcast_to(np.array(stale, dtype=np.bool_), len(values.facts))
    return Scored(values.facts, values.observed, values.approved, values.score, marks)


def number_of(fact: FactKey, merged: Merged) -> int:
    """The snapshot that last stated a fact."""
    return int(merged.source[fact].snapshot_id[1:])


def finding(name: str, value: Judged, diagnosis: Diagnosis, merged: Merged) -> Finding:
    proof, source = diagnosis.proofs.get(value.slot, Proof()), merged.source[value.fact]
    return Finding(
        network=name,
        fact=value.fact,
        parameter=value.parameter,
        score=value.score,
        observed=value.observed,
        expected=value.expected,
        stale=value.fact in merged.stale,
        snapshot_id=source.snapshot_id,
        collector=source.collector,
        severity=proof.severity,
        broken_intents=proof.broken,
        moved=proof.moved,
        reverting_repairs=len(proof.broken),
        reverting_breaks=proof.breaks,
        together=proof.together,
        unsettled=proof.unsettled,
        verified=proof.verified,
        suggested=value.expected != value.approved,
    )


def misrouted(name: str, difference: Move, merged: Merged) -> Finding | None:
    """A router that does not forward as configured; what it reports stands for the value."""
    reported = (difference.after or "").split(", ")[0]
    key = FactKey(FWD.name, (difference.router, difference.network, reported))
    source = merged.source.get(key)
    if source is None:
        return None
    return Finding(
        network=name,
        fact=key,
        parameter=NEXT_HOP,
        score=1.0,
        observed=difference.after or "",
        expected=difference.before,
        stale=False,
        snapshot_id=source.snapshot_id,
        collector=source.collector,
        severity=Severity.MAJOR,
        moved=(difference,),
    )


def sessions(
    name: str,
    lost: Mapping[FactKey, Proof],
    merged: Merged,
    watched: Iterable[tuple[FactKey, str]],
    newest: Told,
) -> dict[tuple[FactKey, str], Finding]:
    """Sessions that are down, and those of `watched` alerts that are up again.

    That one is down is said by whoever last spoke of its router; where nobody does any more, by the
    newest snapshot.
    """
    down = (
        _session_down(name, session, proof, _speaking_of(session.args[0], merged) or newest)
        for session, proof in lost.items()
        if proof.broken or proof.moved or not proof.verified
    )
    up = (
        _session_up(name, session, merged)
        for session, parameter in watched
        if parameter == SESSION and session in merged.source
    )
    return {(found.fact, SESSION): found for found in (*down, *up)}


def _session_down(name: str, session: FactKey, proof: Proof, told: Told) -> Finding:
    return Finding(
        network=name,
        fact=session,
        parameter=SESSION,
        score=1.0,
        observed=_down(proof),
        expected=UP,
        stale=False,
        snapshot_id=told.snapshot_id,
        collector=told.collector,
        severity=proof.severity,
        broken_intents=proof.broken,
        moved=proof.moved,
        reverting_repairs=len(proof.broken) if proof.suffices else 0,
        reverting_breaks=proof.breaks,
        verified=proof.verified,
    )


def _down(proof: Proof) -> str:
    routers = " and ".join(proof.vanished)
    return f"{DOWN}, as all of {routers} is" if routers else DOWN


def _session_up(name: str, session: FactKey, merged: Merged) -> Finding:
    source = merged.source[session]
    return Finding(
        network=name,
        fact=session,
        parameter=SESSION,
        score=0.0,
        observed=UP,
        expected=UP,
        stale=session in merged.stale,
        snapshot_id=source.snapshot_id,
        collector=source.collector,
    )


def _speaking_of(entity: str, merged: Merged) -> Told | None:
    """The newest statement about an entity."""
    about = (stated for stated in merged.source.values() if entity in stated.fact.args)
    newest = max(about, key=lambda stated: stated.observed_at, default=None)
    return None if newest is None else Told(newest.snapshot_id, newest.collector)


def summary_of(
    merged: Merged, wanted: Intents, diagnosis: Diagnosis, baseline: Baseline | None
) -> dict[str, Any]:
    """What is shown of a network beside its scores."""
    stated = {intent.key for intent in wanted.stated}
    return {
        "entities": len(merged.entities),
        "facts": len(merged.facts),
        "stale_facts": len(merged.stale),
        "conflicts": [
            {
                "fact": {"predicate": c.fact.predicate, "args": list(c.fact.args)},
                "parameter": c.parameter,
                "values": [{"collector": who, "value": value} for who, value in c.values],
                "reason": c.reason,
            }
            for c in merged.conflicts[:100]
        ],
        "broken_intents": _by_kind((*wanted.stated, *wanted.derived), diagnosis.broken),
        "broken_stated": _by_kind(
            wanted.stated, [intent for intent in diagnosis.broken if intent.key in stated]
        ),
        "baseline": None if baseline is None else baseline.approval.number,
        "missing": _missing(merged, baseline)[:MISSING_AT_MOST],
    }


def _by_kind(wanted: Iterable[Fact], broken: Iterable[Fact]) -> dict[str, int]:
    """How many intents of each kind do not hold, and 0 for a kind of which all do."""
    kinds = dict.fromkeys(sorted({intent.predicate for intent in wanted}), 0)
    return kinds | Counter(intent.predicate for intent in broken)


def _missing(merged: Merged, baseline: Baseline | None) -> list[FactKey]:
    """What was approved, and is no longer there."""
    keys = (fact.key for fact in baseline.facts) if baseline else ()
    return [key for key in keys if key not in merged.source]
