"""From a router's BGP sessions to facts: who reflects to whom, and which peerings lead outside."""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from gsid_service.records import Entity, Fact
from gsid_service.schema import EBGP, EXTERNAL_AS, IBGP, ROUTE_REFLECTOR, ROUTER

SET = re.compile(r"\{[^}]*\}")
OF_CONFEDERATION = re.compile(r"\([^)]*\)|\[[^]]*\]")


class Session(NamedTuple):
    """A session that is up, as one of its ends sees it."""

    address: str  # of the other end
    asn: int
    router: str  # the name of the other end
    internal: bool  # inside the network: of the same AS, or of the same confederation
    confederate: bool = False
    client: bool = False  # the other end is a client of this router


def path_length(path: str) -> int:
    """Of an AS path as routers print it: a set counts once, a confederation's part not at all."""
    return max(1, len(SET.sub(" set ", OF_CONFEDERATION.sub(" ", path)).split()))


def peerings(name: str, sessions: Iterable[Session]) -> dict[str, str]:
    """The entity of each external session, by its address.

    An AS has one for IPv4 and IPv6 together; a second session with it has its address in the name.
    """
    found: dict[str, str] = {}
    taken: set[tuple[int, int]] = set()
    outside = [session for session in sessions if not session.internal]
    for session in sorted(outside, key=lambda s: _order(s.address)):
        place = session.asn, ip_address(session.address).version
        further = f"/{session.address}" if place in taken else ""
        found[session.address] = f"AS{session.asn}@{name}{further}"
        taken.add(place)
    return found


def _order(address: str) -> tuple[int, int]:
    parsed = ip_address(address)
    return parsed.version, int(parsed)


def sessions_as_facts(
    name: str, sessions: list[Session], mesh: bool
) -> tuple[str, list[Entity], list[Fact]]:
    """The role of a router, and its sessions with the entities they name.

    A router with clients is a reflector, and what it peers with besides are reflectors (perhaps
    without clients). A border router of a confederation passes everything on to those inside, as a
    reflector does to its clients. Others leave it to the reflectors to name their clients, unless
    they are said to be part of a full `mesh`.
    """
    inside = [session for session in sessions if session.internal]
    border = any(session.confederate for session in inside)
    reflects = mesh or border or any(session.client for session in inside)
    role = ROUTE_REFLECTOR.name if reflects else ROUTER.name
    entities, facts = [Entity(name, role)], []
    for session in inside if reflects else ():
        if session.client or (border and not session.confederate):
            entities.append(Entity(session.router, ROUTER.name))
            facts.append(Fact(IBGP.name, (session.router, name)))
        else:
            entities.append(Entity(session.router, ROUTE_REFLECTOR.name))
            first, second = sorted((name, session.router))
            facts.append(Fact(IBGP.name, (first, second)))
    asns = {session.address: session.asn for session in sessions}
    for address, peering in peerings(name, sessions).items():
        entities.append(Entity(peering, EXTERNAL_AS.name, asns[address]))
        facts.append(Fact(EBGP.name, (name, peering)))
    # A peer has a session for IPv4 and one for IPv6, and is one peer.
    return role, entities, list({fact.key: fact for fact in facts}.values())
