"""BMP: what FRR 8.4.4 really sent, and messages that it does not send."""

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gsid_service.collect import bmp_wire
from gsid_service.collect.bmp import Bmp, State
from gsid_service.collect.bmp_wire import Attributes, Malformed
from gsid_service.collect.settings import Router
from gsid_service.collect.source import SourceError
from tests.collect.making import settings, view

# The router F1 of the small lab: reflector, two sessions inside, two external ASes, IPv6 with one.
RECORDED = (Path(__file__).parent / "bmp" / "frr-8.4.4.bin").read_bytes()
NAMES = {"10.0.0.1": "B1", "10.0.0.2": "F1", "10.0.0.3": "F2"}


@pytest.fixture
def bmp(tmp_path: Path) -> Iterator[Bmp]:
    options = {"port": 0, "clients": ["10.0.0.3"], "timeout_seconds": 5}
    router = Router.model_validate({"name": "F1", "source": "bmp", **options})
    listening = Bmp(router, settings(tmp_path, names=NAMES))
    yield listening
    listening.close()


def connect(bmp: Bmp, data: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", bmp.port))
    connection.sendall(data)
    return connection


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        _, size, kind = bmp_wire.HEADER.unpack_from(data, at)
        yield kind, data[at + bmp_wire.HEADER.size : at + size]
        at += size


def told() -> State:
    """The state that the recorded messages lead to."""
    state = State(post_policy=True)
    for kind, body in messages(RECORDED):
        state.take(kind, body)
    return state


def test_what_frr_tells_is_read(bmp: Bmp) -> None:
    with connect(bmp, RECORDED):
        bmp.wait(5)
        seen = view(bmp.read())
    assert seen.role == "route_reflector"
    assert [str(key) for key in seen.facts] == [
        "ibgp(B1, F1)",
        "ibgp(F2, F1)",
        "ebgp(F1, AS65102@F1)",
        "ebgp(F1, AS65103@F1)",
        "bgp_route(AS65102@F1, 198.51.100.0/24)",
        "bgp_route(AS65103@F1, 198.51.100.0/24)",
        "bgp_route(AS65102@F1, 203.0.113.0/24)",
        "bgp_route(AS65103@F1, 203.0.113.0/24)",
        "bgp_route(AS65102@F1, 2001:db8:1::/48)",
    ]
    routes = {str(key): fact.params for key, fact in seen.facts.items()}
    assert routes["bgp_route(AS65102@F1, 203.0.113.0/24)"] == {
        "as_path_length": 3,
        "origin": 0,
        "med": 40,
        "speaker": 0x0A000002,
    }


def test_local_preferences_are_read() -> None:
    """FRR sends them for sessions inside the AS."""
    inside = told().peers[0, 0, "10.0.0.1"]
    assert inside.routes["203.0.113.0/24"] == Attributes(2, 0, 200, 7)


def test_a_peer_that_goes_down_takes_its_routes_along() -> None:
    state = told()
    down = next(body for kind, body in messages(RECORDED) if kind == bmp_wire.PEER_UP)
    assert state.take(bmp_wire.PEER_DOWN, down[: bmp_wire.PEER.size] + b"\x01")
    assert [address for *_, address in state.peers] == [
        "10.0.0.3",
        "172.16.1.2",
        "172.16.2.2",
        "fd02:1::2",
    ]


def test_without_a_connection_nothing_is_said(tmp_path: Path) -> None:
    options = {"port": 0, "timeout_seconds": 0.1}
    router = Router.model_validate({"name": "F1", "source": "bmp", **options})
    with (
        closing(Bmp(router, settings(tmp_path))) as alone,
        pytest.raises(SourceError, match="no router is connected"),
    ):
        alone.read()


def test_a_router_that_comes_back_begins_anew(bmp: Bmp) -> None:
    connect(bmp, RECORDED).close()
    only_one = b"".join(framed(kind, body) for kind, body in [*messages(RECORDED)][:3])
    with connect(bmp, only_one):
        for _ in range(50):
            bmp.wait(0.1)
            if len(bmp.read().facts) == 2:
                return
            time.sleep(0.05)
    raise AssertionError("what the first connection told is still there")


@pytest.mark.parametrize(
    "garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\x03\xff\xff\xff\xff\x00", b"\x03"]
)
def test_garbage_ends_a_connection_and_not_the_listener(bmp: Bmp, garbage: bytes) -> None:
    with connect(bmp, garbage) as connection:
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(5)
        assert connection.recv(1) == b""
    with connect(bmp, RECORDED):
        bmp.wait(5)
        assert len(bmp.read().routes) == 3


def framed(kind: int, body: bytes) -> bytes:
    return bmp_wire.HEADER.pack(3, bmp_wire.HEADER.size + len(body), kind) + body


def update(
    *attributes: bytes, prefixes: bytes = b"\x18\xc0\x00\x02", withdrawn: bytes = b""
) -> bytes:
    """A BGP UPDATE for 192.0.2.0/24 unless said otherwise."""
    path = b"".join(attributes)
    body = struct.pack("!H", len(withdrawn)) + withdrawn
    body += struct.pack("!H", len(path)) + path + prefixes
    return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), 2) + body


def attribute(kind: int, value: bytes) -> bytes:
    return bytes([0x40, kind, len(value)]) + value


def path(kind: int, *numbers: int, wide: str = "I") -> bytes:
    return struct.pack(f"!BB{len(numbers)}{wide}", kind, len(numbers), *numbers)


def read(*attributes: bytes, two_octet: bool = False, **more: bytes) -> bmp_wire.Update:
    return bmp_wire.read_update(update(*attributes, **more), two_octet, frozenset(), 65000)


def test_sets_count_once_and_confederations_nothing() -> None:
    value = path(3, 65001, 65002) + path(2, 65101, 65102) + path(1, 1, 2, 3) + path(4, 65003)
    found = read(attribute(2, value)).attributes
    assert found is not None
    assert found.as_path_length == 3


def test_paths_of_two_octets_are_read() -> None:
    found = read(attribute(2, path(2, 1, 2, 3, wide="H")), two_octet=True).attributes
    assert found is not None
    assert found.as_path_length == 3


def test_all_attributes_are_read() -> None:
    found = read(
        attribute(1, b"\x02"),
        attribute(2, path(2, 65101)),
        attribute(4, struct.pack("!I", 2**32 - 1)),
        attribute(5, struct.pack("!I", 300)),
    )
    assert found == (["192.0.2.0/24"], [], Attributes(1, 2, 300, 2**32 - 1))


def test_withdrawals_are_read() -> None:
    found = read(prefixes=b"", withdrawn=b"\x18\xc0\x00\x02\x0a\x0a\x40")
    assert found == ([], ["192.0.2.0/24", "10.64.0.0/10"], None)


def test_several_paths_of_a_prefix_have_numbers() -> None:
    message = update(attribute(2, path(2, 1)), prefixes=b"\0\0\0\x07\x18\xc0\x00\x02")
    assert bmp_wire.read_update(message, False, frozenset({1}), 65000).announced == ["192.0.2.0/24"]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff" * 19,
        update(prefixes=b"\x21\xc0\x00\x02\x01\x01"),
        update(prefixes=b"\x18\xc0"),
        update(attribute(2, path(2, 1))[:-1]),
        update(bytes([0x40, 2, 200]) + b"\0"),
    ],
)
def test_a_malformed_update_is_refused(message: bytes) -> None:
    with pytest.raises(Malformed):
        bmp_wire.read_update(message, False, frozenset(), 65000)
