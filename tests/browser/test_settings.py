"""The settings: receivers with a real listener, dead letters, silences and windows."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chromium import Watch
from tests.browser.networks import Small
from tests.flow.server import Server
from tests.notify.listener import Listener
from tests.waiting import until


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


def test_a_receiver_is_tested(page: Page, listener: Listener) -> None:
    before = len(listener.taken("/ok"))
    page.goto("/settings")
    row(page, "noc").first.get_by_role("button", name="Send a test").click()
    expect(page.get_by_text("The receiver took the test message.")).to_be_visible()
    assert len(listener.taken("/ok")) == before + 1


def test_a_receiver_that_refuses_says_why(page: Page, watch: Watch) -> None:
    watch.expect("status of 502")
    page.goto("/settings")
    row(page, "ticketing").first.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("alert")).to_contain_text("ticketing did not take the test message")
    expect(page.get_by_role("alert")).to_contain_text("400")


@pytest.mark.usefixtures("wrong")
def test_a_receiver_that_is_gone_is_used_again(page: Page, server: Server) -> None:
    def is_disabled() -> bool:
        found = server.client.get("/api/v1/receivers").raise_for_status().json()["items"]
        return any(receiver["disabled_at"] for receiver in found)

    until(is_disabled)
    page.goto("/settings")
    gone = row(page, "old-chat").first
    expect(gone).to_contain_text("disabled")
    gone.get_by_role("button", name="Enable").click()
    expect(page.get_by_text("The receiver is used again.")).to_be_visible()
    expect(gone).to_contain_text("healthy")


def test_a_dead_letter_is_sent_again(page: Page, wrong: Small, listener: Listener) -> None:
    def is_dead() -> bool:
        query = {"status": "dead", "receiver": "ticketing"}
        found = wrong.server.client.get("/api/v1/deliveries", params=query).raise_for_status()
        return any(delivery["network"] == wrong.name for delivery in found.json()["items"])

    until(is_dead)
    page.goto("/settings")
    dead = page.get_by_role("region", name="Dead letters").get_by_role("row")
    mine = dead.filter(has_text=wrong.name).filter(has_text="ticketing")
    expect(mine).to_contain_text("400")
    before = len(listener.taken("/second"))
    mine.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("The message is on its way again.")).to_be_visible()
    listener.wait(before + 1, "/second")
    expect(mine).to_have_count(0)
    messages = page.get_by_role("region", name="Messages").get_by_role("row")
    again = messages.filter(has_text=wrong.name).filter(has_text="ticketing")
    expect(again).to_contain_text("delivered")


def test_a_silence_is_made_and_ended(page: Page, net: Small) -> None:
    page.goto("/settings")
    page.get_by_text("New silence").click()
    page.get_by_label("Matches", exact=True).fill(f'network={net.name} entity="R3"')
    silences = page.locator("section").filter(has_text="New silence")
    silences.get_by_label("Why").fill("exchange of line cards")
    silences.get_by_label("Hours").fill("2")
    silences.get_by_role("button", name="Silence").click()
    expect(page.get_by_text("Silenced.")).to_be_visible()
    mine = row(page, f"network={net.name}")
    expect(mine).to_contain_text("entity=R3")
    expect(mine).to_contain_text("exchange of line cards")
    mine.get_by_role("button", name="End").click()
    expect(page.get_by_text("The silence is over.")).to_be_visible()
    expect(mine).to_have_count(0)


def test_a_broad_silence_asks_for_confirmation(page: Page, watch: Watch, net: Small) -> None:
    watch.expect("status of 409")
    page.goto("/settings")
    page.get_by_text("New silence").click()
    page.get_by_label("Matches", exact=True).fill(f"network={net.name}")
    silences = page.locator("section").filter(has_text="New silence")
    silences.get_by_label("Why").fill("all of it")
    silences.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("alert")).to_contain_text("confirm")
    page.go_back()
    page.get_by_text("New silence").click()
    page.get_by_label("also if it is long or matches much").check()
    silences.get_by_role("button", name="Silence").click()
    expect(row(page, f"network={net.name}")).to_contain_text("all of it")
    row(page, f"network={net.name}").get_by_role("button", name="End").click()


def test_a_window_is_made_and_cancelled(page: Page, net: Small) -> None:
    page.goto("/settings")
    page.get_by_text("New window").click()
    page.get_by_label("Network", exact=True).fill(net.name)
    page.get_by_label("Recurs").fill("FREQ=WEEKLY;BYDAY=SU")
    page.get_by_label("Its time zone").fill("Europe/Berlin")
    page.get_by_label("Mode").select_option("hold")
    page.locator("#w-comment").fill("weekly upgrades")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("The maintenance window stands.")).to_be_visible()
    mine = row(page, net.name).filter(has_text="weekly upgrades")
    expect(mine).to_contain_text("FREQ=WEEKLY;BYDAY=SU Europe/Berlin")
    expect(mine).to_contain_text("pending")
    mine.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("The maintenance window is cancelled.")).to_be_visible()
    expect(mine).to_have_count(0)


def test_what_others_do_is_shown_without_a_reload(page: Page, net: Small) -> None:
    with page.expect_response("**/events?*"):
        page.goto("/settings")
    page.get_by_text("New silence").click()
    why = page.get_by_label("Why").first
    why.fill("half a sentence")
    matchers = [{"name": "network", "operator": "=", "value": net.name}]
    ends_at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    wanted = {"matchers": matchers, "comment": "by REST", "ends_at": ends_at, "confirm": True}
    made = net.server.client.post("/api/v1/silences", json=wanted).raise_for_status().json()
    mine = row(page, f"network={net.name}")
    expect(mine).to_contain_text("by REST")
    net.server.client.delete(f"/api/v1/silences/{made['id']}").raise_for_status()
    expect(mine).to_have_count(0)
    expect(why).to_have_value("half a sentence")


def test_the_model_s_card_is_there(page: Page) -> None:
    page.goto("/settings")
    expect(page.locator(".card-text")).to_be_hidden()
    page.get_by_text("Its card").click()
    expect(page.locator(".card-text")).to_contain_text("gsid")
