"""Sessions that were approved and are gone: whose traffic moved, and what they would repair.

A peering takes its routes along, and a router of which nobody tells anything any more all that it
had. Where so much is gone that a session by itself repairs nothing, its proof is what would still
be missing if all else were back.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import chain

from gsid_service import schema
from gsid_service.records import BrokenIntent, Entity, Fact, FactKey, Intents
from gsid_service.simulate.forwarding import Forwarding, forward
from gsid_service.simulate.intents import satisfied
from gsid_service.simulate.plane import build
from gsid_service.verify.proof import NOT_VERIFIED, Proof, moves, paths

SESSIONS = frozenset({schema.EBGP.name, schema.IBGP.name})
ROUTERS = frozenset(kind.name for kind in schema.ROUTERS)


def lost(
    seen: tuple[Sequence[Entity], Sequence[Fact]],
    approved: tuple[Sequence[Entity], Sequence[Fact]],
    wanted: Intents,
    always_compare_med: bool,
    in_time: Callable[[], bool] = lambda: True,
) -> dict[FactKey, Proof]:
    """Of each session that is gone, what it does that it is."""
    sessions = {f.key for f in seen[1] if f.predicate in SESSIONS}
    if all(f.key in sessions for f in approved[1] if f.predicate in SESSIONS):
        return {}
    entities = {entity.id: entity for entity in chain(approved[0], seen[0])}
    there, standing = {fact.key for fact in seen[1]}, {end for f in seen[1] for end in f.args}
    still = {entity.id for entity in approved[0] if entities[entity.id].kind == entity.kind}
    gone = [f for f in approved[1] if f.key not in there and still.issuperset(f.args)]

    def state(more: Iterable[Fact]) -> Forwarding:
        return forward(build(entities.values(), (*seen[1], *more)), always_compare_med)

    @cache
    def whole() -> Forwarding:
        return state(gone)

    actual, found = state(()), {}
    for session in (fact for fact in gone if fact.predicate in SESSIONS):
        if not in_time():
            found[session.key] = NOT_VERIFIED
            continue
        back = _taken_along(session, gone, standing)
        proof = _proof(actual, state(back), wanted)
        if len(back) < len(gone) and not (proof.broken or proof.moved):
            with_it = {fact.key for fact in back}
            others = [fact for fact in gone if fact.key not in with_it]
            proof = _among_others(actual, state(others), whole(), wanted)
        ends = (end for end in session.args if end not in standing)
        routers = tuple(end for end in ends if entities[end].kind in ROUTERS)
        found[session.key] = proof._replace(vanished=routers)
    return found


def _taken_along(session: Fact, gone: Sequence[Fact], standing: Collection[str]) -> list[Fact]:
    """What is gone with a session, itself included."""
    ends = set(session.args).difference(standing)
    peers = {
        fact.args[1]
        for fact in gone
        if fact.predicate == schema.EBGP.name and (fact == session or fact.args[0] in ends)
    }
    return [
        fact
        for fact in gone
        if fact == session
        or not ends.isdisjoint(fact.args)
        or (fact.predicate == schema.BGP_ROUTE.name and fact.args[0] in peers)
    ]


def _among_others(
    actual: Forwarding, without: Forwarding, whole: Forwarding, wanted: Intents
) -> Proof:
    """Of what is broken and moved, all that still would be if everything else were back."""
    missing = _proof(without, whole, wanted)
    broken = tuple(
        found._replace(actual=paths(found.intent, whole, actual)[1])
        for found in missing.broken
        if satisfied(found.intent, actual) is False
    )
    touched = {(move.router, move.network) for move in missing.moved}
    moving = (m for m in moves(whole, actual) if (m.router, m.network) in touched)
    return Proof(broken, tuple(moving), suffices=False)


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
