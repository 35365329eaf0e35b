"""What a value breaks: the state as it is, against that with the expected value in its place."""

from collections.abc import Sequence
from typing import NamedTuple

from gsid_service import schema
from gsid_service.records import BrokenIntent, FactKey, Intents, Move, Severity
from gsid_service.simulate import intents
from gsid_service.simulate.forwarding import Forwarding, moved
from gsid_service.simulate.revise import Rows

GRAVE = frozenset({schema.REACHABLE.name, schema.TRAFFIC_ISOLATION.name})


class Proof(NamedTuple):
    """Broken intents that hold with the expected value, and traffic that the value moved."""

    broken: tuple[BrokenIntent, ...] = ()
    moved: tuple[Move, ...] = ()

    @property
    def severity(self) -> Severity:
        if any(found.intent.predicate in GRAVE for found in self.broken):
            return Severity.CRITICAL
        return Severity.MAJOR if self.broken or self.moved else Severity.MINOR


def prove(
    observed: Forwarding,
    rows: Rows,
    wanted: Intents,
    key: FactKey,
    parameter: str,
    expected: int,
) -> Proof:
    revised = rows.revise(observed, key, parameter, expected)
    if revised is None:
        return Proof()
    right = revised.state
    broken = tuple(
        BrokenIntent(intent, derived)
        for listed, derived in ((wanted.stated, False), (wanted.derived, True))
        for intent in intents.broken(listed, observed)
        if intents.satisfied(intent, right) is True
    )
    names, plane = observed.hop_names, observed.plane
    return Proof(
        broken,
        tuple(
            Move(
                plane.routers[router],
                plane.networks[network],
                _named(names, right.next_hops(network, router)),
                _named(names, observed.next_hops(network, router)),
            )
            for network, router in moved(right, observed)
            if observed.is_stable(network) and right.is_stable(network)
        ),
    )


def _named(names: Sequence[str], hops: Sequence[int]) -> str | None:
    return ", ".join(names[hop] for hop in hops) or None
