"""What answers may be no GSID service, and a token no token: one line, and no traceback."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import unquote

import pytest
import typer

from gsid_service.command.asking import ask, ask_all


class Stranger(BaseHTTPRequestHandler):
    """Answers what its path says."""

    def do_GET(self) -> None:
        status, _, body = unquote(self.path)[1:].partition("/")
        self.send_response(int(status))
        self.end_headers()
        self.wfile.write(body.partition("?")[0].encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def stranger() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("path", ["/200/<html>", "/200/[]", "/200/", "/200/7"])
def test_a_page_of_somebody_else(
    stranger: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        ask(stranger, None, "GET", path)
    assert ended.value.exit_code == 2
    assert "is no GSID service" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("path", ["/404/[]", "/502/<html>"])
def test_an_error_of_somebody_else(
    stranger: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        ask(stranger, None, "GET", path)
    assert ended.value.exit_code == 2
    assert path[1:4] in capsys.readouterr().err


def test_pages_of_somebody_else(stranger: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        ask_all(stranger, None, "/200/{}")
    assert "is no GSID service" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("token", ["tökén-secret", "secret\nsecret", "two secrets"])
def test_what_no_token_is_and_nobody_sees(
    stranger: str, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        ask(stranger, token, "GET", "/200/{}")
    said = capsys.readouterr().err
    assert ended.value.exit_code == 2
    assert "--token" in said
    assert "secret" not in said


def test_white_space_around_a_token_is_none_of_it(stranger: str) -> None:
    assert ask(stranger, "secret\n", "GET", '/200/{"a":1}') == {"a": 1}
