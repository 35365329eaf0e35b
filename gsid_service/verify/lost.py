"""Sessions that were approved and are gone: whose traffic moved, and what they would repair."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from gsid_service import schema
from gsid_service.records import BrokenIntent, Entity, Fact, FactKey, Intents
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.intents import satisfied
from gsid_service.simulate.plane import build
from gsid_service.verify.proof import NOT_VERIFIED, Proof, moves, paths

SESSIONS = frozenset({schema.EBGP.name, schema.IBGP.name})


def lost(
    seen: tuple[Sequence[Entity], Sequence[Fact]],
    approved: tuple[Sequence[Entity], Sequence[Fact]],
    wanted: Intents,
    always_compare_med: bool,
    in_time: Callable[[], bool] = lambda: True,
) -> dict[FactKey, Proof]:
    """Of each session that is gone, what it does that it is; a peering takes its routes along."""
    sessions = {f.key for f in seen[1] if f.predicate in SESSIONS}
    if all(f.key in sessions for f in approved[1] if f.predicate in SESSIONS):
        return {}
    entities = {entity.id: entity for entity in chain(approved[0], seen[0])}
    there = {fact.key for fact in seen[1]}
    still = {entity.id for entity in approved[0] if entities[entity.id].kind == entity.kind}
    gone = [f for f in approved[1] if f.key not in there and still.issuperset(f.args)]

    def state(more: Iterable[Fact]) -> Forwarding:
        return forward(build(entities.values(), (*seen[1], *more)), always_compare_med)

    actual, found = state(()), {}
    for session in (fact for fact in gone if fact.predicate in SESSIONS):
        back = [fact for fact in gone if fact == session or _hangs_on(fact, session)]
        found[session.key] = _proof(actual, state(back), wanted) if in_time() else NOT_VERIFIED
    return found


def _hangs_on(fact: Fact, session: Fact) -> bool:
    is_route = fact.predicate == schema.BGP_ROUTE.name and session.predicate == schema.EBGP.name
    return is_route and fact.args[0] == session.args[1]


def _proof(actual: Forwarding, right: Forwarding, wanted: Intents) -> Proof:
    broken = tuple(
        BrokenIntent(intent, derived, *paths(intent, right, actual))
        for intents, derived in ((wanted.stated, False), (wanted.derived, True))
        for intent in intents
        if satisfied(intent, actual) is False and satisfied(intent, right)
    )
    breaks = sum(
        satisfied(intent, actual) is True and satisfied(intent, right) is False
        for intent in wanted.stated
    )
    return Proof(broken, moves(right, actual), breaks=breaks)
