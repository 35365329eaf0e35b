"""Commands that speak to a running service, such as push, check, status and alerts."""

import json
import sys
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from gsid_service.command import report
from gsid_service.command.asking import (
    API,
    LOCAL,
    Secret,
    Url,
    ask,
    ask_all,
    columns,
    lasting,
    packed,
    segment,
    show,
    tell,
)
from gsid_service.terminal import AsJson, confirm, named, print_rows, refuse, say

Network = Annotated[str, typer.Argument(help="Name of the network.")]
CandidateFile = Annotated[
    Path, typer.Argument(help='A candidate snapshot, or {"changes": […]}; - for stdin.')
]
Of = Annotated[
    str | None, typer.Option("--network", help="Of which network; by default the snapshot's.")
]
Only = Annotated[str | None, typer.Option("--network", help="Only of this network.")]
FOUND = 1  # the exit code where a check found something
SHOWN = 20  # alerts that an approval would make an end of

baseline = typer.Typer(help="What the operator approved.", no_args_is_help=True)
change = typer.Typer(help="Changes that are meant, announced before.", no_args_is_help=True)
intents = typer.Typer(help="What is wanted of a network.", no_args_is_help=True)


def push(
    files: Annotated[list[Path], typer.Argument(help="Snapshots (JSON), or - for stdin.")],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Send snapshots to the service."""
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            answer = ask(url, token, "POST", "/ingest", **packed(_body(file)))
        except (typer.Exit, OSError):
            say(f"{file} was not taken" + (f"; {len(rows)} before it were" if rows else ""))
            raise
        rows.append({"file": str(file)} | answer)
    print_rows(rows, as_json)


def _body(file: Path) -> bytes:
    return sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"


def check(
    file: CandidateFile,
    network: Of = None,
    form: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TABLE,
    output: Annotated[
        Path | None, typer.Option(help="Write it to this file; not for a table.")
    ] = None,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Say what a candidate would break and move, before it is there.

    Exit 0: clean; 1: something new is wrong, a stated intent would break, or traffic would have no
    way; 2: bad input, or no service.
    """
    if as_json and form is Format.TABLE:
        form = Format.JSON
    if as_json and form is not Format.JSON:
        refuse(f"--json: not with --format {form.value}")
    if output is not None and form is Format.TABLE:
        refuse("--output: choose --format json, sarif or junit with it")
    body, _, name = _candidate(file, network)
    answer = ask(url, token, "POST", f"{API}/networks/{segment(name)}/check", **packed(body))
    if form is Format.TABLE:
        _print_check(answer)
    else:
        text = _reported(answer, form, file)
        if output is None:
            sys.stdout.write(text)
        else:
            output.write_text(text, encoding="utf-8")
            say(report.headline(answer))
    raise typer.Exit(0 if answer["verdict"] == "clean" else FOUND)


def _candidate(file: Path, network: str | None) -> tuple[bytes, dict[str, Any], str]:
    """The document, what it holds, and the network that it is for."""
    from gsid_service.ingest.problems import InvalidSnapshot, NotJSON
    from gsid_service.ingest.strict import read

    body = _body(file)
    try:
        content = read(body)
    except NotJSON as error:
        refuse(f"{file}: not JSON: {error}")
    except InvalidSnapshot as error:
        refuse(f"{file}: {error}")
    if not isinstance(content, dict):
        refuse(f'{file}: neither a snapshot nor {{"changes": […]}}')
    name = content.get("network") if network is None else network
    if not isinstance(name, str):
        refuse(f"--network: {file} does not say of which network it is")
    return body, content, name


def _print_check(answer: dict[str, Any]) -> None:
    say(report.headline(answer))
    for rows in report.tables(answer).values():
        if rows:
            print_rows(rows, as_json=False)


def _reported(answer: dict[str, Any], form: Format, file: Path) -> str:
    if form is Format.JUNIT:
        return report.junit(answer, file)
    if form is Format.SARIF:
        answer = report.sarif(answer, file, version("gsid-service"))
    return json.dumps(answer, indent=1, ensure_ascii=False) + "\n"


def status(url: Url = LOCAL, token: Secret = None, as_json: AsJson = False) -> None:
    """Show every network and how it is."""
    show(ask_all(url, token, f"{API}/networks"), as_json, _network_row)


def _network_row(network: dict[str, Any]) -> dict[str, Any]:
    return {
        "network": network["name"],
        "facts": network["facts"],
        "stale": network["stale_facts"],
        "conflicts": len(network["conflicts"]),
        "broken intents": sum(network["broken_intents"].values()),
        "scored": network["scored_at"],
        "problem": network["problem"] or ("" if network["up_to_date"] else "scoring"),
    }


def alerts(
    network: Only = None,
    everything: Annotated[bool, typer.Option("--all", help="Resolved ones, too.")] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Show the alerts, the newest first."""
    wanted: dict[str, Any] = (
        {} if everything else {"status": ["firing", "acknowledged", "silenced"]}
    )
    if network is not None:
        wanted["network"] = network
    found = ask_all(url, token, f"{API}/alerts", wanted)
    if network is not None and not found:  # mistyped, it would look as if all were well
        ask(url, token, "GET", f"{API}/networks/{segment(network)}")
    show(found, as_json, _alert_row)


def _alert_row(alert: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": alert["id"],
        "severity": alert["severity"],
        "status": alert["status"] + (" (flapping)" if alert["flapping"] else ""),
        "since": alert["since"] or alert["first_seen"],
        "network": alert["network"],
        "what is wrong": alert["summary"],
    }


def ack(
    alert: Annotated[str, typer.Argument(help="Its id, as in a17.")],
    note: Annotated[str, typer.Option(help="Something to say with it.")] = "",
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Say that you look after an alert."""
    done = ask(url, token, "POST", f"{API}/alerts/{segment(alert)}/ack", json={"note": note})
    tell(done, f"{alert} is acknowledged", as_json)


@baseline.command("approve")
def approve(
    network: Network,
    snapshot: Annotated[
        str | None, typer.Option(help="As it was with this snapshot, not as it is now.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Also if open alerts are over with it.")
    ] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Approve a network as it is; asks first where that makes an end of open alerts."""
    path = f"{API}/networks/{segment(network)}/baseline"
    if not yes:
        query = {} if snapshot is None else {"snapshot": snapshot}
        seen = ask(url, token, "GET", f"{path}/candidate", params=query)
        _ask_about(seen["clears"], seen["cleared"])
        snapshot = seen["snapshot_id"]  # what was shown, whatever came in since
    wanted = {"now": True} if snapshot is None else {"snapshot_id": snapshot}
    done = ask(url, token, "PUT", path, json=wanted)
    over = f"; {_counted(done['cleared'])} over with it" if done["cleared"] else ""
    said = f"{network} is approved by {done['approved_by']} at {done['approved_at']}{over}"
    tell(done, said, as_json)


def _ask_about(clears: list[dict[str, Any]], count: int) -> None:
    """Go on only where somebody says that the values of these alerts are meant."""
    if not count:
        return
    for alert in clears[:SHOWN]:
        say(f"{alert['id']} {alert['severity']}: {alert['summary']}")
    say(f"{_counted(count)} open on values that this approves as the expected ones")
    confirm("Are all of these meant?", "--yes: say it if all of these are meant")


def _counted(alerts: int) -> str:
    return "1 alert is" if alerts == 1 else f"{alerts} alerts are"


@baseline.command("history")
def history(
    network: Network, url: Url = LOCAL, token: Secret = None, as_json: AsJson = False
) -> None:
    """Show who approved what and when."""
    path = f"{API}/networks/{segment(network)}/baseline/history"
    print_rows(ask_all(url, token, path), as_json)


@intents.command("list")
def list_intents(
    network: Network, url: Url = LOCAL, token: Secret = None, as_json: AsJson = False
) -> None:
    """Show the intents of a network."""
    found = ask_all(url, token, f"{API}/networks/{segment(network)}/intents")
    show(found, as_json, lambda i: {"intent": named(i)} | columns("holds", "source")(i))


@intents.command("put")
def put_intents(
    network: Network,
    file: Annotated[Path, typer.Argument(help='{"intents": […]}, or - for stdin.')],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """State the intents of a network, in place of those stated before."""
    path = f"{API}/networks/{segment(network)}/intents"
    done = ask(url, token, "PUT", path, **packed(_body(file)))
    said = f"{network} has {done['stated']} stated and {done['derived']} derived intents"
    tell(done, said, as_json)


@intents.command("derive")
def derive_intents(
    network: Network, url: Url = LOCAL, token: Secret = None, as_json: AsJson = False
) -> None:
    """Derive intents from the baseline anew."""
    done = ask(url, token, "POST", f"{API}/networks/{segment(network)}/intents/derive")
    said = f"{network} has {done['stated']} stated and {done['derived']} derived intents"
    tell(done, said, as_json)


@change.command("announce")
def announce(
    file: CandidateFile,
    ticket: Annotated[str, typer.Option(help="What it is filed under, as in CHG-1042.")],
    network: Of = None,
    window: Annotated[
        str | None, typer.Option(help="START/END, as in 2026-11-15T22:00:00Z/2026-11-16T00:00:00Z.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--for", help="From now on for so long, as in 90m, 2h or 1d.")
    ] = None,
    author: Annotated[
        str | None, typer.Option(help="Who stands for it; by default whose token it is.")
    ] = None,
    comment: Annotated[str, typer.Option(help="Something to say with it.")] = "",
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Announce a meant change; it is checked at once, and kept whatever the check finds."""
    _, content, name = _candidate(file, network)
    wanted: dict[str, Any] = {"ticket": ticket, "comment": comment} | _window(window, duration)
    wanted |= {"changes": content["changes"]} if "changes" in content else {"candidate": content}
    if author is not None:
        wanted["author"] = author
    path = f"{API}/networks/{segment(name)}/changes"
    done = ask(url, token, "POST", path, **packed(json.dumps(wanted).encode()))
    if not as_json:
        _print_check(done["check"])
    said = f"{done['id']} is announced from {done['begins_at']} to {done['ends_at']}"
    tell(done, said, as_json)


def _window(window: str | None, duration: str | None) -> dict[str, str]:
    if (window is None) == (duration is None):
        refuse("--window: either --window START/END or --for HOW LONG")
    if window is not None:
        begins_at, slash, ends_at = window.partition("/")
        if not slash:
            refuse(f"--window: {window!r} is not START/END")
        return {"begins_at": begins_at, "ends_at": ends_at}
    return {"ends_at": (datetime.now(UTC) + lasting(duration or "")).isoformat()}


@change.command("list")
def list_changes(
    network: Only = None,
    everything: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Show the announced changes."""
    found = [c for c in _changes(url, token, network) if everything or c["closed_at"] is None]
    shown = ("id", "network", "ticket", "author", "status", "begins_at", "ends_at", "summary")
    show(found, as_json, columns(*shown))


@change.command("cancel")
def cancel(
    change_id: Annotated[str, typer.Argument(help="Its id, as in c3.")],
    network: Only = None,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a change: what it announced is expected no longer."""
    names = [c["network"] for c in _changes(url, token, network) if c["id"] == change_id]
    if not names:
        refuse(f"CHANGE_ID: there is no change {change_id!r}")
    path = f"{API}/networks/{segment(names[0])}/changes/{segment(change_id)}"
    tell(ask(url, token, "DELETE", path), f"{change_id} is cancelled", as_json)


def _changes(url: str, token: str | None, network: str | None) -> list[Any]:
    """The changes of one network, or of all."""
    names = [network] if network else [n["name"] for n in ask_all(url, token, f"{API}/networks")]
    return [c for n in names for c in ask_all(url, token, f"{API}/networks/{segment(n)}/changes")]
