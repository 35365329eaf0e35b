"""`gsid baseline approve` as a person types it: a mistake is not approved by the way."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gsid_service import terminal
from gsid_service.__main__ import app
from tests.api.inside import NET, NETWORK, Inside, inside


@pytest.fixture
def mistaken(tmp_path: Path) -> Iterator[Inside]:
    """A network with an alert that is open."""
    with inside(f"sqlite:///{tmp_path / 'gsid.db'}") as opened:
        opened.see()
        opened.see(local_pref=50)
        assert len(opened.alerts()) == 1
        yield opened


def approve(net: Inside, *options: str, stdin: str | None = None) -> Result:
    arguments = ["baseline", "approve", NET, *options, "--url", net.address]
    return CliRunner().invoke(app, arguments, input=stdin)


def approvals(net: Inside) -> int:
    return len(net.get("/baseline/history")["items"])


def test_where_nobody_can_be_asked_open_alerts_stop_it(mistaken: Inside) -> None:
    done = approve(mistaken)
    assert (done.exit_code, approvals(mistaken)) == (2, 1)
    assert "a1 critical: local_pref on AS65101@R3" in done.stderr
    assert "1 alert is open" in done.stderr
    assert "--yes" in done.stderr


@pytest.mark.parametrize(("answer", "code", "count"), [("y", 0, 2), ("n", 2, 1), ("", 2, 1)])
def test_on_a_terminal_it_asks(
    mistaken: Inside, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, count: int
) -> None:
    monkeypatch.setattr(terminal, "is_attended", lambda: True)
    done = approve(mistaken, stdin=f"{answer}\n")
    assert (done.exit_code, approvals(mistaken)) == (code, count), done.output


def test_who_says_yes_is_told_what_is_over(mistaken: Inside) -> None:
    done = approve(mistaken, "--yes")
    assert "1 alert is over with it" in done.stderr
    mistaken.cycle()
    assert mistaken.alerts() == []


def test_what_was_right_is_approved_without_a_question(mistaken: Inside) -> None:
    done = approve(mistaken, "--snapshot", "s1")
    assert done.exit_code == 0, done.output
    mistaken.cycle()
    assert len(mistaken.alerts()) == 1


def test_the_answer_lists_what_was_cleared(mistaken: Inside) -> None:
    before = mistaken.get("/baseline/candidate")
    done = mistaken.client.put(f"{NETWORK}/baseline", json={"now": True}).raise_for_status().json()
    assert [alert["id"] for alert in before["clears"]] == ["a1"]
    assert (done["cleared"], done["clears"]) == (1, before["clears"])
    assert done["snapshot_id"] == before["snapshot_id"] == "s2"
