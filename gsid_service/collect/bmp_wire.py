"""BMP version 3 (RFC 7854) and the BGP messages inside it: bytes in, records out."""

import struct
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

VERSION = 3
HEADER = struct.Struct("!BIB")
PEER = struct.Struct("!BBQ16sI4sII")
OPEN = struct.Struct("!16xHBBHH4sB")
ROUTE_MONITORING, STATISTICS, PEER_DOWN, PEER_UP, INITIATION, TERMINATION = range(6)
LARGEST = 1 << 20  # bytes of a message; one of BGP has 64 KiB at most

IPV6, POST_POLICY, TWO_OCTET = 0x80, 0x40, 0x20  # flags of a peer
GLOBAL_PEER = 0  # neither of a VPN nor the router's own table

AS_TRANS = 23456
CAPABILITIES, FOUR_OCTET_AS, ADD_PATH = 2, 65, 69
ORIGIN, AS_PATH, MED, LOCAL_PREF, MP_REACH, MP_UNREACH = 1, 2, 4, 5, 14, 15
EXTENDED_LENGTH = 0x10
AS_SET, AS_SEQUENCE = 1, 2
UNICAST = 1
BITS = {1: 32, 2: 128}  # of an address, by family: IPv4, IPv6


class Malformed(ValueError):
    """Bytes that are no such message."""


class Peer(NamedTuple):
    """Whom a message is about: the header that all but the first of them have."""

    kind: int
    distinguisher: int
    address: str
    asn: int
    router_id: str
    post_policy: bool
    two_octet: bool

    @property
    def key(self) -> tuple[int, int, str]:
        return self.kind, self.distinguisher, self.address


class Opened(NamedTuple):
    """What an OPEN message says of its sender."""

    asn: int
    router_id: str
    paths: dict[int, int]  # by family: 1 receives several paths of a prefix, 2 sends, 3 both


class Attributes(NamedTuple):
    as_path_length: int
    origin: int
    local_pref: int | None
    med: int | None


class Update(NamedTuple):
    announced: list[str]
    withdrawn: list[str]
    attributes: Attributes | None


def read_peer(body: bytes) -> tuple[Peer, bytes]:
    """The peer that a message begins with, and the rest of it."""
    if len(body) < PEER.size:
        raise Malformed("a message without a peer")
    kind, flags, distinguisher, address, asn, router_id, _, _ = PEER.unpack_from(body)
    at = IPv6Address(address) if flags & IPV6 else IPv4Address(address[12:])
    peer = Peer(
        kind,
        distinguisher,
        str(at),
        asn,
        str(IPv4Address(router_id)),
        bool(flags & POST_POLICY),
        bool(flags & TWO_OCTET),
    )
    return peer, body[PEER.size :]


def read_peer_up(rest: bytes) -> tuple[Opened, Opened]:
    """What the router said in its OPEN, and what its peer said."""
    opens = rest[20:]  # behind the local address and both ports
    size = _length(opens)
    return _opened(opens[:size]), _opened(opens[size:])


def _length(message: bytes) -> int:
    if len(message) < 19:
        raise Malformed("a BGP message without a header")
    return int.from_bytes(message[16:18], "big")


def _opened(message: bytes) -> Opened:
    if len(message) < OPEN.size:
        raise Malformed("a short OPEN")
    _, _, _, asn, _, router_id, size = OPEN.unpack_from(message)
    paths: dict[int, int] = {}
    for kind, value in _capabilities(message[OPEN.size : OPEN.size + size]):
        if kind == FOUR_OCTET_AS:
            asn = int.from_bytes(value, "big")
        elif kind == ADD_PATH:
            several = struct.iter_unpack("!HBB", value)
            paths |= {family: how for family, safi, how in several if safi == UNICAST}
    return Opened(asn, str(IPv4Address(router_id)), paths)


