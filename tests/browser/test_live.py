"""Pages that stay open: news without a reload, a server that goes away and comes back."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.chromium import Watch
from tests.browser.conftest import Visit
from tests.browser.networks import PREFERRED, PREFIX, RIGHT, WRONG, Small
from tests.flow.server import Server, running

MARK = "window.loadedOnce = true"
HIGH_ROUTE = ".edge.bgp_route.high"


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own, on which nothing is; it may be killed."""
    folder: Path = tmp_path_factory.mktemp("lonely")
    with running(f"sqlite:///{folder / 'gsid.db'}", folder) as started:
        yield started


@pytest.fixture
def lost(visit: Visit, lonely: Server, watches: list[Watch]) -> Page:
    """A page that will lose its server, which the browser's console notes."""
    page = visit(lonely)
    watches[0].expect("net::ERR_")
    return page


def is_live(page: Page) -> None:
    """The page listens, and would show that it lost the connection."""
    with page.expect_response("**/events?*"):
        page.reload()
    page.evaluate(MARK)


@pytest.mark.parametrize("path", ["/", "/wall", "/alerts", "/settings"])
def test_an_empty_install_says_what_to_do(visit: Visit, lonely: Server, path: str) -> None:
    page = visit(lonely)
    page.goto(path)
    empty = re.compile("No network yet|No alert was ever opened|Nobody is told")
    expect(page.get_by_text(empty).first).to_be_visible()


def test_a_first_network_appears_in_an_empty_install(visit: Visit, lonely: Server) -> None:
    page = visit(lonely)
    page.goto("/")
    expect(page.get_by_text("Waiting for the first snapshot")).to_be_visible()
    is_live(page)
    Small(lonely, "first").see(RIGHT)
    expect(page.get_by_role("link", name="first")).to_be_visible()
    expect(page.get_by_text("All is well")).to_be_visible()
    assert page.evaluate("window.loadedOnce")


def test_an_alert_appears_in_the_overview_and_goes(page: Page, net: Small) -> None:
    page.goto("/")
    is_live(page)
    row = page.get_by_role("row").filter(has_text=net.name)
    expect(row).to_have_count(0)
    net.see(WRONG)
    expect(row).to_contain_text(f"local_pref on {PREFERRED}")
    expect(page).to_have_title(re.compile(r"^\(\d+\) GSID$"))
    net.see(RIGHT)
    expect(row).to_have_count(0)
    assert page.evaluate("window.loadedOnce")


def test_a_snapshot_joins_the_timeline_unless_somebody_chooses(page: Page, net: Small) -> None:
    second = net.see(WRONG)
    page.goto(f"{net.path}/snapshots")
    is_live(page)
    third = net.see(RIGHT)
    expect(page.get_by_role("heading", name=f"From {second} to {third}")).to_be_visible()
    page.get_by_label(f"from {third}").check()
    page.get_by_role("button", name="Compare").focus()
    fourth = net.see(WRONG)
    expect(page.get_by_role("heading", name=f"From {third} to {fourth}")).to_be_visible()
    expect(page.get_by_label(f"from {third}")).to_be_checked()
    expect(page.get_by_label(f"to {fourth}")).to_have_count(0)
    assert page.evaluate("window.loadedOnce")


def test_an_alert_colours_the_map_and_fills_the_table(page: Page, net: Small) -> None:
    page.goto(net.path)
    is_live(page)
    page.wait_for_selector("body[data-map-drawn]")
    expect(page.get_by_text("Nothing is open.")).to_be_visible()
    expect(page.locator(HIGH_ROUTE)).to_have_count(0)
    before = page.locator(".thing").evaluate_all("all => all.map((one) => one.outerHTML)")
    net.see(WRONG)
    expect(page.locator(HIGH_ROUTE)).to_have_count(1)
    title = f"bgp_route {PREFERRED} – {PREFIX}"
    expect(page.locator(HIGH_ROUTE).locator("title")).to_have_text(title)
    expect(page.get_by_role("heading", name="Open alerts")).to_be_visible()
    expect(page).to_have_title(f"(1) {net.name} · GSID")
    assert page.locator(".thing").evaluate_all("all => all.map((one) => one.outerHTML)") == before
    assert page.locator("body").get_attribute("data-drawn-ms") is not None
    net.see(RIGHT)
    expect(page.locator(HIGH_ROUTE)).to_have_count(0)
    expect(page).to_have_title(f"{net.name} · GSID")
    assert page.evaluate("window.loadedOnce")


def test_news_between_a_page_and_its_events_are_not_lost(
    page: Page, watch: Watch, net: Small
) -> None:
    watch.expect("net::ERR_FAILED")
    page.route("**/events?*", lambda route: route.abort())
    page.goto(net.path)
    expect(page.get_by_text("Nothing is open.")).to_be_visible()
    net.see(WRONG)
    page.unroute("**/events?*")
    expect(page.get_by_role("heading", name="Open alerts")).to_be_visible()


def test_an_open_alert_resolves_before_one_s_eyes(page: Page, wrong: Small) -> None:
    page.goto(f"/alerts/{wrong.alert()['id']}")
    is_live(page)
    wrong.see(RIGHT)
    expect(page.locator(".alert-head.resolved")).to_be_visible()
    assert page.evaluate("window.loadedOnce")


def test_what_one_writes_survives_an_update(page: Page, wrong: Small) -> None:
    page.goto(f"/alerts/{wrong.alert()['id']}")
    is_live(page)
    page.get_by_label("Note").fill("half a sent")
    wrong.see(RIGHT)
    expect(page.locator(".alert-head.resolved")).to_be_visible()
    expect(page.get_by_label("Note")).to_have_value("half a sent")


def test_a_server_that_goes_away_and_comes_back(lost: Page, lonely: Server) -> None:
    net = Small(lonely, "outage")
    net.see(RIGHT)
    lost.goto(net.path)
    is_live(lost)
    expect(lost.locator("#connection")).to_be_empty()
    lonely.kill()
    expect(lost.locator("#connection")).to_contain_text("connection lost")
    # It must not be back before something happened.
    lost.route("**/events?*", lambda route: route.abort())
    lonely.start()
    net.see(WRONG)
    expect(lost.get_by_text("Nothing is open.")).to_be_visible()
    lost.unroute("**/events?*")
    expect(lost.locator("#connection")).to_be_empty()
    expect(lost.get_by_role("heading", name="Open alerts")).to_be_visible()
    expect(lost.locator(HIGH_ROUTE)).to_have_count(1)
    assert lost.evaluate("window.loadedOnce")
    net.see(RIGHT)
    expect(lost.get_by_text("Nothing is open.")).to_be_visible()


def test_a_map_is_drawn_once_its_server_answers(lost: Page, lonely: Server) -> None:
    net, tries = Small(lonely, "undrawn"), 0
    net.see(RIGHT)

    def answer(route: Route) -> None:
        nonlocal tries
        tries += 1
        if tries <= 3:  # which takes longer than most restarts
            route.abort()
        else:
            route.continue_()

    lost.route(f"**{net.path}/map", answer)
    lost.goto(net.path)
    expect(lost.locator(".edge.bgp_route")).not_to_have_count(0)
    assert tries == 4
