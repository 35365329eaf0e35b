"""Figures of the browser on a network of 300 routers: `python -m tests.browser.measure [--json]`.

The page from the start of its navigation until its map is painted; an update from its event until
the map's colours are painted, and until the tables are exchanged.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, Page

from gsid_service.bench.figure import Figure
from gsid_service.demo.collectors import news
from gsid_service.demo.network import large
from gsid_service.ingest.wire import dump_snapshot
from gsid_service.records import Snapshot
from gsid_service.schema import BGP_ROUTE, LOCAL_PREF
from gsid_service.terminal import print_rows
from tests.browser.chromium import chromium
from tests.browser.networks import push
from tests.flow.network import changed
from tests.flow.server import Server, running

ROUTERS, LOADS, UPDATES = 300, 10, 10
ALLOWED_PAGE, ALLOWED_UPDATE = 1_500.0, 100.0
# Painted is what was drawn before a frame, once that frame is over.
OBSERVE = """
window.painted = [];
window.updated = [];
window.exchanged = [];
const afterFrame = (then) => requestAnimationFrame(() => setTimeout(then));
new MutationObserver((changes) => {
  const data = document.body?.dataset ?? {};
  if (changes.some((change) => change.attributeName === "data-map-drawn")) {
    afterFrame(() => window.painted.push(performance.now()));
  }
  if (changes.some((change) => change.attributeName === "data-drawn-ms")) {
    window.begun = performance.now() - Number(data.drawnMs);
    afterFrame(() => window.updated.push(performance.now() - window.begun));
  }
  if (changes.some((change) => change.target.id === "tables")) {
    afterFrame(() => window.exchanged.push(performance.now() - window.begun));
  }
}).observe(document, {
  subtree: true,
  childList: true,
  attributeFilter: ["data-map-drawn", "data-drawn-ms"],
});
"""
# Not Playwright's own waiting, which the console's Content-Security-Policy forbids.
NEXT = """([name, before]) => new Promise((found) => {
  const look = () => {
    if (window[name].length > before) found(window[name][before]);
    else setTimeout(look, 50);
  };
  look();
})"""


def measure() -> Iterator[Figure]:
    whole = large(ROUTERS)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(f"sqlite:///{folder}/gsid.db", Path(folder)) as server,
        chromium() as browser,
    ):
        push(server, dump_snapshot(whole))
        path = f"{server.url}/networks/{whole.network}"
        loads = [_load(browser, path) for _ in range(LOADS)]
        yield from _figures(f"network page, {ROUTERS} routers", loads, ALLOWED_PAGE)
        colours, tables = _updates(browser, server, whole)
        yield from _figures("event to colours", colours, ALLOWED_UPDATE)
        yield from _figures("event to tables", tables, ALLOWED_UPDATE)


def _figures(name: str, times: list[float], allowed: float) -> Iterator[Figure]:
    for what, value in (("median", median(times)), ("worst", max(times))):
        full = f"{name}, {what} of {len(times)}"
        yield Figure(full, value, "ms", f"{allowed:g} ms allowed", allowed / value)


def _load(browser: Browser, path: str) -> float:
    """With an empty cache, as somebody sees it who comes for the first time."""
    page = browser.new_page()
    page.add_init_script(OBSERVE)
    page.goto(path)
    painted = _next(page, "painted", 0)
    page.close()
    return painted


def _next(page: Page, name: str, before: int) -> float:
    found: float = page.evaluate(NEXT, [name, before])
    return found


def _updates(browser: Browser, server: Server, whole: Snapshot) -> tuple[list[float], list[float]]:
    """A value goes wrong and right again, in an open page."""
    page = browser.new_page()
    page.add_init_script(OBSERVE)
    with page.expect_response("**/events?*"):
        page.goto(f"{server.url}/networks/{whole.network}")
    _next(page, "painted", 0)
    route = next(fact for fact in whole.facts if fact.predicate == BGP_ROUTE.name)
    right, now = route.params[LOCAL_PREF.name], whole
    colours, tables = [], []
    for number in range(UPDATES):
        value = right if number % 2 else 0
        facts = changed(now.facts, route.key, LOCAL_PREF.name, value)
        after = replace(now, facts=facts, sequence=now.sequence + 1)
        counts = [page.evaluate(f"window.{name}.length") for name in ("updated", "exchanged")]
        push(server, dump_snapshot(news(now, after)))
        colours.append(_next(page, "updated", counts[0]))
        tables.append(_next(page, "exchanged", counts[1]))
        now = after
    page.close()
    return colours, tables


if __name__ == "__main__":
    print_rows([figure._asdict() for figure in measure()], "--json" in sys.argv)
