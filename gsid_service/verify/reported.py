"""Forwarding as routers report it, against what their values lead to."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from gsid_service.records import Fact, FactKey, Move
from gsid_service.simulate.forwarding import Forwarding


def differences(
    state: Forwarding, reported: Iterable[Fact], stale: Collection[FactKey] = ()
) -> list[Move]:
    """Where a router forwards otherwise: configured, but not in operation.

    `before` is what the values lead to, `after` what the router reports. A router that reports
    nothing for a network says nothing, and neither does a network without one stable outcome.
    """
    said: dict[tuple[str, str], set[str]] = defaultdict(set)
    for fact in reported:
        if fact.key not in stale:
            router, network, hop = fact.args
            said[router, network].add(hop)
    found = []
    for (router, network), hops in sorted(said.items()):
        r, k = state.plane.router_index.get(router), state.plane.network_index.get(network)
        if r is None or k is None or not state.is_stable(k):
            continue
        expected = {state.hop_names[hop] for hop in state.next_hops(k, r)}
        # A router may use fewer of several equal ways than it could, and more of them with
        # multipath between gateways, which is not simulated.
        if not (hops <= expected or set() < expected <= hops):
            before, after = (", ".join(sorted(names)) or None for names in (expected, hops))
            found.append(Move(router, network, before, after))
    return found
