"""The sender against a real HTTP server: what is acknowledged goes, what is not stays."""

import gzip
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gsid_service.collect.metrics import Metrics
from gsid_service.collect.sender import Answer, Fate, Sender, judge
from gsid_service.collect.settings import Service, checked
from gsid_service.collect.spool import Spool
from gsid_service.config import BadSettings

URL = "https://gsid.example.net"


class Receiver(ThreadingHTTPServer):
    """Answers as it is told, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), gzip.decompress(body)))
        status = self.server.answers.pop(0) if self.server.answers else 202
        said = json.dumps({"detail": "as you were told"}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path / "spool.db", 1 << 20, lambda: 1)
    opened.put("R1", True, lambda n: gzip.compress(f"snapshot {n}".encode()))
    yield opened
    opened.close()


def sender(spool: Spool, url: str, refused: list[str] | None = None, **more: object) -> Sender:
    known = [] if refused is None else refused
    service = Service.model_validate({"url": url, **more})
    return Sender(service, spool, Metrics(["R1"]), known.append)


def send(sending: Sender) -> Answer:
    waiting = sending.spool.oldest()
    assert waiting is not None
    return sending.send(waiting)


def address(receiver: Receiver, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{receiver.server_port}"


@pytest.mark.parametrize("status", [200, 202])
def test_what_is_acknowledged_leaves_the_spool(
    receiver: Receiver, spool: Spool, status: int
) -> None:
    receiver.answers = [status]
    assert send(sender(spool, address(receiver))).fate is Fate.ACCEPTED
    assert spool.size() == (0, 0)
    ((headers, body),) = receiver.got
    assert body == b"snapshot 1"
    assert headers["Content-Type"] == "application/json"
    assert "Authorization" not in headers


@pytest.mark.parametrize("status", [401, 403, 404, 408, 429, 500, 503])
def test_what_may_be_taken_later_stays(receiver: Receiver, spool: Spool, status: int) -> None:
    receiver.answers = [status]
    refused: list[str] = []
    answer = send(sender(spool, address(receiver), refused))
    assert answer.fate is Fate.AGAIN
    assert "as you were told" in answer.why
    assert spool.size()[0] == 1
    assert refused == []


@pytest.mark.parametrize("status", [400, 409, 413, 422])
def test_what_will_never_be_taken_goes_and_is_said(
    receiver: Receiver, spool: Spool, status: int
) -> None:
    receiver.answers = [status]
    refused: list[str] = []
    assert send(sender(spool, address(receiver), refused)).fate is Fate.REJECTED
    assert spool.size() == (0, 0)
    assert refused == ["R1"]


def test_the_service_says_how_long_to_wait() -> None:
    assert judge(429, {"Retry-After": "7"}, b"{}").wait == 7
    assert judge(503, {}, b"not json").wait == 0


def test_a_service_that_is_away_loses_nothing(spool: Spool) -> None:
    answer = send(sender(spool, "http://127.0.0.1:9"))
    assert answer.fate is Fate.AGAIN
    assert "refused" in answer.why
    assert spool.size()[0] == 1


def test_the_token_is_read_anew_each_time(receiver: Receiver, spool: Spool, tmp_path: Path) -> None:
    token = tmp_path / "token"
    sending = sender(spool, address(receiver), token_file=token)
    assert send(sending).why.startswith("service.token_file: [Errno 2] No such file")
    for secret in ("first", "second"):
        token.write_text(f"{secret}\n")
        receiver.answers = [503]
        send(sending)
        assert receiver.got[-1][0]["Authorization"] == f"Bearer {secret}"


def test_the_token_file_may_be_where_systemd_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/x")
    service = checked(Service, {"url": URL, "token_file": "$CREDENTIALS_DIRECTORY/token"})
    assert service.token_file == Path("/run/credentials/x/token")


def test_everything_is_sent_in_order_and_the_sender_waits_for_more(
    receiver: Receiver, spool: Spool
) -> None:
    receiver.answers = [503, 202, 422]
    sending = sender(spool, address(receiver))
    spool.put("R1", False, lambda _: gzip.compress(b"two"))
    threading.Thread(target=sending.run, daemon=True).start()
    wait_until(lambda: spool.size()[0] == 0)
    spool.put("R2", True, lambda _: gzip.compress(b"three"))
    sending.news.set()
    wait_until(lambda: spool.size()[0] == 0)
    assert [body for _, body in receiver.got] == [b"snapshot 1", b"snapshot 1", b"two", b"three"]


def wait_until(holds: object) -> None:
    done = threading.Event()
    for _ in range(200):
        if callable(holds) and holds():
            return
        done.wait(0.05)
    raise AssertionError("it never was so")


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """The files of a key and of a certificate for loopback that vouches for itself."""
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "1", "-subj", "/CN=test", "-addext"),
            *("subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return key, certificate


def test_a_certificate_that_nobody_vouches_for_is_refused(
    receiver: Receiver, spool: Spool, tmp_path: Path
) -> None:
    key, own = certificate(tmp_path, "own")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    receiver.socket = context.wrap_socket(receiver.socket, server_side=True)
    url = address(receiver, "https")
    assert "CERTIFICATE_VERIFY_FAILED" in send(sender(spool, url)).why
    assert receiver.got == []
    assert send(sender(spool, url, ca_file=own)).fate is Fate.ACCEPTED


def test_http_is_for_loopback_alone() -> None:
    with pytest.raises(BadSettings, match="http only to loopback"):
        checked(Service, {"url": "http://192.0.2.1:8080"})
    assert checked(Service, {"url": "http://192.0.2.1:8080", "allow_http": True})
    assert checked(Service, {"url": URL})
