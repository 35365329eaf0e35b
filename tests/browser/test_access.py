"""Signing in and out, and who is refused what."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from gsid_service.__main__ import app
from tests.browser.chromium import Watch
from tests.browser.conftest import Visit
from tests.browser.networks import RIGHT, WRONG, Small
from tests.flow.server import Server, running


class Guarded:
    """A server that asks for tokens, with an alert on it."""

    def __init__(self, server: Server, url: str) -> None:
        self.server, self.url = server, url
        self.net = Small(server, "guarded")
        self.net.see(RIGHT)
        self.net.see(WRONG)
        self.alert = f"/alerts/{self.net.alert()['id']}"
        self.tokens = {role: self._token(role) for role in ("ingest", "read", "operate")}
        server.client.headers["Authorization"] = f"Bearer {self.tokens['operate']}"

    def _token(self, role: str) -> str:
        arguments = ["token", "create", f"{role}er", "--role", role]
        done = CliRunner().invoke(app, arguments, env={"GSID_DATABASE_URL": self.url})
        assert done.exit_code == 0, done.output
        return done.stdout.split()[-1]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder: Path = tmp_path_factory.mktemp("guarded")
    url = f"sqlite:///{folder / 'gsid.db'}"
    with running(url, folder) as server:
        yield Guarded(server, url)


@pytest.fixture
def page(visit: Visit, guarded: Guarded) -> Page:
    return visit(guarded.server)


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_who_is_not_signed_in_is_asked_and_then_led_on(page: Page, guarded: Guarded) -> None:
    page.goto(guarded.alert)
    expect(page).to_have_url(re.compile("/sign-in"))
    expect(page.get_by_label("Token")).to_be_focused()
    sign_in(page, guarded.tokens["operate"])
    expect(page).to_have_url(f"{guarded.server.url}{guarded.alert}")
    expect(page.get_by_text("operateer · operate")).to_be_visible()
    page.goto("/settings")
    expect(page.get_by_role("region", name="Tokens").get_by_role("row")).to_have_count(4)
    page.goto(guarded.alert)
    cookie = page.context.cookies()[0]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("acknowledged", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/sign-in"))
    page.goto("/")
    expect(page).to_have_url(re.compile("/sign-in"))


@pytest.mark.parametrize(
    ("token", "told", "status"),
    [("gsid_unknown", "not known", 401), ("ingest", "has the role ingest", 403)],
)
def test_a_token_that_may_not_look_is_refused(
    page: Page, watch: Watch, guarded: Guarded, token: str, told: str, status: int
) -> None:
    watch.expect(f"status of {status}")
    page.goto("/")
    sign_in(page, guarded.tokens.get(token, token))
    expect(page.get_by_role("alert")).to_contain_text(told)
    assert page.context.cookies() == []


def test_no_address_of_another_host_follows_a_sign_in(page: Page, guarded: Guarded) -> None:
    page.goto("/sign-in?next=//elsewhere.example/")
    sign_in(page, guarded.tokens["read"])
    expect(page).to_have_url(f"{guarded.server.url}/")


def test_a_read_token_sees_no_buttons_and_its_forms_are_refused(
    page: Page, watch: Watch, guarded: Guarded
) -> None:
    watch.expect("status of 403")
    page.goto(guarded.alert)
    sign_in(page, guarded.tokens["read"])
    expect(page.get_by_text("Your token may read.")).to_be_visible()
    for path in (guarded.alert, "/settings", f"{guarded.net.path}/approve"):
        page.goto(path)
        expect(page.locator("main form[method=post]")).to_have_count(0)
    before = guarded.net.alert()["verdict"]
    page.goto(guarded.alert)
    page.evaluate(SEND, f"{guarded.alert}/verdict")
    expect(page.get_by_role("alert")).to_contain_text("has the role read, not operate")
    assert guarded.net.alert()["verdict"] == before


SEND = """action => {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action });
  form.innerHTML = '<input name="alarm" value="false">';
  document.body.append(form);
  form.submit();
}"""


def test_a_form_of_another_site_is_refused(page: Page, watch: Watch, guarded: Guarded) -> None:
    """Another port of this host is the same site: the browser sends the cookie along."""
    watch.expect("status of 403")
    watch.expect("request to http://127.0.0.1")
    page.goto("/")
    sign_in(page, guarded.tokens["operate"])
    expect(page.get_by_text("operateer")).to_be_visible()
    before = guarded.net.alert()["verdict"]
    with another_site() as elsewhere:
        page.goto(elsewhere)
        with page.expect_request(f"**{guarded.alert}/verdict") as sent:
            page.evaluate(SEND, f"{guarded.server.url}{guarded.alert}/verdict")
        expect(page.get_by_role("alert")).to_have_text("the form does not come from this console")
        assert "gsid_token" in sent.value.all_headers()["cookie"]
    assert guarded.net.alert()["verdict"] == before


@contextmanager
def another_site() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><link rel=icon href=data:,><p>elsewhere")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}/"
        site.shutdown()
