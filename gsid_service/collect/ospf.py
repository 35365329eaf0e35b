"""From OSPF's link states to `connected` facts: whom each router names, and at which cost."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gsid_service.records import Entity, Fact
from gsid_service.schema import CONNECTED, OSPF_WEIGHT, ROUTER


class Link(NamedTuple):
    """What a router's own link state says: it reaches a router, or a shared network, at a cost."""

    router: str
    end: str
    cost: int


def connected(
    links: Iterable[Link],
    attached: Mapping[str, Iterable[str]],
    names: Mapping[str, str],
    only: str | None = None,
) -> tuple[tuple[Entity, ...], tuple[Fact, ...]]:
    """The routers and links of an area, or those that begin at the router named `only`.

    `attached` has the routers of each shared network. As in OSPF itself a link counts where both
    ends name it: the link state of a router that is gone outlives it by up to an hour. Of parallel
    links the cheapest counts.
    """
    costs: dict[tuple[str, str], int] = {}
    for router, end, cost in links:
        for neighbour in attached.get(end, [end]):
            if neighbour != router:
                costs[router, neighbour] = min(cost, costs.get((router, neighbour), cost))
    facts = tuple(
        Fact(CONNECTED.name, (names.get(a, a), names.get(b, b)), {OSPF_WEIGHT.name: cost})
        for (a, b), cost in costs.items()
        if (b, a) in costs and only in {None, names.get(a, a)}
    )
    known = dict.fromkeys(arg for fact in facts for arg in fact.args)
    return tuple(Entity(name, ROUTER.name) for name in known), facts
