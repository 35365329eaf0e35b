"""Reverts: what putting one approved value back would do to the intents and the traffic.

A wrong value that breaks intents is recognised by this: with the approved value in its place they
hold again. A change that was meant repairs nothing, and its revert may break what it was made for.
"""

from collections.abc import Iterable, Iterator, Sequence

from gsid_service.records import Fact, FactKey, Revert
from gsid_service.schema import SCHEMA
from gsid_service.simulate import intents
from gsid_service.simulate.faults import slots
from gsid_service.simulate.forwarding import Forwarding, moved
from gsid_service.simulate.revise import Rows

AT_MOST = 64  # changed values, which bounds the work
LARGEST_SHARE = 0.3  # of all values; where more changed, each alone says little

Slot = tuple[FactKey, str]


def reverts(
    facts: Sequence[Fact],
    baseline: Iterable[Fact],
    wanted: Sequence[Fact],
    observed: Forwarding,
    at_most: int = AT_MOST,
) -> dict[Slot, Revert]:
    """For each value that changed since the baseline, if they are not too many."""
    different = list(changed(facts, baseline))
    values = sum(map(len, slots(facts).values()))
    if len(different) > min(at_most, LARGEST_SHARE * values):
        return {}
    rows = Rows.of(observed, facts)
    before = [intents.satisfied(intent, observed) for intent in wanted]
    networks = [set(intents.traffic(intent)[1]) for intent in wanted]
    names = observed.plane.networks
    found: dict[Slot, Revert] = {}
    for key, parameter, value in different:
        revised = rows.revise(observed, key, parameter, value)
        if revised is None:
            continue
        moves = moved(observed, revised.state)
        elsewhere = {names[network] for network, _ in moves}
        elsewhere |= {names[k] for k in revised.networks if not revised.state.is_stable(k)}
        outcomes = [
            (held, intents.satisfied(intent, revised.state))
            for intent, held, concerned in zip(wanted, before, networks, strict=True)
            if concerned & elsewhere
        ]
        found[key, parameter] = Revert(
            repairs=outcomes.count((False, True)),
            breaks=outcomes.count((True, False)),
            moves=len(moves),
        )
    return found


def changed(facts: Iterable[Fact], baseline: Iterable[Fact]) -> Iterator[tuple[FactKey, str, int]]:
    """Every monitored value that differs from the baseline's, with the baseline's."""
    approved = {fact.key: fact.params for fact in baseline}
    for fact in facts:
        before = approved.get(fact.key)
        if before is None or before == fact.params:
            continue
        for parameter in SCHEMA.fact[fact.predicate].parameters:
            now, then = (p.get(parameter.name, parameter.default) for p in (fact.params, before))
            if parameter.monitored and then is not None and now != then:
                yield fact.key, parameter.name, then
