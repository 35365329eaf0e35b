"""The map: choose by mouse and keyboard, find, zoom, layers; 300 routers, and 500."""

from itertools import combinations, product

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.chromium import Watch
from tests.browser.networks import PREFERRED, PREFIX, RIGHT, WRONG, Small, push, wide
from tests.flow.network import small
from tests.flow.server import Server


@pytest.fixture(scope="module")
def many(server: Server) -> str:
    push(server, wide("many", 300))
    return "/networks/many"


@pytest.fixture(scope="module")
def too_many(server: Server) -> str:
    push(server, wide("too-many", 500))
    return "/networks/too-many"


def draw(page: Page, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("body[data-map-drawn]")


def thing(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def panel(page: Page) -> Locator:
    return page.locator("#panel")


def view(page: Page) -> str:
    return page.locator(".canvas").get_attribute("viewBox") or ""


def test_shapes_tell_kinds_apart(page: Page, net: Small) -> None:
    draw(page, net.path)
    drawn = page.locator(".canvas")
    expect(drawn.locator("circle.node.router")).to_have_count(3)
    expect(drawn.locator("rect.node.route_reflector")).to_have_count(1)
    expect(drawn.locator("path.node.external_as")).to_have_count(2)
    expect(drawn.locator("rect.node.network")).to_have_count(1)
    expect(drawn.locator(".edge.connected")).to_have_count(4)
    expect(drawn.locator(".edge.bgp_route")).to_have_count(2)


def test_a_router_a_link_and_a_route_in_the_panel(page: Page, wrong: Small) -> None:
    draw(page, wrong.path)
    thing(page, "router R3").locator(".node").click()
    expect(panel(page).get_by_role("heading", name="R3", exact=True)).to_be_visible()
    expect(panel(page)).to_contain_text("reported by rr1")
    page.locator(".edge.connected .hit").first.click()
    expect(panel(page)).to_contain_text("ospf_weight")
    thing(page, f"external as {PREFERRED}").locator(".node").click()
    panel(page).get_by_role("link", name=PREFIX).click()
    expect(panel(page).get_by_role("heading", name="local_pref of")).to_be_visible()
    assert page.url.startswith(f"{wrong.server.url}{wrong.path}#")


def test_a_table_s_value_opens_in_the_panel_and_stays_fresh(page: Page, wrong: Small) -> None:
    draw(page, wrong.path)
    page.get_by_role("link", name=f"local_pref on {PREFERRED}").last.click()
    row = panel(page).get_by_role("row").filter(has_text="local_pref").first
    expect(row.get_by_role("cell").nth(1)).to_have_text(str(WRONG))
    expect(row.get_by_role("cell").nth(2)).to_have_text(str(RIGHT))
    wrong.see(RIGHT)
    expect(row.get_by_role("cell").nth(1)).to_have_text(str(RIGHT))
    page.reload()  # the address remembers what was open
    expect(row).to_be_visible()


def test_by_keyboard_to_a_router_and_into_its_panel(page: Page, net: Small) -> None:
    draw(page, net.path)
    page.get_by_role("button", name="Whole map").focus()
    page.keyboard.press("Tab")
    focused = page.locator(".thing:focus")
    expect(focused).to_have_attribute("aria-label", "router R1")
    assert (
        focused.locator(".node").evaluate("node => getComputedStyle(node).strokeWidth") == "3.5px"
    )
    page.keyboard.press("Enter")
    expect(panel(page).get_by_role("heading", name="R1", exact=True)).to_be_visible()
    seen = set()
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        for _ in range(4):  # as far as there is anything
            page.keyboard.press(key)
            seen.add(focused.get_attribute("aria-label"))
    assert len(seen) > 3
    assert "network 203.0.113.0/24" in seen, "it stands at an edge"
    page.keyboard.press("Tab")
    expect(panel(page).get_by_role("link").first).to_be_focused()


def test_find_zoom_and_layers(page: Page, net: Small) -> None:
    draw(page, net.path)
    whole = view(page)
    page.get_by_label("Zoom in").click()
    assert view(page) != whole
    page.get_by_role("button", name="Whole map").click()
    assert view(page) == whole
    page.get_by_label("Find").fill("r2")
    page.get_by_label("Find").press("Enter")
    expect(panel(page).get_by_role("heading", name="R2", exact=True)).to_be_visible()
    assert view(page) != whole
    session, route = page.locator(".edge.ibgp").first, page.locator(".edge.bgp_route").first
    expect(session).to_have_css("display", "none")
    page.get_by_role("checkbox", name="iBGP").check()
    expect(session).to_have_css("display", "inline")
    page.get_by_role("checkbox", name="routes").uncheck()
    expect(route).to_have_css("display", "none")


def test_light_and_dark_by_choice(page: Page, net: Small) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(net.path)
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_label("Change between light and dark").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark


def test_three_hundred_routers_stand_apart(page: Page, many: str) -> None:
    draw(page, many)
    places = page.locator(".canvas .thing.router, .canvas .thing.route_reflector")
    expect(places).to_have_count(300)
    found = {tuple(place) for place in places.evaluate_all(PLACES)}
    assert len(found) == 300
    closest = min(
        (x - u) ** 2 + (y - v) ** 2 for x, y in found for u, v in found if (x, y) != (u, v)
    )
    assert closest > 10**2, "they would cover each other"


PLACES = (
    "all => all.map((one) => "
    "one.getAttribute('transform').match(/[-\\d.]+/g).slice(0, 2).map(Number))"
)


def test_names_leave_each_other_room_and_come_as_one_zooms(page: Page, many: str) -> None:
    draw(page, many)
    names = page.locator(".canvas .thing:not(.network) .name:visible")
    before = names.count()
    assert 20 < before < 300
    boxes = names.evaluate_all(BOXES)
    over = [(a, b) for a, b in combinations(boxes, 2) if _overlap(a, b)]
    assert len(over) < before / 20, "letters are wider or narrower than is thought"
    for _ in range(4):
        page.get_by_label("Zoom in").click()
    assert names.count() > before
    node = page.locator(".canvas .thing.router .node").first
    assert node.evaluate("one => one.getBoundingClientRect().width") < 20, "as large as it was"


BOXES = (
    "all => all.map((one) => one.getBoundingClientRect())"
    ".map((box) => [box.left, box.top, box.right, box.bottom])"
)


def _overlap(a: list[float], b: list[float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_long_and_second_names_on_the_map(page: Page, server: Server) -> None:
    seen = small("long-names")
    seen["entities"][0]["label"] = "Rotterdam"
    seen["entities"][1]["label"] = "R2-" + "far-away-" * 20
    seen["entities"][2]["label"] = "r3"
    push(server, seen)
    draw(page, "/networks/long-names")
    names = page.locator(".canvas .thing.router .name").all_text_contents()
    assert f"{seen['entities'][0]['id']} Rotterdam" in names, "sentences speak of its id"
    assert max(map(len, names)) == 24
    assert "r3" in names, "the same name is not said twice"


def test_five_hundred_routers_are_clustered_and_found(page: Page, too_many: str) -> None:
    draw(page, too_many)
    expect(page.get_by_text("500 routers are too many for one map")).to_be_visible()
    drawn = page.locator(".canvas .thing.router, .canvas .thing.route_reflector")
    assert drawn.count() <= 300
    clusters = page.locator(".canvas .cluster:is(.router, .route_reflector) .name")
    joined = sum(int(text.rpartition("+")[2]) for text in clusters.all_text_contents())
    assert drawn.count() + joined == 500
    shown = set(drawn.evaluate_all("all => all.map((one) => one.dataset.id)"))
    routers = [e["id"] for e in wide("", 500)["entities"] if e["kind"] == "router"]
    name = next(router for router in routers if router not in shown)
    page.get_by_label("Find").fill(name)
    page.get_by_label("Find").press("Enter")
    expect(panel(page).get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(page.locator(".canvas .cluster.chosen")).to_have_count(1)
    panel(page).get_by_role("link", name="on the map").click()
    page.wait_for_selector("body[data-map-drawn]")
    expect(page.locator(f'.thing.chosen[data-id="{name}"]')).to_be_visible()
    expect(panel(page).get_by_role("heading", name=name, exact=True)).to_be_visible()
    page.get_by_role("link", name="the whole network").click()
    expect(page.get_by_text("500 routers are too many")).to_be_visible()


def test_nothing_lies_upon_another_where_there_are_many(page: Page, too_many: str) -> None:
    draw(page, too_many)
    pills = page.locator(".canvas .thing.network .node").evaluate_all(BOXES)
    names = page.locator(".canvas .thing:not(.network) .name:visible").evaluate_all(BOXES)
    assert len(names) > 30
    assert not [pair for pair in combinations(pills, 2) if _overlap(*pair)]
    assert not [pair for pair in product(pills, names) if _overlap(*pair)]


def test_an_alert_s_paths_go_through_clusters(page: Page, wrong: Small) -> None:
    def join(route: Route) -> None:
        """R2 stands for R1, as on a map of many."""
        drawn = route.fetch().json()
        drawn["nodes"] = [node for node in drawn["nodes"] if node["id"] != "R1"]
        drawn["lines"] = [line for line in drawn["lines"] if "R1" not in (line["a"], line["b"])]
        route.fulfill(json=drawn | {"heads": {"R1": "R2"}})

    page.route("**/map", join)
    page.goto(f"/alerts/{wrong.alert()['id']}")
    page.locator("[data-path]").filter(has_text="R1 →").first.click()
    expect(page.locator('.on-path[data-id="R2"]')).to_be_attached()
    for kind in ("before", "after"):
        expect(page.locator(f".overlay .path.{kind}").first).to_be_attached()
    page.unroute_all(behavior="wait")


def test_a_path_that_is_chosen_before_the_map_is_drawn_is_shown(page: Page, wrong: Small) -> None:
    held: list[Route] = []
    page.route("**/map", lambda route: held.append(route))
    page.goto(f"/alerts/{wrong.alert()['id']}")
    paths = page.locator("[data-path]")
    paths.last.click()
    expect(paths.last).to_have_attribute("aria-pressed", "true")
    source = (paths.last.text_content() or "").split()[0]
    for route in held:
        route.continue_()
    expect(page.locator(f'.on-path[data-id="{source}"]')).to_be_attached()
    page.unroute_all(behavior="wait")


def test_what_is_nowhere_is_said(page: Page, watch: Watch, net: Small) -> None:
    watch.expect("status of 404")
    draw(page, net.path)
    page.get_by_label("Find").fill("R99")
    page.get_by_label("Find").press("Enter")
    expect(panel(page)).to_contain_text(f"'R99' is not in {net.name}")
    page.goto(f"{net.path}?around=R99")
    expect(page.get_by_role("heading", name="Not Found")).to_be_visible()
