"""From a network of too many things to one of a map's size: who stands for whom.

Routers of one site become one node. Where there are still too many, or no sites are known, those
with the most links stay, and each of the others joins the nearest of them. Peerings of one gateway,
and destinations of neighbouring addresses, join where they would lie upon each other.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network

from gsid_service.records import Entity

AT_MOST = 300  # routers that a map shows one by one
CLUSTERS = 100  # nodes for them, where there are more
NEAR = 60  # routers about one that is looked for
PEERINGS = 8  # about one gateway
NETWORKS = 52  # in the two columns

Neighbours = Mapping[str, Sequence[str]]


def neighbours(links: Iterable[tuple[str, ...]]) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    for a, b in links:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return {name: sorted(others) for name, others in found.items()}


def heads(routers: Sequence[Entity], beside: Neighbours, at_most: int) -> dict[str, str]:
    """For each router the one that stands for it; itself where all have room."""
    if len(routers) <= at_most:
        return {router.id: router.id for router in routers}
    first: dict[tuple[float, float], str] = {}
    for router in sorted(routers, key=lambda r: (-len(beside.get(r.id, ())), r.id)):
        if router.position is not None:
            first.setdefault(router.position, router.id)
    site = {r.id: first[r.position] if r.position else r.id for r in routers}
    sites = set(site.values())
    if len(sites) <= at_most:
        return site
    between = ((site[a], site[b]) for a in beside for b in beside[a] if site[a] != site[b])
    joined = neighbours(between)
    ranked = sorted(sites, key=lambda name: (-len(joined.get(name, ())), name))
    near = _nearest(ranked[:at_most], ranked, joined)
    return {name: near[site[name]] for name in site}


def _nearest(chosen: Sequence[str], names: Iterable[str], beside: Neighbours) -> dict[str, str]:
    found = {name: name for name in chosen}
    waiting = deque(chosen)
    while waiting:
        name = waiting.popleft()
        for other in beside.get(name, ()):
            if other not in found:
                found[other] = found[name]
                waiting.append(other)
    return {name: found.get(name, chosen[0]) for name in names}


def around(centres: Sequence[str], beside: Neighbours, at_most: int = NEAR) -> set[str]:
    """The routers nearest to some, themselves included."""
    found, waiting = set(centres[:at_most]), deque(centres)
    while waiting and len(found) < at_most:
        for other in beside.get(waiting.popleft(), ()):
            if other not in found and len(found) < at_most:
                found.add(other)
                waiting.append(other)
    return found


def peerings(at: Mapping[str, str], at_most: int) -> dict[str, str]:
    """For each peering the one that stands for it, given the node `at` which each hangs."""
    hanging: dict[str, list[str]] = {}
    for name in sorted(at):
        hanging.setdefault(at[name], []).append(name)
    return {
        name: name if len(names) <= at_most else names[0]
        for names in hanging.values()
        for name in names
    }


def networks(names: Iterable[str], at_most: int = NETWORKS) -> dict[str, str]:
    """For each destination the one that stands for it, the first of some neighbouring ones."""
    ranked = sorted(names, key=_address)
    size = -(-len(ranked) // at_most)
    return {name: ranked[index - index % size] for index, name in enumerate(ranked)}


def _address(name: str) -> tuple[int, int, str]:
    """As addresses go; what is none comes last."""
    try:
        found = ip_network(name)
    except ValueError:
        return 9, 0, name
    return found.version, int(found.network_address), name
