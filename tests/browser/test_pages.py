"""Every page: what it shows, with a script and without, and that axe finds nothing serious."""

import json
import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser import axe
from tests.browser.chromium import Watch
from tests.browser.conftest import Visit
from tests.browser.networks import PREFERRED, PREFIX, RIGHT, WRONG, Small
from tests.flow.server import Server

NAME = "pages"
NETWORK = f"/networks/{NAME}"
ROUTE = f"/fact?predicate=bgp_route&arg={quote(PREFERRED)}&arg={quote(PREFIX)}"
PAGES = {  # what each shows
    "/": "firing",
    "/wall": "firing",
    "/alerts": "What is wrong",
    "/alerts/{alert}": "How we know",
    NETWORK: "Highest scores",
    f"{NETWORK}/entity?id=R3": "reported by rr1",
    f"{NETWORK}{ROUTE}": "local_pref of",
    f"{NETWORK}/snapshots": "Scores with",
    f"{NETWORK}/check": "What would this change do?",
    f"{NETWORK}/intents": "What is wanted of it",
    f"{NETWORK}/approve": "Approve all of it",
    "/settings": "Maintenance windows",
    "/sign-in": "Token",
    "/docs": "GSID",
}
TABLES = {  # a cell of each, which must be there without a script
    "/": "local_pref",
    "/alerts": "local_pref",
    "/alerts/{alert}": "reachable(",
    NETWORK: f"local_pref on {PREFERRED}",
    f"{NETWORK}/entity?id=R3": "ospf_weight",
    f"{NETWORK}{ROUTE}": "local_pref",
    f"{NETWORK}/snapshots": "rr1 #2",
    f"{NETWORK}/intents": "reachable(",
    f"{NETWORK}/approve": "local_pref 0",
    "/settings": "webhook",
}


@pytest.fixture(scope="module")
def seen(server: Server) -> Small:
    """A network with a mistake, beside one whose alert somebody looks after."""
    found, quiet = Small(server, NAME), Small(server, "looked-after")
    for net in (found, quiet):
        net.see(RIGHT)
        net.see(WRONG)
    server.client.post(f"/api/v1/alerts/{quiet.alert()['id']}/ack", json={}).raise_for_status()
    return found


@pytest.mark.parametrize(("path", "shown"), PAGES.items())
def test_every_page_is_there_accessible_and_no_wider_than_a_phone(
    page: Page, seen: Small, path: str, shown: str
) -> None:
    page.goto(path.format(alert=seen.alert()["id"]))
    expect(page.get_by_text(shown).first).to_be_visible()
    if page.locator(".map").count():
        page.wait_for_selector("body[data-map-drawn]")
    assert axe.problems(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_phone_shows_since_when_and_whether_it_fires(page: Page, seen: Small) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/")
    row = page.get_by_role("row").filter(has_text=seen.name).filter(has_text="local_pref").first
    for cell in (row.locator("time"), row.get_by_text("firing", exact=True)):
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] < 390, "nobody has to scroll for it"


def test_a_quiet_network_lists_no_score(page: Page, net: Small) -> None:
    page.goto(net.path)
    expect(page.get_by_text("No value scores 0.01 or more.")).to_be_visible()
    page.goto(f"{net.path}{ROUTE}")
    expect(page.get_by_text("None of its values changed")).to_be_visible()


@pytest.mark.parametrize("path", ["/nowhere", "/networks/nowhere"])
def test_what_is_not_there_is_a_page_that_says_so(page: Page, watch: Watch, path: str) -> None:
    watch.expect("status of 404")
    answer = page.goto(path)
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", name="Not Found")).to_be_visible()
    assert axe.problems(page) == []
    page.get_by_role("link", name="To the overview").click()
    expect(page).to_have_title(re.compile("GSID"))


@pytest.mark.usefixtures("seen")
def test_what_somebody_looks_after_is_not_healthy(page: Page) -> None:
    page.goto("/")
    card = page.locator(".network-card").filter(has_text="looked-after")
    expect(card).to_contain_text("1 acknowledged")
    expect(card).not_to_contain_text("healthy")


def test_a_name_that_addresses_write_otherwise_keeps_its_place(page: Page, server: Server) -> None:
    odd = Small(server, "<b>('odd')</b>?#%2f".replace("/", "|"))
    odd.see(RIGHT)
    for tab in ("Snapshots", "Map"):
        page.goto(f"/networks/{quote(odd.name, safe='')}/snapshots")
        page.get_by_role("link", name=tab, exact=True).click()
        current = page.locator(".tabs [aria-current]")
        expect(current).to_have_text(tab)


def test_tables_read_without_a_script(visit: Visit, server: Server, seen: Small) -> None:
    page, alert = visit(server, java_script_enabled=False), seen.alert()["id"]
    for path, cell in TABLES.items():
        page.goto(path.format(alert=alert))
        expect(page.get_by_role("cell").filter(has_text=cell).first).to_be_visible()


