"""Where messages may go, and what answers mean."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from gsid_service.notify.post import Poster, UnsafeUrl, check, retry_after, shown
from gsid_service.notify.retry import DeliveryError
from tests.store.making import NOW


@pytest.mark.parametrize(
    ("url", "allow_http", "hosts"),
    [
        ("https://noc.example/x", False, ()),
        ("https://noc.example/x", False, ("noc.example",)),
        ("http://127.0.0.1:9/x", False, ()),
        ("http://[::1]:9/x", False, ()),
        ("http://localhost", False, ()),
        ("http://noc.example", True, ()),
    ],
)
def test_https_is_allowed_and_http_to_loopback_or_when_said(
    url: str, allow_http: bool, hosts: tuple[str, ...]
) -> None:
    check(url, allow_http, hosts)


@pytest.mark.parametrize(
    ("url", "hosts", "reason"),
    [
        ("http://noc.example", (), "allow_http"),
        ("http://127.0.0.1.example", (), "allow_http"),
        ("ftp://noc.example", (), "https://host/path"),
        ("https://", (), "https://host/path"),
        ("https://noc.example:port", (), "not a URL"),
        ("https://me:word@noc.example", (), "secret_env"),
        ("https://noc.example", ("other.example",), "notify.hosts"),
    ],
)
def test_anything_else_is_refused(url: str, hosts: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UnsafeUrl, match=reason) as refused:
        check(url, False, hosts)
    assert "word" not in str(refused.value).replace("password", "")


def test_a_url_is_shown_without_its_path() -> None:
    assert shown("https://noc.example:8443/hook?token=t") == "https://noc.example:8443"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("17", 17.0),
        ("Sun, 15 Nov 2026 22:01:00 GMT", 59.876544),
        ("Sun, 15 Nov 2026 21:00:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("9" * 30, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, NOW) == seconds


class Answer(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(int(self.path[1:]))
        self.send_header("Location", "/200")
        self.send_header("Retry-After", "3")
        self.end_headers()
        self.wfile.write(b"a\0long answer " * 1000)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def posted(url: str) -> str:
    poster = Poster(url, 5)
    try:
        return poster.post(b"{}", {})
    finally:
        poster.close()


def test_an_answer_is_shown_in_short(base: str) -> None:
    assert posted(f"{base}/200").startswith("200 OK: along answer")
    assert len(posted(f"{base}/200")) < 250


@pytest.mark.parametrize(
    ("status", "retry", "after", "everything", "gone"),
    [
        (301, False, 3, False, False),
        (308, False, 3, False, False),
        (400, False, 3, False, False),
        (404, False, 3, False, False),
        (408, True, 3, False, False),
        (410, False, None, False, True),
        (429, True, 3, True, False),
        (500, True, 3, False, False),
        (503, True, 3, True, False),
    ],
)
def test_a_failure_says_what_to_do(
    base: str, status: int, retry: bool, after: int | None, everything: bool, gone: bool
) -> None:
    with pytest.raises(DeliveryError) as failed:
        posted(f"{base}/{status}")
    error = failed.value
    found = (error.retry, error.after, error.everything, error.gone)
    assert found == (retry, after, everything, gone)
    assert str(status) in error.reason


def test_a_place_where_nobody_is_concerns_all_messages() -> None:
    with pytest.raises(DeliveryError) as failed:
        posted("http://127.0.0.1:1/secret")
    assert failed.value.retry
    assert failed.value.everything
    assert "secret" not in failed.value.reason
