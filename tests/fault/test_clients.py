"""Clients that are slow, many, huge or curious: others are served meanwhile, and nobody gets in."""

import gzip
import os
import re
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from gsid_service.api.connections import allow_files
from gsid_service.store import tokens
from tests.api.conftest import add_token
from tests.flow.network import small
from tests.flow.server import Server, running
from tests.waiting import until

CONNECTIONS = 500  # as it is set by default
IDLE_SECONDS, REQUEST_SECONDS = 1, 3
SLOW_WITHIN = 2 * IDLE_SECONDS + REQUEST_SECONDS + 8  # on a busy machine
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Where tokens are asked for, and little patience is had."""
    folder = tmp_path_factory.mktemp("clients")
    with running(
        f"sqlite:///{folder / 'gsid.db'}",
        folder,
        GSID_SERVER_IDLE_SECONDS=str(IDLE_SECONDS),
        GSID_SERVER_REQUEST_SECONDS=str(REQUEST_SECONDS),
    ) as started:
        yield started


@pytest.fixture(scope="module")
def secret(server: Server) -> str:
    """Of a collector."""
    return add_token(server.settings["GSID_DATABASE_URL"], "rr1", tokens.INGEST)


@pytest.fixture(scope="module")
def reader(server: Server, secret: str) -> str:  # noqa: ARG001
    return add_token(server.settings["GSID_DATABASE_URL"], "noc", tokens.READ)


def ask(path: str, *more: str, method: str = "GET") -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *more, "", "")).encode()


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@contextmanager
def connected(server: Server, count: int = 1) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        place = "127.0.0.1", server.port
        yield [
            stack.enter_context(socket.create_connection(place, timeout=10)) for _ in range(count)
        ]


def is_open(connection: socket.socket) -> bool:
    """Whether the other side still holds it, as far as this side has heard."""
    watch = select.poll()
    watch.register(connection, select.POLLIN | select.POLLRDHUP)
    (_, heard) = (watch.poll(0) or [(0, 0)])[0]
    return not heard & (select.POLLRDHUP | select.POLLHUP | select.POLLERR)


def assert_others_are_served(server: Server, secret: str, sequence: int = 1) -> None:
    with httpx.Client(base_url=server.url, headers=bearer(secret), timeout=10) as client:
        assert client.get("/-/ready").status_code == 200
        answer = client.post("/ingest", json=small("honest", "rr1", sequence))
        assert answer.status_code in {200, 202}, answer.text


def test_who_sends_a_byte_now_and_then_holds_a_connection_for_a_short_time_only(
    server: Server, secret: str
) -> None:
    """Before the end of the head, in a body, and in the body of a request that was refused."""
    token = f"Authorization: Bearer {secret}"
    length = ("Content-Type: application/json", "Content-Length: 1000")
    beginnings = (
        b"",
        ask("/-/ready")[:-2] + b"X: ",
        ask("/ingest", token, *length, method="POST"),
        ask("/ingest", *length, method="POST"),
    )
    begun = time.monotonic()
    with connected(server, 5 * len(beginnings)) as slow:
        for number, connection in enumerate(slow):
            connection.sendall(beginnings[number % len(beginnings)])
        while left := [connection for connection in slow if is_open(connection)]:
            assert time.monotonic() - begun < SLOW_WITHIN, f"{len(left)} are still there"
            assert_others_are_served(server, secret)
            for connection in left:
                send(connection, b"x")
            time.sleep(0.2)
        told = b"".join(connection.recv(1000) for connection in slow[2 :: len(beginnings)])
    assert time.monotonic() - begun >= REQUEST_SECONDS
    assert told.startswith(b"HTTP/1.1 503"), "whose body does not come is told so"


def send(connection: socket.socket, data: bytes) -> None:
    try:
        connection.send(data)
    except OSError:  # it is gone, as the next look shows
        return


def test_who_reads_no_answer_holds_a_connection_for_a_short_time_only(
    server: Server, secret: str
) -> None:
    with connected(server, 5) as slow:
        own = {connection.getsockname()[1] for connection in slow}
        for connection in slow:
            connection.sendall(ask("/openapi.json") * 400)
        until(lambda: held(server) >= own)
        deadline = time.monotonic() + SLOW_WITHIN
        while left := held(server) & own:
            assert time.monotonic() < deadline, f"{len(left)} are still there"
            assert_others_are_served(server, secret)
            time.sleep(0.2)


def held(server: Server) -> set[int]:
    """The ports of the clients whose connections the server's process holds; a client that reads
    nothing would not hear of their end."""
    assert server.process is not None
    folder = Path(f"/proc/{server.process.pid}")
    files = {os.readlink(path) for path in (folder / "fd").iterdir() if path.is_symlink()}
    rows = [line.split() for line in (folder / "net/tcp").read_text().splitlines()[1:]]
    return {int(row[2][-4:], 16) for row in rows if f"socket:[{row[9]}]" in files}


def test_a_head_without_end_is_cut_off(server: Server) -> None:
    with connected(server) as (connection,):
        connection.sendall(ask("/-/ready")[:-2])
        with taking_at_most(server, 8 * MEBIBYTE), pytest.raises(OSError, match=r"reset|pipe"):
            connection.sendall(b"X: " + b"x" * 50 * MEBIBYTE)


def test_a_thousand_connections(server: Server, secret: str, reader: str) -> None:
    """Of which the idle ones give way, the oldest first; what is being answered goes on."""
    allow_files()
    with ExitStack() as stack:
        (page,) = stack.enter_context(connected(server))
        page.sendall(ask("/events", f"Cookie: gsid_token={reader}"))
        assert page.recv(1000).startswith(b"HTTP/1.1 200")
        many = stack.enter_context(connected(server, 2 * CONNECTIONS))
        assert_others_are_served(server, secret)
        assert sum(is_open(connection) for connection in many) <= CONNECTIONS
        assert metric(server, reader, "process_open_fds") < CONNECTIONS + 200
        until_closed(many)
        assert is_open(page)
    assert server.logged.count("too many connections") == 1


def until_closed(connections: list[socket.socket]) -> None:
    deadline = time.monotonic() + SLOW_WITHIN
    while any(is_open(connection) for connection in connections):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def metric(server: Server, secret: str, name: str) -> float:
    lines = server.client.get("/metrics", headers=bearer(secret)).text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


@contextmanager
def taking_at_most(server: Server, size: int) -> Iterator[None]:
    """No more memory than before, and so much; at no time."""
    assert server.process is not None
    folder = Path(f"/proc/{server.process.pid}")
    (folder / "clear_refs").write_text("5")  # the peak begins anew
    before = memory(folder, "VmRSS")
    yield
    assert memory(folder, "VmHWM") - before < size


def memory(folder: Path, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", (folder / "status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_a_body_of_200_megabytes(server: Server, secret: str) -> None:
    """Refused by its announced length, or, where there is none, once it is over the limit."""
    kind = bearer(secret) | {"Content-Type": "application/json"}
    chunks = [b"x" * MEBIBYTE] * 200
    with taking_at_most(server, 200 * MEBIBYTE):
        refused = server.client.post("/ingest", content=b"".join(chunks), headers=kind)
        assert refused.status_code == 413
        refused = server.client.post("/ingest", content=iter(chunks), headers=kind)
        assert refused.status_code == 413
    assert_others_are_served(server, secret)


@pytest.mark.parametrize("path", ["/ingest", "/api/v1/networks/n/intents", "/api/v1/silences"])
def test_of_a_stranger_no_large_body_is_read(server: Server, secret: str, path: str) -> None:
    method = "PUT" if path.endswith("intents") else "POST"
    kind = {"Content-Type": "application/json"} | bearer("gsid_wrong")
    with taking_at_most(server, 20 * MEBIBYTE):
        body = b"[" + b"[]," * 5_000_000 + b"[]]"
        assert server.client.request(method, path, content=body, headers=kind).status_code == 401
    assert_others_are_served(server, secret)


@pytest.mark.parametrize(
    ("status", "beginning", "filling"),
    [
        (413, b"", b" " * 200 * MEBIBYTE),
        (422, b'{"facts":[', b"{}," * (8 * MEBIBYTE // 3) + b"{}]}"),
        (422, b'{"withdrawn":[{"args":[', b"0," * (8 * MEBIBYTE // 2) + b"0]}]}"),
    ],
    ids=["200 MB", "8 MiB of mistakes", "8 MiB of wrong arguments"],
)
def test_a_bomb_in_gzip(
    server: Server, secret: str, status: int, beginning: bytes, filling: bytes
) -> None:
    """Too large once it is unpacked, or so that all of it is wrong: nobody lists each mistake."""
    bomb = gzip.compress(beginning + filling)
    assert len(bomb) < 300_000
    kind = {"Content-Type": "application/json", "Content-Encoding": "gzip"} | bearer(secret)
    with taking_at_most(server, 400 * MEBIBYTE):
        answer = server.client.post("/ingest", content=bomb, headers=kind)
        assert answer.status_code == status, answer.text
    assert_others_are_served(server, secret)


GUESSES, AT_ONCE = 10_000, 250


def test_ten_thousand_tokens(server: Server, secret: str, reader: str) -> None:
    """None fits, none is logged, and nobody else who comes from the same address is shut out."""
    before = metric(server, reader, "gsid_unauthorized_total")
    makers: tuple[Callable[[int], str], ...] = (
        lambda n: f"gsid_{n:043d}",
        lambda n: secret[: n % len(secret)],
        lambda n: secret[:-2] + f"{n % 100:02d}x",
    )
    for begin in range(0, GUESSES, AT_ONCE):
        make = makers[begin // AT_ONCE % len(makers)]
        guesses = [make(n) for n in range(begin, begin + AT_ONCE)]
        assert answers(server, guesses) == {b"401"}
        if begin % 2_000 == 0:
            assert_others_are_served(server, secret)
    assert metric(server, reader, "gsid_unauthorized_total") - before == GUESSES
    tried = [line for line in server.logged.splitlines() if "status=401" in line]
    assert len(tried) >= GUESSES
    assert all("client=127.0.0.1" in line for line in tried)
    assert "gsid_0" not in server.logged
    assert secret[:20] not in server.logged


def answers(server: Server, guesses: list[str]) -> set[bytes]:
    """What a request with each gets, all on one connection."""
    sent = b"".join(ask("/api/v1/networks", f"Authorization: Bearer {g}") for g in guesses)
    found: list[bytes] = []
    with connected(server) as (connection,):
        connection.sendall(sent + ask("/-/healthy", "Connection: close"))
        text = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    found = re.findall(rb"HTTP/1\.1 (\d+)", text)
    assert (len(found), found.pop()) == (len(guesses) + 1, b"200")
    return set(found)
