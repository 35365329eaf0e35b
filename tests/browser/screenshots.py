"""Pictures of the pages, light, dark and narrow: `python -m tests.browser.screenshots FOLDER`.

A real server watches two simulated networks; in one of them somebody made a mistake.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from PIL import Image
from playwright.sync_api import Browser, Page

from gsid_service.demo.network import network
from gsid_service.demo.play import Act, Kind, Script, sampled
from gsid_service.demo.remote import Remote
from gsid_service.demo.stage import Stage
from gsid_service.simulate.topologies import real
from gsid_service.terminal import say
from tests.browser.chromium import Watch, chromium
from tests.browser.server import telling
from tests.flow.server import Server
from tests.notify.listener import Listener, listening

QUIET, BROKEN, SEED = "topozoo/Abilene", "sndlib/nobel-eu", 0
WIDE, NARROW, HIGHEST = 1440, 430, 1500  # pixels
BYTES_AT_MOST = 250_000
LOOKS: dict[str, dict[str, Any]] = {
    "": {"viewport": {"width": WIDE, "height": 900}, "color_scheme": "light"},
    "-dark": {"viewport": {"width": WIDE, "height": 900}, "color_scheme": "dark"},
    "-narrow": {"viewport": {"width": NARROW, "height": 900}, "color_scheme": "light"},
}


class Scene(NamedTuple):
    """A network with a mistake in it, and a change that would be another one."""

    network: str  # the address of its page
    alert: str
    mistake: Act
    plan: Act


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        listening(Path(scratch)) as listener,
        telling(Path(scratch), listener) as server,
        chromium() as browser,
    ):
        scene = prepare(server, listener)
        for look in LOOKS:
            for picture in take(browser, server, scene, folder, look):
                size = picture.stat().st_size
                say(f"{picture}: {size:,} bytes")
                assert size < BYTES_AT_MOST


def prepare(server: Server, listener: Listener) -> Scene:
    begin(server, QUIET)
    stage, script = begin(server, BROKEN)
    acts = (act._replace(at=0.0) for act in script.acts(0.0, 0.0))
    mistake = next(act for act, well in stage.play(acts) if act.kind is Kind.MISTAKE and well)
    plan = next(act for act in acts if act.kind is Kind.MISTAKE)
    announce_work(server, stage.remote.network)
    listener.wait(1, "/ok")
    firing = next(alert for alert in stage.remote.alerts() if alert["status"] == "firing")
    return Scene(f"/networks/{stage.remote.network}", f"/alerts/{firing['id']}", mistake, plan)


def begin(server: Server, topology: str) -> tuple[Stage, Script]:
    """A network as its operator wants it."""
    remote = Remote(server.url, topology.rpartition("/")[2].lower())
    whole = network(remote.network, real(topology), SEED)
    wanted = sampled(whole, SEED)
    stage = Stage(remote, whole, say)
    stage.open(wanted)
    return stage, Script(whole, wanted, SEED)


def announce_work(server: Server, name: str) -> None:
    """A silence and a maintenance window, for the settings to show."""
    now = datetime.now(UTC)
    begin, end = ((now + timedelta(hours=hours)).isoformat() for hours in (20, 24))
    about = {"comment": "new line cards", "author": "ann", "ends_at": end}
    matchers = [{"name": "network", "value": name}, {"name": "entity", "value": "Paris"}]
    window = {"network": name, "rule": "FREQ=WEEKLY", "starts_at": begin}
    for path, wanted in (("silences", {"matchers": matchers}), ("maintenance", window)):
        server.client.post(f"/api/v1/{path}", json=about | wanted).raise_for_status()


def take(browser: Browser, server: Server, scene: Scene, folder: Path, look: str) -> Iterator[Path]:
    """A picture of each page, by one look."""
    context = browser.new_context(base_url=server.url, **LOOKS[look])
    watch, page = Watch(context, server.url), context.new_page()
    for name, path in pages(scene).items():
        page.goto(path)
        if name == "check":
            page.get_by_role("textbox").fill(candidate(scene.plan))
            page.get_by_role("button", name="Check").click()
            page.wait_for_selector(".verdict")
        yield photograph(page, folder / f"{name}{look}.png")
    context.close()
    watch.check()


def pages(scene: Scene) -> dict[str, str]:
    ((key, _), *_) = scene.mistake.values
    fact = urlencode([("predicate", key.predicate), *(("arg", arg) for arg in key.args)])
    return {
        "overview": "/",
        "wall": "/wall",
        "network": f"{scene.network}#{quote(f'{scene.network}/fact?{fact}', safe='')}",
        "alert": scene.alert,
        "snapshots": f"{scene.network}/snapshots",
        "check": f"{scene.network}/check",
        "settings": "/settings",
    }


def candidate(plan: Act) -> str:
    changes = [
        {
            "fact": {"predicate": key.predicate, "args": key.args},
            "parameter": parameter,
            "value": value,
        }
        for (key, parameter), value in plan.values.items()
    ]
    return json.dumps({"changes": changes}, indent=2)


def photograph(page: Page, file: Path) -> Path:
    """The whole page, as far as it is not endless."""
    if page.locator(".map").count():
        page.wait_for_selector("body[data-map-drawn]")
    if "#" in page.url:
        page.wait_for_selector("#panel h1")
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    taken = page.screenshot(
        full_page=True, clip={"x": 0, "y": 0, "width": width, "height": min(height, HIGHEST)}
    )
    shot = Image.open(BytesIO(taken)).convert("RGB")
    # A palette: a third of the size, and nobody sees it.
    few = shot.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(file, optimize=True)
    return file


if __name__ == "__main__":
    main(Path(sys.argv[1]))
