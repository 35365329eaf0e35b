"""Inhibition: what a broken link or session explains, and what only silent collectors see, is held.

A link that is gone explains the value of its other direction. A session is gone together with its
exclusive entity, the peering, and so it explains all that the peering announces.
"""

from collections.abc import Iterable

from gsid_service.notify.batch import Batch, Held, Note
from gsid_service.records import FactKey
from gsid_service.schema import SCHEMA


def inhibit(batch: Batch) -> Batch:
    stale, missing = batch.situation.stale, batch.situation.missing

    def why(note: Note) -> Held | None:
        alert = note.alert
        if (alert.fact.digest, alert.parameter) in stale:
            return f"only silent collectors see it, such as {alert.collector}", None
        root = explains(missing, alert.fact)
        return None if root is None else (f"{root} is gone, which explains it", None)

    return batch.holding("inhibition", why)


def explains(missing: Iterable[FactKey], fact: FactKey) -> FactKey | None:
    """What is gone, and a fact hangs on."""
    return next((gone for gone in missing if gone != fact and _carries(gone, fact)), None)


def _carries(gone: FactKey, fact: FactKey) -> bool:
    if set(gone.args) == set(fact.args):
        return True
    kind = next((kind for kind in SCHEMA.facts if kind.name == gone.predicate), None)
    return (
        kind is not None and kind.exclusive is not None and gone.args[kind.exclusive] in fact.args
    )
