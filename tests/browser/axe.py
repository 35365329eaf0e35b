"""axe-core on a page, by light and by dark."""

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

SERIOUS = {"serious", "critical"}
RUN = "options => axe.run(document, { ...options, resultTypes: ['violations'] })"


def problems(page: Page) -> list[str]:
    """What is serious, with where it is; by dark only the colours differ."""
    page.evaluate(AXE_SCRIPT)
    page.emulate_media(color_scheme="light")
    found = _run(page, {})
    page.emulate_media(color_scheme="dark")
    return found + [f"dark: {line}" for line in _run(page, {"runOnly": ["color-contrast"]})]


def _run(page: Page, options: dict[str, list[str]]) -> list[str]:
    return [
        f"{violation['id']} at {node['target'][0]}: {node['failureSummary']}"
        for violation in page.evaluate(RUN, options)["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]
