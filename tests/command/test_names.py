"""A name that is mistyped is said to be, and not answered as if all were well."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from gsid_service.__main__ import app
from tests.api.inside import NET, Inside, inside


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Inside]:
    with inside(f"sqlite:///{tmp_path / 'gsid.db'}") as opened:
        opened.see()
        yield opened


def run(net: Inside, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--url", net.address])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("alerts", "--network", "as6500"), "network: 'as6500' is not known"),
        (("deliveries", "list", "--receiver", "nco"), "--receiver: 'nco' is none of"),
        (("deliveries", "replay", "--all", "--receiver", "nco"), "--receiver: 'nco' is none of"),
        (("deliveries", "replay", "d1", "--receiver", "noc"), "--receiver: only with --all"),
        (("baseline", "history", ""), "a name is empty"),
    ],
)
def test_a_mistyped_name_is_refused(net: Inside, arguments: tuple[str, ...], why: str) -> None:
    done = run(net, *arguments)
    assert (done.exit_code, why in done.stderr) == (2, True), done.output


def test_a_network_without_alerts_has_nothing_to_show(net: Inside) -> None:
    done = run(net, "alerts", "--network", NET)
    assert (done.exit_code, "nothing to show" in done.stderr) == (0, True), done.output
