"""gNMI, by `pygnmi`: the state of a network instance, and word of its changes."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gsid_service.collect.source import SourceError

if TYPE_CHECKING:
    from pygnmi.client import gNMIclient

log = logging.getLogger(__name__)
INSTANCE = "/network-instances/network-instance[name={}]"
# Below an instance: what changes when a session, an attribute or a cost does.
WATCHED = (
    "/protocols/protocol/bgp/neighbors/neighbor/state/session-state",
    "/protocols/protocol/bgp/rib/attr-sets",
    "/protocols/protocol/ospfv2/areas/area/interfaces/interface/state/metric",
)
RETRY_SECONDS = 10.0
# A child that is forked while grpc has threads would run some of them on, and abort; ours only run
# other programs. Read when grpc is loaded.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")


class Gnmi:
    """One target; grpc is loaded when it is first asked, so that other sources start without."""

    def __init__(
        self,
        target: str,
        username: str,
        password_file: Path | None,
        ca_file: Path | None,
        seconds: float,
    ) -> None:
        """Without a CA there is no TLS: a certificate that nobody vouches for is not taken."""
        host, _, port = target.rpartition(":")
        self.target, self.seconds = (host, int(port)), seconds
        self.username, self.password_file, self.ca_file = username, password_file, ca_file

    def state(self, instance: str) -> list[Any]:
        """The values that answer a Get of the instance's state."""
        with self._client() as client:
            path = INSTANCE.format(instance)
            answer = client.get(path=[path], datatype="state", encoding="json_ietf")
        return [
            update["val"]
            for notification in answer["notification"]
            for update in notification.get("update", [])
        ]

    def watch(self, instance: str, news: Callable[[], None]) -> None:
        """Call `news` with every change, in a thread of its own, for ever."""
        threading.Thread(
            target=self._follow, args=(instance, news), name="gnmi", daemon=True
        ).start()

    def _follow(self, instance: str, news: Callable[[], None]) -> None:
        while True:
            try:
                self._subscribe(instance, news)
            except SourceError as error:
                log.warning("%s: no word of changes: %s", self.target[0], error)
            time.sleep(RETRY_SECONDS)

    def _subscribe(self, instance: str, news: Callable[[], None]) -> None:
        wanted = {
            "mode": "stream",
            "encoding": "json_ietf",
            "subscription": [
                {"path": INSTANCE.format(instance) + path, "mode": "on_change"} for path in WATCHED
            ],
        }
        with self._client() as client:
            # The first message is what is there now, which may be new to us as well. Not by
            # subscribe_stream, which would wait for ever once the target has gone.
            for _ in client.subscribe(subscribe=wanted):
                news()

    @contextmanager
    def _client(self) -> Iterator["gNMIclient"]:
        import grpc
        from pygnmi.client import gNMIclient, gNMIException

        try:
            password = self.password_file.read_text().strip() if self.password_file else ""
            with gNMIclient(
                target=self.target,
                username=self.username,
                password=password,
                insecure=self.ca_file is None,
                path_cert=None if self.ca_file is None else str(self.ca_file),
                gnmi_timeout=self.seconds,
            ) as client:
                yield client
        except (
            *(OSError, gNMIException, grpc.RpcError, grpc.FutureTimeoutError),
            AttributeError,  # pygnmi's, where a target does not tell its encodings
        ) as error:
            raise SourceError(f"gNMI: {str(error) or type(error).__name__}") from None
