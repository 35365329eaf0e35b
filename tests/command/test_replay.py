"""`gsid deliveries replay --all`: in the order in which the messages were made."""

from typing import Any

import pytest
from typer.testing import CliRunner

from gsid_service.__main__ import app
from gsid_service.command import notices


def test_dead_letters_are_replayed_the_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service lists the newest first, and a page must not come after its end."""
    asked: list[str] = []

    def ask(_url: str, _token: str | None, _method: str, path: str) -> dict[str, Any]:
        asked.append(path.split("/")[-2])
        return {}

    monkeypatch.setattr(notices, "ask_all", lambda *_: [{"id": "d9"}, {"id": "d7"}, {"id": "d2"}])
    monkeypatch.setattr(notices, "ask", ask)
    done = CliRunner().invoke(app, ["deliveries", "replay", "--all"])
    assert (done.exit_code, asked) == (0, ["d2", "d7", "d9"]), done.output
