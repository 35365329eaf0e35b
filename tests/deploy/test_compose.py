"""Dockerfile and compose file: valid, clean, and what they name is there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from gsid_service.__main__ import app
from gsid_service.app import ROLES
from gsid_service.config import load
from tests.flow.server import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BIN = Path(sys.executable).parent


def run(*command: str | Path) -> None:
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_finds_nothing() -> None:
    run(BIN / "hadolint", "Dockerfile")


def test_the_compose_file_follows_its_schema() -> None:
    schema = "vendor.compose-spec"
    run(BIN / "check-jsonschema", "--builtin-schema", schema, "docker-compose.yml")


@pytest.mark.parametrize("name", SERVICES)
def test_services_are_watched_confined_and_come_back(name: str) -> None:
    service = SERVICES[name]
    for_ever = name != "setup"
    assert service["restart"] == ("unless-stopped" if for_ever else "no")
    assert "no-new-privileges:true" in service["security_opt"]
    assert ("healthcheck" in service) == (for_ever and name != "demo")
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    if name != "database":  # whose image begins as root, to own its files
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]


def test_images_are_pinned() -> None:
    others = {n: s["image"] for n, s in SERVICES.items() if not s["image"].startswith("gsid:")}
    assert all(re.search(r":v?\d+[\w.-]*$", image) for image in others.values()), others


def test_what_is_mounted_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).exists(), source
            else:
                assert source in COMPOSE["volumes"], source


def test_secrets_are_files_that_a_script_makes(tmp_path: Path) -> None:
    script = tmp_path / "make-secrets"
    script.write_text((ROOT / "deploy/compose/make-secrets").read_text())
    run("sh", script)
    made = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert set(made) == set(COMPOSE["secrets"])
    assert len(set(made.values())) == len(made)
    assert all(len(secret) >= 43 for secret in made.values())
    run("sh", script)
    again = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert again == made
    ignored = (ROOT / ".gitignore").read_text().split()
    for name, secret in COMPOSE["secrets"].items():
        assert secret["file"] == f"deploy/compose/secrets/{name}"
    assert "deploy/compose/secrets/" in ignored


def test_the_settings_are_taken_and_their_receivers_are_services() -> None:
    variables = SERVICES["gsid"]["environment"]
    found = load(ROOT / "deploy/compose/gsid.toml", variables)
    assert found.database.url == "postgresql+psycopg://gsid@database/gsid"
    assert str(found.database.password_file) == "/run/secrets/database_password"
    (receiver,) = found.receivers
    assert receiver.url == "http://alertmanager:9093"
    assert {"alertmanager", "database"} <= set(SERVICES)


def test_there_is_a_service_of_every_role() -> None:
    commands = {name: service.get("command", []) for name, service in SERVICES.items()}
    roles = {c[c.index("--role") + 1] for c in commands.values() if "--role" in c}
    assert roles == set(ROLES)
    for name in ("gsid", "scorer", "notifier"):
        assert commands[name][:3] == ["serve", "--config", "/etc/gsid/gsid.toml"]


def test_prometheus_scrapes_services_of_the_compose_file() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = [t for job in config["scrape_configs"] for t in job["static_configs"][0]["targets"]]
    targets += config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    targets += config["scrape_configs"][0]["dns_sd_configs"][0]["names"]
    hosts = {target.split(":")[0] for target in targets} - {"127.0.0.1"}
    assert hosts == {"gsid", "scorer", "notifier", "alertmanager"}
    token = config["scrape_configs"][0]["authorization"]["credentials_file"]
    assert Path(token).name in SERVICES["prometheus"]["secrets"]


def test_the_setup_makes_every_token_that_others_use() -> None:
    (script,) = SERVICES["setup"]["command"]
    for name in ("prometheus_token", "collector_token", "operator_token"):
        assert f"--secret-file /run/secrets/{name}" in script
        assert name in SERVICES["setup"]["secrets"]
    for line in script.strip().splitlines():
        command = line.split()[1:]
        shown = CliRunner().invoke(app, [*command[:2], "--help"])
        assert shown.exit_code == 0, line


def test_the_demo_is_called_with_options_that_it_has() -> None:
    name, *flags = SERVICES["demo"]["command"]
    known = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).stdout
    for flag in flags:
        option, _, value = flag.partition("=")
        assert f"{option} " in known
        if value.startswith("/run/secrets/"):
            assert Path(value).name in SERVICES["demo"]["secrets"]
