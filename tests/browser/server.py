"""The real server with receivers: one takes every message, one none at first, one never any."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.flow.server import Server, running
from tests.notify.listener import SECRET, Listener

SETTINGS = """
[notify]
group_wait_seconds = 0
group_interval_seconds = 0

[[receivers]]
name = "noc"
type = "webhook"
url = "{url}/ok"
secret_env = "NOC_SECRET"

[[receivers]]
name = "ticketing"
type = "webhook"
url = "{url}/second"
secret_env = "NOC_SECRET"

[[receivers]]
name = "old-chat"
type = "webhook"
url = "{url}/retired"
secret_env = "NOC_SECRET"
"""


@contextmanager
def telling(folder: Path, listener: Listener) -> Iterator[Server]:
    config = folder / "gsid.toml"
    config.write_text(SETTINGS.format(url=listener.url("")))
    url = f"sqlite:///{folder / 'gsid.db'}"
    with running(url, folder, "--config", str(config), NOC_SECRET=SECRET) as started:
        yield started