def _capabilities(options: bytes) -> Iterator[tuple[int, bytes]]:
    for kind, value in _fields(options):
        if kind == CAPABILITIES:
            yield from _fields(value)


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Fields of a type and a length of one octet each."""
    at = 0
    while at + 2 <= len(data):
        kind, size = data[at], data[at + 1]
        yield kind, data[at + 2 : at + 2 + size]
        at += 2 + size


def several_paths(sent: Opened, received: Opened) -> frozenset[int]:
    """The families in which the peer sends several paths of a prefix (RFC 7911)."""
    return frozenset(
        family
        for family, how in received.paths.items()
        if how & 2 and sent.paths.get(family, 0) & 1
    )


def read_update(message: bytes, two_octet: bool, several: frozenset[int], own_as: int) -> Update:
    """What a BGP UPDATE announces and withdraws, of IPv4 and IPv6 unicast."""
    if _length(message) != len(message):
        raise Malformed("a BGP message of another length than it says")
    try:
        return _update(message[19:], 2 if two_octet else 4, several, own_as)
    except (IndexError, struct.error, ValueError) as error:
        raise Malformed(f"an UPDATE that cannot be read: {error}") from None


def _update(body: bytes, wide: int, several: frozenset[int], own_as: int) -> Update:
    size = int.from_bytes(body[:2], "big")
    withdrawn = [*_prefixes(body[2 : 2 + size], 1, 1 in several)]
    at = 2 + size
    size = int.from_bytes(body[at : at + 2], "big")
    found = dict(_attributes(body[at + 2 : at + 2 + size]))
    announced = [*_prefixes(body[at + 2 + size :], 1, 1 in several)]
    for kind, prefixes in ((MP_REACH, announced), (MP_UNREACH, withdrawn)):
        if kind in found:
            prefixes += _multiprotocol(found[kind], kind, several)
    return Update(announced, withdrawn, _stated(found, wide, own_as) if announced else None)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        flags, kind = data[at], data[at + 1]
        wide = 2 if flags & EXTENDED_LENGTH else 1
        size = int.from_bytes(data[at + 2 : at + 2 + wide], "big")
        at += 2 + wide
        if at + size > len(data):
            raise Malformed("an attribute that goes beyond its message")
        yield kind, data[at : at + size]
        at += size


def _multiprotocol(value: bytes, kind: int, several: frozenset[int]) -> Iterator[str]:
    family, safi = struct.unpack_from("!HB", value)
    if safi != UNICAST or family not in BITS:
        return
    start = 3
    if kind == MP_REACH:
        start += 1 + value[3] + 1  # the next hop with its length, and an octet that is reserved
    yield from _prefixes(value[start:], family, family in several)


def _prefixes(data: bytes, family: int, numbered: bool) -> Iterator[str]:
    at = 0
    while at < len(data):
        at += 4 if numbered else 0
        bits = data[at]
        size = (bits + 7) // 8
        if bits > BITS[family] or at + 1 + size > len(data):
            raise Malformed("a prefix that goes beyond its message")
        yield prefix(data[at + 1 : at + 1 + size], bits, family)
        at += 1 + size


def prefix(octets: bytes, bits: int, family: int) -> str:
    address = ip_address(octets.ljust(BITS[family] // 8, b"\0"))
    return f"{address}/{bits}"


def _stated(found: dict[int, bytes], wide: int, own_as: int) -> Attributes:
    numbers = (
        int.from_bytes(found[kind], "big") if kind in found else None
        for kind in (ORIGIN, LOCAL_PREF, MED)
    )
    return _interned(path_length(found.get(AS_PATH, b""), wide, own_as), *numbers)


@lru_cache(maxsize=1 << 14)
def _interned(
    length: int, origin: int | None, local_pref: int | None, med: int | None
) -> Attributes:
    """One object for equal attributes: a full table has few of them, and many prefixes."""
    return Attributes(length, origin or 0, local_pref, med)


def path_length(path: bytes, wide: int, own_as: int) -> int:
    """A set counts once; segments of a confederation count nothing, nor does the AS itself.

    FRR tells a path as it would pass it on, with its own AS before it.
    """
    at = length = 0
    while at < len(path):
        kind, size = path[at], path[at + 1]
        length += {AS_SEQUENCE: size, AS_SET: 1}.get(kind, 0)
        if at == 0 and kind == AS_SEQUENCE and int.from_bytes(path[2 : 2 + wide], "big") == own_as:
            length -= 1
        at += 2 + size * wide
    if at != len(path):
        raise Malformed("an AS path that goes beyond its attribute")
    return max(1, length)
