"""Debian's real Alertmanager for tests; without it they are skipped, and with CI=true they fail."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.postgres import free_port, missing

CONFIG = "route:\n  receiver: nobody\nreceivers:\n  - name: nobody\n"


@contextmanager
def alertmanager(folder: Path, settings: str = CONFIG) -> Iterator[str]:
    """A running Alertmanager; its URL."""
    program = shutil.which("prometheus-alertmanager")
    if program is None or shutil.which("amtool") is None:
        missing("prometheus-alertmanager")
        raise AssertionError
    config, port = folder / "alertmanager.yml", free_port()
    config.write_text(settings)
    command = [program, f"--config.file={config}", f"--storage.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_ready(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def wait_ready(url: str) -> None:
    """Until Alertmanager, or Prometheus, answers."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/-/ready").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"{url} does not start")


def active(url: str) -> list[dict[str, Any]]:
    """What amtool sees firing."""
    command = ["amtool", f"--alertmanager.url={url}", "alert", "query", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def severities(url: str, network: str) -> dict[str, str]:
    """The severity of each alert of a network."""
    found = [a["labels"] for a in active(url) if a["labels"]["network"] == network]
    return {labels["alert_id"]: labels["severity"] for labels in found}
