"""What one does about an alert, by the buttons of its page."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import Watch
from tests.browser.conftest import Visit
from tests.browser.networks import PREFERRED, RIGHT, WRONG, Small
from tests.flow.server import Server


def show(page: Page, net: Small) -> None:
    page.goto(f"/alerts/{net.alert()['id']}")


def badge(page: Page, word: str) -> None:
    expect(page.locator(".alert-head .badges").get_by_text(word, exact=True)).to_be_visible()


def test_acknowledge(page: Page, wrong: Small) -> None:
    show(page, wrong)
    page.get_by_label("Note").fill("on it")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status").filter(has_text="Acknowledged.")).to_be_visible()
    badge(page, "acknowledged")
    expect(page.locator(".timeline li").first).to_contain_text("on it")
    expect(page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    assert wrong.alert()["status"] == "acknowledged"


def test_acknowledge_without_a_script(visit: Visit, server: Server, wrong: Small) -> None:
    page = visit(server, java_script_enabled=False)
    show(page, wrong)
    page.get_by_role("button", name="Acknowledge").click()
    badge(page, "acknowledged")


def test_silence(page: Page, wrong: Small) -> None:
    show(page, wrong)
    page.get_by_label("Silence for").select_option("4 hours")
    page.get_by_placeholder("why").fill("known, fixed on Monday")
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("status").filter(has_text="Silenced.")).to_be_visible()
    badge(page, "silenced")
    page.get_by_role("link", name="Settings").click()
    row = page.get_by_role("row").filter(has_text=f"network={wrong.name}")
    expect(row).to_contain_text("known, fixed on Monday")
    row.get_by_role("button", name="End").click()
    expect(page.get_by_text("The silence is over.")).to_be_visible()
    expect(row).to_have_count(0)
    show(page, wrong)
    badge(page, "firing")


@pytest.mark.parametrize("verdict", ["true", "false"])
def test_verdict(page: Page, wrong: Small, verdict: str) -> None:
    show(page, wrong)
    page.get_by_role("button", name=f"{verdict.capitalize()} alarm").click()
    expect(page.get_by_text("Your verdict is kept")).to_be_visible()
    badge(page, f"{verdict} alarm")
    assert wrong.alert()["verdict"] == verdict


def test_approve_as_the_new_baseline(page: Page, wrong: Small) -> None:
    show(page, wrong)
    page.get_by_role("link", name="approve as the new baseline").click()
    change = page.get_by_role("region", name="Differences").locator("tbody tr")
    expect(change.locator("ins")).to_have_text(str(WRONG))
    expect(page.get_by_text("1 open alert")).to_be_visible()
    page.get_by_role("button", name="Approve all of it").click()
    expect(page.get_by_text("Approved. What was approved")).to_be_visible()
    expect(page.get_by_text("Nothing is open.")).to_be_visible()
    assert wrong.alert()["status"] == "resolved"
    show(page, wrong)
    badge(page, "resolved")
    expect(page.get_by_role("button", name="Silence")).to_have_count(0)


def test_what_came_in_after_the_page_is_not_approved(page: Page, net: Small) -> None:
    page.goto(f"{net.path}/approve")
    net.see(WRONG)
    page.get_by_role("button", name="Approve it for good").click()
    expect(page.get_by_text("Approved. What was approved")).to_be_visible()
    page.goto(f"{net.path}/approve")
    expect(page.locator("ins")).to_have_text(str(WRONG))


def test_approve_for_good_what_was_seen_first(page: Page, net: Small) -> None:
    page.goto(f"{net.path}/approve")
    history = page.get_by_role("table").locator("tbody tr")
    expect(history.first).to_contain_text("provisional")
    page.get_by_role("button", name="Approve it for good").click()
    page.goto(f"{net.path}/approve")
    expect(history).to_have_count(2)
    expect(history.first).not_to_contain_text("provisional")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_copy_the_fix(visit: Visit, server: Server, wrong: Small) -> None:
    page = visit(server, permissions=["clipboard-read", "clipboard-write"])
    show(page, wrong)
    page.get_by_role("button", name="Copy the fix").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("local_pref on ")
    assert PREFERRED in copied
    assert copied.endswith(f"{WRONG} -> {RIGHT}")


def test_what_a_form_must_not_say_is_refused_by_a_page(
    page: Page, watch: Watch, wrong: Small
) -> None:
    watch.expect("status of 422")
    show(page, wrong)
    # At once: a page that is just being shown anew has its own value again.
    page.locator("#hours option").first.evaluate(
        "option => { option.value = '9000'; option.form.requestSubmit() }"
    )
    expect(page.get_by_role("alert")).to_have_text("hours: must be from 1 to 168")
    assert wrong.alert()["status"] == "firing"
