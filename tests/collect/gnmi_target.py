"""A gNMI target for tests: a real gRPC server that tells a tree, and of its changes."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from typing import Any

import grpc
from pygnmi.spec.v080 import gnmi_pb2, gnmi_pb2_grpc


class Target(gnmi_pb2_grpc.gNMIServicer):  # type: ignore[misc]
    """Answers Get with the tree that it has, and passes on that it has another."""

    def __init__(self, tree: Any) -> None:
        self.tree, self.port = tree, 0
        self.asked: list[str] = []
        self.users: list[str] = []
        self.changes: Queue[str | None] = Queue()

    def change(self, tree: Any) -> None:
        self.tree = tree
        self.changes.put("changed")

    def Capabilities(self, request: Any, context: Any) -> Any:  # noqa: ARG002, N802
        return gnmi_pb2.CapabilityResponse(
            gNMI_version="0.8.0", supported_encodings=[gnmi_pb2.Encoding.JSON_IETF]
        )

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.asked += ["/".join(part.name for part in path.elem) for path in request.path]
        self.users += [v for k, v in context.invocation_metadata() if k == "username"]
        value = gnmi_pb2.TypedValue(json_ietf_val=json.dumps(self.tree).encode())
        update = gnmi_pb2.Update(path=request.path[0], val=value)
        return gnmi_pb2.GetResponse(notification=[gnmi_pb2.Notification(update=[update])])

    def Subscribe(self, request_iterator: Any, context: Any) -> Iterator[Any]:  # noqa: ARG002, N802
        path = next(iter(request_iterator)).subscribe.subscription[0].path
        yield gnmi_pb2.SubscribeResponse(sync_response=True)
        while self.changes.get() is not None:
            value = gnmi_pb2.TypedValue(json_ietf_val=b'"changed"')
            update = gnmi_pb2.Update(path=path, val=value)
            yield gnmi_pb2.SubscribeResponse(update=gnmi_pb2.Notification(update=[update]))


@contextmanager
def serving(
    target: Target, key: bytes | None = None, certificate: bytes = b"", port: int = 0
) -> Iterator[None]:
    """On a port of loopback, free unless named, with TLS where there is a key."""
    server = grpc.server(ThreadPoolExecutor(4))
    gnmi_pb2_grpc.add_gNMIServicer_to_server(target, server)
    if key is None:
        target.port = server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        credentials = grpc.ssl_server_credentials([(key, certificate)])
        target.port = server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    try:
        yield
    finally:
        target.changes.put(None)
        server.stop(grace=None).wait()
