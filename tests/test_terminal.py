"""Rows: a table that can be read on a terminal, plain lines in a pipe."""

from typing import Any

import pytest
from rich.console import Console

from gsid_service import terminal

ROW: dict[str, Any] = {
    "id": "a3",
    "status": "acknowledged",
    "since": "2026-11-16T23:04:50.708235Z",
    "what is wrong": "local_pref on AS65104@Houston → 198.18.0.0/24 is 80, expected 200. " * 3,
}


def test_a_pipe_gets_lines_with_times_to_the_second(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_rows([ROW, ROW], as_json=False)
    head, first, _ = capsys.readouterr().out.splitlines()
    assert head.split("\t") == list(ROW)
    assert first.split("\t")[2] == "2026-11-16T23:04:50Z"


def test_a_narrow_terminal_leaves_short_words_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=80, force_terminal=True, color_system=None, **terminal.PLAIN)
    monkeypatch.setattr(terminal, "OUT", console)
    with console.capture() as captured:
        terminal.print_rows([ROW], as_json=False)
    shown = captured.get()
    assert "acknowledged" in shown
    assert "2026-11-16 23:04:50Z" in shown or "│ 2026-11-16 " in shown
    assert max(map(len, shown.splitlines())) <= 80
