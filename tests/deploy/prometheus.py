"""Debian's real Prometheus for tests; without it they are skipped, and with CI=true they fail."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.flow.server import ROOT
from tests.notify.alertmanager import wait_ready
from tests.postgres import free_port, missing

SHIPPED = ROOT / "deploy" / "prometheus"


def program(name: str) -> str:
    """Where `prometheus` or `promtool` is."""
    found = shutil.which(name)
    if found is None:
        missing(name)
        raise AssertionError
    return found


def shipped(gsid: str, alertmanager: str, token: Path) -> dict[str, Any]:
    """The shipped configuration with the addresses of a test, and without its patience."""
    config: dict[str, Any] = yaml.safe_load((SHIPPED / "prometheus.yml").read_text())
    config["global"] = dict.fromkeys(config["global"], "1s")
    config["rule_files"] = [str(SHIPPED / path) for path in config["rule_files"]]
    config["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [alertmanager]}]
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    jobs["gsid"]["authorization"]["credentials_file"] = str(token)
    jobs["gsid"]["static_configs"] = [{"targets": [gsid]}]
    del jobs["gsid"]["dns_sd_configs"]
    config["scrape_configs"] = [jobs["gsid"]]
    return config


class Prometheus:
    """A running Prometheus, asked by its API."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(base_url=url, timeout=10)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an expression, now."""
        answer = self.client.get("/api/v1/query", params={"query": expression})
        assert answer.is_success, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        groups = self.client.get("/api/v1/rules").raise_for_status().json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


@contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Prometheus]:
    command = [program("prometheus")]
    file, url = folder / "prometheus.yml", f"127.0.0.1:{free_port()}"
    file.write_text(yaml.safe_dump(config))
    command += [f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address={url}", "--log.level=warn"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_ready(f"http://{url}")
        found = Prometheus(f"http://{url}")
        with found.client:
            yield found
    finally:
        process.terminate()
        process.wait(10)
