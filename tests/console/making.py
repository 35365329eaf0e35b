"""Networks of any size for the map: a ring with chords, gateways, peerings and destinations."""

from gsid_service.records import Entity, Fact
from gsid_service.schema import (
    BGP_ROUTE,
    CONNECTED,
    EBGP,
    EXTERNAL_AS,
    LOCAL_PREF,
    NETWORK,
    OSPF_WEIGHT,
    ROUTER,
)


def ring(routers: int, networks: int = 3) -> tuple[list[Entity], list[Fact]]:
    names = [f"R{index}" for index in range(routers)]
    links = [(names[i], names[(i + 1) % routers]) for i in range(routers if routers > 2 else 1)]
    links += [(names[i], names[i + 7]) for i in range(0, routers - 7, 5)]
    gateways = names[:: max(routers // 4, 1)]
    peerings = [f"AS65001@{gateway}" for gateway in gateways]
    prefixes = [f"10.{index}.0.0/16" for index in range(networks)]
    entities = [Entity(name, ROUTER.name) for name in names]
    entities += [Entity(name, EXTERNAL_AS.name, asn=65001) for name in peerings]
    entities += [Entity(name, NETWORK.name) for name in prefixes]
    facts = [Fact(CONNECTED.name, link, {OSPF_WEIGHT.name: 10}) for link in links]
    facts += [Fact(EBGP.name, pair) for pair in zip(gateways, peerings, strict=True)]
    facts += [
        Fact(BGP_ROUTE.name, (peering, prefix), {LOCAL_PREF.name: 100})
        for peering in peerings
        for prefix in prefixes
    ]
    return entities, facts
