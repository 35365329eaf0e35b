"""A BMP listener (RFC 7854): a router connects and tells of its peers and of all that it hears.

BMP tells of BGP alone, and neither of reflection nor of confederations: settings do.
"""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Literal

from pydantic import Field

from gsid_service.collect import bmp_wire
from gsid_service.collect.bgp import Session, peerings, sessions_as_facts
from gsid_service.collect.bmp_wire import Attributes, Malformed, Opened, Peer
from gsid_service.collect.settings import Router, Settings, checked
from gsid_service.collect.source import Route, Sight, SourceError
from gsid_service.config import BadSettings, Seconds, Section

log = logging.getLogger(__name__)
QUIET_SECONDS = 0.5  # without a message, and what was being told is taken to be told
PATIENCE_SECONDS = 5.0  # with messages all the time


class Options(Section):
    """Keys of a router with `source = "bmp"`."""

    host: str = "127.0.0.1"
    port: int = Field(default=11019, ge=0, le=65535)
    only_from: str | None = None
    policy: Literal["post", "pre"] = "post"
    clients: frozenset[str] = frozenset()  # router ids
    confederation: frozenset[int] = frozenset()  # the other ASes of it
    mesh: bool = False
    timeout_seconds: Seconds = 20


class Told:
    """A session that is up, and what is heard over it."""

    def __init__(self, peer: Peer, sent: Opened, received: Opened) -> None:
        self.peer, self.sent = peer, sent
        self.several = bmp_wire.several_paths(sent, received)
        self.routes: dict[str, Attributes] = {}


class State:
    """What a router has told since it connected."""

    def __init__(self, post_policy: bool) -> None:
        self.post_policy = post_policy
        self.peers: dict[tuple[int, int, str], Told] = {}

    def take(self, kind: int, body: bytes) -> bool:
        """Take a message; whether anything is new by it."""
        if kind not in {bmp_wire.ROUTE_MONITORING, bmp_wire.PEER_UP, bmp_wire.PEER_DOWN}:
            return False
        peer, rest = bmp_wire.read_peer(body)
        if peer.kind != bmp_wire.GLOBAL_PEER:
            return False
        if kind == bmp_wire.PEER_UP:
            self.peers[peer.key] = Told(peer, *bmp_wire.read_peer_up(rest))
        elif kind == bmp_wire.PEER_DOWN:
            self.peers.pop(peer.key, None)
        elif peer.post_policy == self.post_policy and peer.key in self.peers:
            self._update(self.peers[peer.key], peer, rest)
        return True

    def _update(self, told: Told, peer: Peer, message: bytes) -> None:
        own_as = told.sent.asn
        update = bmp_wire.read_update(message, peer.two_octet, told.several, own_as)
        for prefix in update.withdrawn:
            told.routes.pop(prefix, None)
        if update.attributes is not None:
            told.routes.update(dict.fromkeys(update.announced, update.attributes))


class Bmp:
    """Listens for one router."""

    def __init__(self, router: Router, settings: Settings) -> None:
        self.options = checked(Options, router.options, f"routers.{router.name}: ")
        self.router, self.names = router.name, settings.names
        self._news = threading.Condition()
        self._state: State | None = None  # while a router is connected
        self._told_at, self._is_new, self._closed = 0.0, False, False
        try:
            self._listening = socket.create_server((self.options.host, self.options.port))
        except OSError as error:
            raise BadSettings(f"routers.{router.name}.port: {error.strerror}") from None
        self._thread = threading.Thread(target=self._listen, name=router.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more; a router that is connected may go on."""
        self._closed = True
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    @property
    def port(self) -> int:
        port: int = self._listening.getsockname()[1]
        return port

    # The listener

    def _listen(self) -> None:
        """Take one connection after another: a router that comes back begins anew."""
        while True:
            try:
                connection, (address, *_) = self._listening.accept()
            except OSError:
                if self._closed:
                    return
                raise
            with connection:
                if self.options.only_from not in {None, address}:
                    log.warning("%s: refused a connection from %s", self.router, address)
                    continue
                log.info("%s: %s is connected", self.router, address)
                try:
                    self._serve(connection)
                except (OSError, Malformed) as error:
                    log.warning("%s: the connection of %s: %s", self.router, address, error)
                with self._news:
                    self._state = None

    def _serve(self, connection: socket.socket) -> None:
        state = State(self.options.policy == "post")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for kind, body in messages(connection):
            with self._news:
                self._state = state
                if state.take(kind, body):
                    self._told_at, self._is_new = time.monotonic(), True
                    self._news.notify_all()

    # The source

    def wait(self, seconds: float) -> None:
        """Until there is something new, and then until it has been told."""
        with self._news:
            self._news.wait_for(lambda: self._is_new, seconds)
            patience = time.monotonic() + min(PATIENCE_SECONDS, seconds)
            while self._is_new and (left := self._unquiet()) > 0 and time.monotonic() < patience:
                self._news.wait(left)

    def _unquiet(self) -> float:
        """Seconds until it will have been quiet for long enough."""
        return self._told_at + QUIET_SECONDS - time.monotonic()

    def read(self) -> Sight:
        with self._news:
            known = self._news.wait_for(self._is_told, self.options.timeout_seconds)
            if not known or self._state is None:
                raise SourceError("no router is connected, or it has no session that is up")
            self._is_new = False
            return self._sight(list(self._state.peers.values()))

    def _is_told(self) -> bool:
        return self._state is not None and bool(self._state.peers)

    def _sight(self, told: list[Told]) -> Sight:
        router_id = told[0].sent.router_id
        name = self.names.get(router_id, router_id)
        sessions = [self._session(one) for one in told]
        role, entities, facts = sessions_as_facts(name, sessions, self.options.mesh)
        outside = peerings(name, sessions)
        routes: dict[str, list[Route]] = {}
        for one in told:
            peering = outside.get(one.peer.address)
            if peering is not None:
                for prefix, attributes in one.routes.items():
                    route = _route(peering, attributes, router_id)
                    routes.setdefault(prefix, []).append(route)
        heard = {prefix: tuple(sorted(each)) for prefix, each in routes.items()}
        return Sight(name, role, tuple(entities), tuple(facts), heard)

    def _session(self, told: Told) -> Session:
        peer = told.peer
        confederate = peer.asn in self.options.confederation
        return Session(
            address=peer.address,
            asn=peer.asn,
            router=self.names.get(peer.router_id, peer.router_id),
            internal=confederate or peer.asn == told.sent.asn,
            confederate=confederate,
            client=peer.router_id in self.options.clients,
        )


def _route(peering: str, attributes: Attributes, router_id: str) -> Route:
    return Route(
        peering=peering,
        as_path_length=attributes.as_path_length,
        origin=attributes.origin,
        local_pref=attributes.local_pref,
        med=attributes.med,
        speaker=int(IPv4Address(router_id)),
    )


def messages(connection: socket.socket) -> Iterator[tuple[int, bytes]]:
    """The messages of a connection, until it ends."""
    with connection.makefile("rb") as stream:
        while header := stream.read(bmp_wire.HEADER.size):
            if len(header) < bmp_wire.HEADER.size:
                raise Malformed("it ends in the middle of a message")
            version, size, kind = bmp_wire.HEADER.unpack(header)
            if version != bmp_wire.VERSION or not len(header) <= size <= bmp_wire.LARGEST:
                raise Malformed(f"not BMP version {bmp_wire.VERSION}")
            body = stream.read(size - len(header))
            if len(body) < size - len(header):
                raise Malformed("it ends in the middle of a message")
            yield kind, body


SOURCE = Bmp
