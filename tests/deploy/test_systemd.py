"""The systemd units, by systemd's own checks."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.flow.server import ROOT
from tests.postgres import missing

FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
EXPOSURE = 20  # of 100, by `systemd-analyze security`; an ordinary unit has 96


def analyze(*arguments: str) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("systemd-analyze")
    if program is None:
        missing("systemd-analyze")
        raise AssertionError
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", UNITS)
def test_units_are_valid(name: str, tmp_path: Path) -> None:
    """With a program that is there in place of the one that an installation brings."""
    text = (FOLDER / name).read_text()
    assert "ExecStart=/opt/gsid/bin/gsid " in text
    unit = tmp_path / name.replace("@", "@site1")
    unit.write_text(text.replace("/opt/gsid/bin/gsid", "/bin/true"))
    done = analyze("verify", "--man=no", str(unit))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("name", UNITS)
def test_units_are_hardened(name: str) -> None:
    flags = ("--offline=true", f"--threshold={EXPOSURE}")
    done = analyze("security", *flags, str(FOLDER / name))
    assert done.returncode == 0, done.stdout[-200:]