def test_an_alert_tells_what_how_one_knows_and_whose_traffic_moved(page: Page, seen: Small) -> None:
    alert = seen.alert()
    page.goto(f"/alerts/{alert['id']}")
    expect(page.get_by_role("heading", level=1)).to_have_text(alert["summary"])
    head = page.locator(".alert-head")
    expect(head.locator(".bad")).to_have_text(str(WRONG))
    expect(head.locator(".good")).to_have_text(str(RIGHT))
    count = len(alert["broken_intents"])
    proof = page.locator(".proof")
    expect(proof).to_contain_text(f"Restoring {RIGHT} repairs {count} of {count}")
    moved = page.get_by_role("region", name="Moved traffic").locator("tbody tr")
    expect(moved).to_have_count(len(alert["moved"]))
    broken = page.get_by_role("region", name="Broken intents").locator("tbody tr")
    expect(broken).to_have_count(count)
    brought = page.get_by_role("region", name="Differences").locator("tbody tr")
    expect(brought).to_have_count(1)
    expect(brought).to_contain_text(f"local_pref {RIGHT}")
    expect(page.locator(".timeline li").last).to_contain_text("opened")
    expect(page.get_by_role("cell", name="noc", exact=True)).to_be_visible()


def test_an_alert_draws_both_paths_and_another_on_request(page: Page, seen: Small) -> None:
    page.goto(f"/alerts/{seen.alert()['id']}")
    lines = page.locator(".overlay line")
    for kind in ("before", "after"):
        expect(page.locator(f".overlay .path.{kind}").first).to_be_attached()
    first = lines.evaluate_all("lines => lines.map((line) => line.outerHTML)")
    choices = page.locator("[data-path]")
    expect(choices.first).to_have_attribute("aria-pressed", "true")
    choices.last.click()
    expect(choices.last).to_have_attribute("aria-pressed", "true")
    expect(choices.first).to_have_attribute("aria-pressed", "false")
    assert lines.evaluate_all("lines => lines.map((line) => line.outerHTML)") != first


def test_snapshots_compare_any_two(page: Page, server: Server) -> None:
    net = Small(server, "timeline")
    ids = [net.see(value) for value in (RIGHT, WRONG, RIGHT)]
    page.goto(f"{net.path}/snapshots")
    expect(page.get_by_role("heading", name=f"From {ids[1]} to {ids[2]}")).to_be_visible()
    page.get_by_label(f"from {ids[0]}").check()
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Nothing changed between them.")).to_be_visible()
    expect(page.get_by_text("No value scored above 0.1 then.")).to_be_visible()
    page.get_by_label(f"to {ids[1]}").check()
    page.get_by_role("button", name="Compare").click()
    changed = page.get_by_role("region", name="Differences").locator("tbody tr")
    expect(changed).to_have_count(1)
    expect(changed.locator("del")).to_have_text(str(RIGHT))
    expect(changed.locator("ins")).to_have_text(str(WRONG))
    scores = page.get_by_role("table").filter(has_text="Observed").locator("tbody tr")
    expect(scores.first).to_contain_text(f"local_pref on {PREFERRED}")


def candidate(value: int | str) -> str:
    fact = {"predicate": "bgp_route", "args": [PREFERRED, PREFIX]}
    change = {"fact": fact, "parameter": "local_pref", "value": value}
    return json.dumps({"changes": [change]})


def test_check_refuses_what_is_no_candidate(page: Page, watch: Watch, net: Small) -> None:
    watch.expect("status of 422")
    page.goto(f"{net.path}/check")
    page.get_by_role("textbox").fill(candidate("many"))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("value")
    expect(page.get_by_role("textbox")).to_have_value(candidate("many"))
    assert axe.problems(page) == []


def test_check_takes_a_file_that_is_dropped(page: Page, net: Small) -> None:
    page.goto(f"{net.path}/check")
    page.get_by_role("textbox").evaluate(DROP, candidate(WRONG))
    expect(page.get_by_role("textbox")).to_have_value(candidate(WRONG))


DROP = """(area, text) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], "candidate.json"));
  area.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


def test_check_tells_a_clean_candidate_from_a_harmful_one(page: Page, net: Small) -> None:
    page.goto(f"{net.path}/check")
    page.get_by_role("button", name="Check").click()  # the example, which changes nothing
    expect(page.get_by_text("Clean: nothing new is wrong")).to_be_visible()
    expect(page.get_by_text("No traffic would move.")).to_be_visible()
    page.get_by_role("textbox").fill(candidate(WRONG))
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".verdict")).to_contain_text("1 new finding")
    expect(page.locator(".findings li").first).to_contain_text("local_pref")
    expect(page.get_by_role("region", name="Would break").locator("tr").nth(1)).to_be_visible()
    expect(page.get_by_role("region", name="Moved traffic").locator("tr").nth(1)).to_be_visible()
    assert axe.problems(page) == []
