"""The pages about settings are what the settings are."""

import pytest
from typer.testing import CliRunner

from gsid_service.__main__ import app
from gsid_service.config import Settings, fields
from tests.flow.server import ROOT


def printed(*flags: str) -> str:
    done = CliRunner().invoke(app, ["settings", *flags])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("file", "flags"), [("gsid.toml", []), ("configuration.md", ["--markdown"])]
)
def test_the_page_in_docs_is_current(file: str, flags: list[str]) -> None:
    assert (ROOT / "docs" / file).read_text() == printed(*flags), "run make docs"


def test_every_setting_has_a_row_with_what_is_allowed() -> None:
    lines = printed("--markdown").splitlines()
    for section in Settings.model_fields:
        for key in fields(section):
            assert any(line.startswith(f"| `{key}` |") for line in lines), f"{section}.{key}"
    assert (
        "| `port` | `8080` | a whole number from 0 to 65535 | Port; 0 takes a free one. |" in lines
    )
    assert "| `hosts` | `[]` | a list |" in "\n".join(lines)
    assert "| `level` | `info` | `debug`, `info`, `warning`, `error` | Least level. |" in lines
    assert "| `name` | must be given | text | As you like to call it. |" in lines
