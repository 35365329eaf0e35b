"""From alerts to the message that every receiver renders in its own form."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from gsid_service.alert.sentence import sentence
from gsid_service.notices import Group, Message
from gsid_service.notify.batch import Note
from gsid_service.notify.severity import ORDER
from gsid_service.records import Alert, Status

FIRING, RESOLVED, ACKNOWLEDGED = "firing", "resolved", "acknowledged"
WITH_EVIDENCE = 50  # alerts; of the others it is enough to know that they are there
LISTED = 200  # broken intents, and moves, of all alerts of a message together


def compose(kind: str, reason: str, group: Group, notes: Iterable[Note]) -> Message:
    """The gravest alert first."""
    ordered = sorted(notes, key=lambda note: (note.over, *_gravity(note.alert)))
    listed = max(5, LISTED // len(ordered))
    return {
        "group": group.key,
        "cause": group.cause,
        "network": ordered[0].alert.network,
        "kind": kind,
        "reason": reason,
        "status": _status(ordered),
        "alerts": [
            _item(note, listed if place < WITH_EVIDENCE else 0)
            for place, note in enumerate(ordered)
        ],
    }


def document(alert: Alert, listed: int) -> dict[str, Any]:
    """An alert as the API shows it, with so many broken intents and moves at most."""
    return {
        "id": alert.id,
        "network": alert.network,
        "fact": {"predicate": alert.fact.predicate, "args": list(alert.fact.args)},
        "parameter": alert.parameter,
        "status": alert.status.value,
        "severity": alert.severity.value,
        "score": alert.score,
        "summary": sentence(alert),
        "observed": alert.observed,
        "expected": alert.expected,
        "suggested": alert.suggested,
        "verified": alert.verified,
        "broken_intents": [
            {
                "predicate": broken.intent.predicate,
                "args": list(broken.intent.args),
                "holds": broken.intent.holds,
                "source": "derived" if broken.derived else "stated",
                "wanted": list(broken.wanted),
                "actual": list(broken.actual),
            }
            for broken in alert.broken_intents[:listed]
        ],
        "moved": [move._asdict() for move in alert.moved[:listed]],
        "reverting_repairs": alert.reverting_repairs,
        "reverting_breaks": alert.reverting_breaks,
        "unsettled": [network._asdict() for network in alert.unsettled[:listed]],
        "together": [
            {
                "fact": {"predicate": t.fact.predicate, "args": list(t.fact.args)},
                "parameter": t.parameter,
                "value": t.value,
            }
            for t in alert.together
        ],
        "change": alert.under_way.change if alert.under_way else None,
        "snapshot_id": alert.snapshot_id,
        "collector": alert.collector,
        "flapping": alert.flapping,
        "verdict": alert.verdict,
        "first_seen": alert.first_seen.isoformat(),
        "last_seen": alert.last_seen.isoformat(),
        "since": alert.since.isoformat() if alert.since else None,
    } | _left_out(alert, listed)


def labels(item: Message, severity: str | None = None) -> dict[str, str]:
    """What identifies an alert to Alertmanager; nothing in it changes while the alert fires."""
    about = item["gsid"]
    return {
        "alertname": "GSID",
        "network": about["network"],
        "fact": named(about["fact"]),
        "parameter": about["parameter"],
        "severity": severity or about["severity"],
        "alert_id": about["id"],
    }


def annotations(item: Message) -> dict[str, str]:
    about = item["gsid"]
    found = {
        "summary": item["sentence"],
        "observed": str(about["observed"]),
        "expected": "unknown" if about["expected"] is None else str(about["expected"]),
        "score": f"{about['score']:.2f}",
        "collector": about["collector"],
        "broken_intents": str(item["broken"]),
        "moved": str(item["moved"]),
        "reverting_repairs": str(about["reverting_repairs"]),
    }
    return found | ({"flapping": "true"} if about["flapping"] else {})


def fingerprint(item: Message) -> str:
    """The same for the same alert, whatever becomes of it."""
    about = item["gsid"]
    return sha256(f"{about['network']} {about['id']}".encode()).hexdigest()[:16]


def named(fact: Message) -> str:
    return f"{fact['predicate']}({', '.join(fact['args'])})"


def _item(note: Note, listed: int) -> dict[str, Any]:
    alert = note.alert
    return {
        "status": RESOLVED if note.over else FIRING,
        "told_severity": note.told.severity.value if note.told and note.paged else None,
        "sentence": sentence(alert),
        "broken": len(alert.broken_intents),
        "moved": len(alert.moved),
        "gsid": document(alert, listed),
    }


def _left_out(alert: Alert, listed: int) -> dict[str, Any]:
    counts = {"broken_intents": len(alert.broken_intents), "moved": len(alert.moved)}
    more = {name: count - listed for name, count in counts.items() if count > listed}
    return {"left_out": more} if more else {}


def _gravity(alert: Alert) -> tuple[int, float, str]:
    return ORDER.index(alert.severity), -alert.score, alert.id


def _status(notes: Sequence[Note]) -> str:
    standing = [note.alert.status for note in notes if not note.over]
    if not standing:
        return RESOLVED
    return ACKNOWLEDGED if set(standing) == {Status.ACKNOWLEDGED} else FIRING
