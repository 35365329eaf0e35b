"""From a network of too many routers to one of a map's size.

Routers of one site become one node. Where there are still too many, or no sites are known, those
with the most links stay, and each of the others joins the nearest of them.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from gsid_service.records import Entity

AT_MOST = 300  # routers that a map shows one by one
NEAR = 60  # routers about one that is looked for

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
    by_site = {r.id: first[r.position] if r.position else r.id for r in routers}
    if len(set(by_site.values())) <= at_most:
        return by_site
    ranked = sorted(by_site, key=lambda name: (-len(beside.get(name, ())), name))
    return _nearest(ranked[:at_most], ranked, beside)


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


def around(centre: str, beside: Neighbours, at_most: int = NEAR) -> set[str]:
    """The routers nearest to one, itself included."""
    found, waiting = {centre}, deque([centre])
    while waiting and len(found) < at_most:
        for other in beside.get(waiting.popleft(), ()):
            if other not in found and len(found) < at_most:
                found.add(other)
                waiting.append(other)
    return found
