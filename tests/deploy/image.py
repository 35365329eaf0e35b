"""Builds the image with buildah and runs it with podman: `make test-image`.

Read-only, without capabilities and as a user of its own it gets ready, takes a snapshot, keeps it
when it is killed, and stops in time. It needs root, buildah, podman, runc and debootstrap.
"""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from gsid_service.terminal import say
from tests.flow.network import small
from tests.flow.server import ROOT
from tests.postgres import free_port

BASE = "localhost/python:3.11-slim"  # made by tests/deploy/base-image
NEEDED = ("buildah", "podman", "runc", "debootstrap")
SCRATCH = ROOT / "build" / "image"
STORAGE = ["--root", f"{SCRATCH}/storage", "--runroot", f"{SCRATCH}/run", "--storage-driver", "vfs"]
IMAGE, CONTAINER, VOLUME = "localhost/gsid:test", "gsid-test", SCRATCH / "volume"
USER = 10001
START_WITHIN, STOP_WITHIN = 120.0, 10.0
CONFINED = [
    *("--runtime", "runc", "--network", "host", "--memory", "1g"),
    *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),
    *("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL"),  # noqa: S108
    *("--security-opt", "no-new-privileges", "--log-driver", "k8s-file"),
]
LARGEST = 1.5e9  # bytes
SECRETS = ("password=", "token=", "secret=")  # in no layer's command or variable


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


def podman(*arguments: str) -> str:
    return run("podman", *STORAGE, *arguments)


def pip_settings() -> list[str]:
    """How this machine reaches packages, for the build alone: the image keeps nothing of it."""
    file, wheels = SCRATCH / "pip.conf", os.environ.get("PIP_FIND_LINKS", "")
    file.write_text(f"[global]\nfind-links = {wheels}\n" if wheels else "")
    mounts = [f"--volume={file}:/etc/pip.conf:ro"]
    return mounts + ([f"--volume={wheels}:{wheels}:ro"] if Path(wheels).is_dir() and wheels else [])


def build() -> None:
    run("tests/deploy/base-image", str(SCRATCH))
    run(
        *("buildah", *STORAGE, "bud", "--isolation", "chroot", "--network", "host"),
        *("--format", "docker", "--pull-never", "--build-arg", f"BASE={BASE}"),
        *(*pip_settings(), "--tag", IMAGE, "."),
    )


def inspect() -> None:
    """What the image is, without running it."""
    found: dict[str, Any] = json.loads(podman("image", "inspect", IMAGE))[0]
    say(f"image: {found['Size'] / 1e6:.0f} MB")
    config = found["Config"]
    assert found["Size"] < LARGEST
    assert config["User"] == f"{USER}:{USER}"
    assert found["Healthcheck"]["Test"][0] == "CMD"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    said = json.dumps([config["Env"], found["History"]]).lower()
    assert not [
        word for word in ("password=", "token=", "secret=", "index-url=http") if word in said
    ]


def start(port: int) -> httpx.Client:
    shutil.rmtree(VOLUME, ignore_errors=True)
    VOLUME.mkdir()
    shutil.chown(VOLUME, USER, USER)
    podman(
        *("run", "--detach", "--name", CONTAINER, *CONFINED, "--volume", f"{VOLUME}:/var/lib/gsid"),
        *("--env", "GSID_SERVER_HOST=127.0.0.1", "--env", f"GSID_SERVER_PORT={port}", IMAGE),
    )
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)


def wait_ready(client: httpx.Client) -> float:
    begun = time.monotonic()
    while time.monotonic() < begun + START_WITHIN:
        try:
            if client.get("/-/ready").is_success:
                return time.monotonic() - begun
        except httpx.TransportError:
            time.sleep(0.1)
    logs = ["podman", *STORAGE, "logs", "--tail", "50", CONTAINER]
    subprocess.run(logs, check=False)
    raise SystemExit(f"not ready in {START_WITHIN} s")


def is_confined() -> None:
    """As the image's user, nothing but its volume can be written."""
    assert podman("exec", CONTAINER, "id", "-u") == str(USER)
    tried = "touch /opt/gsid/x 2>/dev/null || touch /x 2>/dev/null || echo refused"
    assert podman("exec", CONTAINER, "sh", "-c", tried) == "refused"
    capabilities = podman("exec", CONTAINER, "grep", "CapEff", "/proc/self/status")
    assert int(capabilities.split()[1], 16) == 0


def takes_a_snapshot(client: httpx.Client) -> None:
    answer = client.post("/ingest", json=small("as65000"))
    assert answer.status_code == 202, answer.text
    query = {"snapshot": answer.json()["snapshot_id"], "wait": 30}
    scored = client.get("/api/v1/networks/as65000/scores", params=query)
    assert scored.raise_for_status().json()["items"]


def survives_a_kill(client: httpx.Client) -> None:
    podman("kill", "--signal", "KILL", CONTAINER)
    podman("wait", CONTAINER)
    podman("start", CONTAINER)
    wait_ready(client)
    again = client.post("/ingest", json=small("as65000"))
    assert (again.status_code, again.json()["duplicate"]) == (200, True)


def backs_up(client: httpx.Client) -> None:
    podman("exec", CONTAINER, "gsid", "backup", "/var/lib/gsid/gsid.backup")
    assert (VOLUME / "gsid.backup").stat().st_uid == USER
    assert client.get("/-/ready").is_success


def plays_the_demo(port: int) -> None:
    """As the profile demo of the compose file does, until the first mistake is found."""
    podman(
        *("run", "--rm", *CONFINED, IMAGE, "demo", f"--against=http://127.0.0.1:{port}"),
        *("--once", "--mistake-after", "1"),
    )


def stops_in_time() -> float:
    begun = time.monotonic()
    podman("kill", "--signal", "TERM", CONTAINER)
    code = podman("wait", CONTAINER)
    took = time.monotonic() - begun
    assert took < STOP_WITHIN, took
    assert code == "0", code
    return took


def main() -> None:
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if os.getuid() != 0 or missing:
        reason = f"without {', '.join(missing)}" if missing else "without root"
        say(f"the image is not tried {reason}")
        raise SystemExit(os.environ.get("CI") == "true")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    build()
    inspect()
    podman("rm", "--force", "--ignore", CONTAINER)
    try:
        port = free_port()
        client = start(port)
        say(f"ready after {wait_ready(client):.1f} s")
        is_confined()
        takes_a_snapshot(client)
        survives_a_kill(client)
        backs_up(client)
        plays_the_demo(port)
        say(f"stopped after {stops_in_time():.1f} s")
    finally:
        podman("rm", "--force", CONTAINER)
    say("the image works")


if __name__ == "__main__":
    main()
