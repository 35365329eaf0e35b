"""What a value breaks: the state as it is, against that with the expected value in its place."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gsid_service import schema
from gsid_service.records import BrokenIntent, Fact, Move, Restored, Severity, Unsettled
from gsid_service.simulate import intents
from gsid_service.simulate.forwarding import Forwarding, moved
from gsid_service.simulate.reverts import Bench, Trial
from gsid_service.verify.repair import Suspect

GRAVE = frozenset({schema.REACHABLE.name, schema.TRAFFIC_ISOLATION.name})
MOVES_AT_MOST = 10_000  # that a proof lists, which bounds an alert


class Proof(NamedTuple):
    """Broken intents that hold with the expected value, and traffic that the value moved."""

    broken: tuple[BrokenIntent, ...] = ()
    moved: tuple[Move, ...] = ()
    together: tuple[Restored, ...] = ()  # what else must be put back for that
    verified: bool = True
    breaks: int = 0  # stated intents that hold, and would not with the expected value
    unsettled: tuple[Unsettled, ...] = ()  # of these networks nothing is proved
    suffices: bool = True  # whether putting it back repairs that, or others have to be back before
    vanished: tuple[str, ...] = ()  # routers that are put back with it: nothing is left of them

    @property
    def severity(self) -> Severity:
        if any(found.intent.predicate in GRAVE for found in self.broken):
            return Severity.CRITICAL
        return Severity.MAJOR if self.broken or self.moved else Severity.MINOR


NOT_VERIFIED = Proof(verified=False)


def prove(observed: Bench, suspect: Suspect, others: Iterable[Suspect] = ()) -> Proof:
    """What the value does by itself; where that is nothing, what it does once others are right.

    `others` are the values that are to be put back besides.
    """
    alone = observed.attempt(suspect.value)
    if alone is None:
        return Proof()
    unsettled = _unsettled(observed, alone)
    if not alone.moves:
        touched = set(alone.networks)
        others = [o for o in others if o != suspect and _touches(observed, o, touched)]
        if others:
            return _prove_together(observed, suspect, others)._replace(unsettled=unsettled)
    right = observed.state_of(alone)
    broken = _broken(observed, alone.repairs, observed.state, right)
    moving = moves(right, observed.state)
    return Proof(broken, moving, breaks=_breaks(observed, alone), unsettled=unsettled)


def _touches(bench: Bench, suspect: Suspect, networks: set[int]) -> bool:
    trial = bench.attempt(suspect.value)
    return trial is not None and not networks.isdisjoint(trial.networks)


def _prove_together(observed: Bench, suspect: Suspect, others: Sequence[Suspect]) -> Proof:
    values = [other.value for other in others]
    without, right = observed.attempt(*values), observed.attempt(*values, suspect.value)
    if without is None or right is None:
        return Proof()
    repaired = [place for place in right.repairs if place not in without.repairs]
    then, now = observed.state_of(right), observed.state_of(without)
    moving = moves(then, now)
    if not moving:
        return Proof()
    together = tuple(Restored(*value) for value in values)
    broken = _broken(observed, repaired, now, then)
    return Proof(broken, moving, together, breaks=_breaks(observed, right))


def _unsettled(bench: Bench, trial: Trial) -> tuple[Unsettled, ...]:
    """Networks without one outcome, as it is or with the values tried: they prove nothing."""
    actual, right = bench.state, bench.state_of(trial)
    return tuple(
        Unsettled(actual.plane.networks[k], now=not actual.is_stable(k))
        for k in trial.networks
        if not (actual.is_stable(k) and right.is_stable(k))
    )


def _breaks(bench: Bench, trial: Trial) -> int:
    return sum(place < bench.stated for place in trial.breaks)


def _broken(
    bench: Bench, places: Iterable[int], actual: Forwarding, right: Forwarding
) -> tuple[BrokenIntent, ...]:
    return tuple(
        BrokenIntent(
            bench.wanted[place],
            place >= bench.stated,
            *paths(bench.wanted[place], right, actual),
        )
        for place in places
    )


def paths(
    intent: Fact, right: Forwarding, actual: Forwarding
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The path of an intent's traffic in two states; of two networks, the one that moved."""
    source, networks = intents.traffic(intent)
    ways = [(_path(right, source, n), _path(actual, source, n)) for n in networks]
    return next((way for way in ways if way[0] != way[1]), ways[0])


def _path(state: Forwarding, source: str, network: str) -> tuple[str, ...]:
    router, k = state.plane.router_index.get(source), state.plane.network_index.get(network)
    if router is None or k is None:
        return ()
    return tuple(state.hop_names[hop] for hop in state.walk(k, router))


def moves(before: Forwarding, after: Forwarding) -> tuple[Move, ...]:
    """Every (router, network) whose next hops differ, where both states have one outcome; the
    first of them where they are very many."""
    plane = after.plane
    return tuple(
        Move(
            plane.routers[router],
            plane.networks[network],
            _named(before, network, router),
            _named(after, network, router),
        )
        for network, router in moved(before, after)[:MOVES_AT_MOST].tolist()
        if before.is_stable(network) and after.is_stable(network)
    )


def _named(state: Forwarding, network: int, router: int) -> str | None:
    hops = state.next_hops(network, router)
    return ", ".join(state.hop_names[hop] for hop in hops) or None
