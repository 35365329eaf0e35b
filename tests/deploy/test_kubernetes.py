"""The Kubernetes manifests as kustomize renders them: valid, confined, and they fit together."""

import shutil
import subprocess
from functools import cache
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gsid_service.app import ROLES
from gsid_service.config import load
from tests.flow.server import ROOT
from tests.postgres import missing

FOLDER = ROOT / "deploy" / "kubernetes"
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())
OTHERS = {"ServiceMonitor"}  # defined by an operator, not by Kubernetes: there is no schema
Manifest = dict[str, Any]


@cache
def rendered(overlay: str) -> list[Manifest]:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        missing("kubectl")
        raise AssertionError
    command = [kubectl, "kustomize", str(FOLDER / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def only(overlay: str, kind: str, name: str | None = None) -> Manifest:
    """The one manifest of a kind, or of a kind and name."""
    (found,) = [
        manifest
        for manifest in rendered(overlay)
        if manifest["kind"] == kind and name in {None, manifest["metadata"]["name"]}
    ]
    return found


def pods(overlay: str) -> list[Manifest]:
    """The pod templates of an overlay."""
    return [m["spec"]["template"] for m in rendered(overlay) if m["kind"] in {"Deployment", "Job"}]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_manifest_is_valid(overlay: str) -> None:
    for manifest in rendered(overlay):
        if manifest["kind"] not in OTHERS:
            kubernetes_validate.validate(manifest, "1.32", strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_containers_are_confined_and_bounded(overlay: str) -> None:
    for pod in pods(overlay):
        spec = pod["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["runAsUser"] == 10001
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}
            assert container["image"].startswith("registry.example/gsid:")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_service_is_probed_and_found(overlay: str) -> None:
    deployments = [m for m in rendered(overlay) if m["kind"] == "Deployment"]
    for deployment in deployments:
        template = deployment["spec"]["template"]
        container = template["spec"]["containers"][0]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] == "http"
        service = only(overlay, "Service", deployment["metadata"]["name"])
        assert service["spec"]["selector"] == template["metadata"]["labels"]
    labels = only(overlay, "Deployment", "gsid")["spec"]["template"]["metadata"]["labels"]
    assert only(overlay, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_settings_of_the_config_maps_are_taken(overlay: str) -> None:
    maps = [m["data"] for m in rendered(overlay) if m["kind"] == "ConfigMap"]
    variables = next(data for data in maps if "gsid.toml" not in data)
    settings = load(FOLDER / "base" / "gsid.toml", variables)
    assert settings.database.url.startswith(f"{overlay}")
    assert settings.server.host == "0.0.0.0"  # noqa: S104
    assert settings.database.migrate == (overlay == "sqlite"), "the job migrates PostgreSQL"


def test_prometheus_finds_the_service_under_the_job_of_the_rules() -> None:
    monitor = only("postgresql", "ServiceMonitor")["spec"]
    services = [m for m in rendered("postgresql") if m["kind"] == "Service"]
    assert len(services) == 3
    for service in services:
        labels = service["metadata"]["labels"]
        assert monitor["selector"]["matchLabels"].items() <= labels.items()
        assert labels[monitor["jobLabel"]] == "gsid"
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert monitor["endpoints"][0]["port"] in ports


def test_every_role_is_deployed_where_there_can_be_several() -> None:
    found = {}
    for deployment in (m for m in rendered("postgresql") if m["kind"] == "Deployment"):
        args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        found[args[args.index("--role") + 1]] = deployment["spec"]["replicas"]
    assert found == dict.fromkeys(ROLES, 2)
    alone = only("sqlite", "Deployment")["spec"]
    assert alone["replicas"] == 1
    assert "--role" not in alone["template"]["spec"]["containers"][0]["args"]


def test_the_network_policy_lets_the_service_reach_its_database() -> None:
    egress = only("postgresql", "NetworkPolicy")["spec"]["egress"]
    ports = {port["port"] for rule in egress for port in rule["ports"]}
    assert ports == {53, 443, 5432, 9093}
    assert 5432 not in {
        port["port"]
        for rule in only("sqlite", "NetworkPolicy")["spec"]["egress"]
        for port in rule["ports"]
    }


def test_the_data_of_sqlite_is_on_a_volume_that_stays() -> None:
    volumes = only("sqlite", "Deployment")["spec"]["template"]["spec"]["volumes"]
    data = next(volume for volume in volumes if volume["name"] == "data")
    claim = only("sqlite", "PersistentVolumeClaim")
    assert data == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]},
    }
