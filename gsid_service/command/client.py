"""Commands that speak to a running service, such as push, check, status and alerts."""

import gzip
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import quote

import httpx
import typer

from gsid_service.command import report
from gsid_service.terminal import AsJson, named, print_json, print_rows, refuse, say

Url = Annotated[str, typer.Option("--url", envvar="GSID_URL", help="Where the service is.")]
Secret = Annotated[
    str | None, typer.Option("--token", envvar="GSID_TOKEN", help="From gsid token create.")
]
Network = Annotated[str, typer.Argument(help="Name of the network.")]
CandidateFile = Annotated[
    Path, typer.Argument(help='A candidate snapshot, or {"changes": […]}; - for stdin.')
]
Of = Annotated[
    str | None, typer.Option("--network", help="Of which network; by default the snapshot's.")
]
UNITS = {"m": "minutes", "h": "hours", "d": "days"}
FOUND = 1  # the exit code where a check found something
LOCAL = "http://127.0.0.1:8080"
API = "/api/v1"
PAGE = 1000

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
        body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        try:
            answer = _ask(url, token, "POST", "/ingest", **_packed(body))
        except typer.Exit:
            say(f"{file} was not taken" + (f"; {len(rows)} before it were" if rows else ""))
            raise
        rows.append({"file": str(file)} | answer)
    print_rows(rows, as_json)


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
) -> None:
    """Say what a candidate would break and move, before it is there.

    Exit 0: clean; 1: something new is wrong, or a stated intent would break; 2: bad input, or no
    service.
    """
    if output is not None and form is Format.TABLE:
        refuse("--output: choose --format json, sarif or junit with it")
    body, name = _candidate(file, network)
    answer = _ask(url, token, "POST", f"{API}/networks/{_segment(name)}/check", **_packed(body))
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


def _candidate(file: Path, network: str | None) -> tuple[bytes, str]:
    """The document, and the network that it is for."""
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        refuse(f"{file}: not JSON: {error}")
    if network is None and isinstance(content, dict):
        network = content.get("network")
    if not isinstance(network, str):
        refuse(f"--network: {file} does not say of which network it is")
    return body, network


def _packed(body: bytes) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return {"content": gzip.compress(body, 1), "headers": headers}


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
    networks = _all(url, token, f"{API}/networks")
    if as_json:
        print_json(networks)
        return
    print_rows(
        [
            {
                "network": n["name"],
                "facts": n["facts"],
                "stale": n["stale_facts"],
                "conflicts": len(n["conflicts"]),
                "broken intents": sum(n["broken_intents"].values()),
                "scored": n["scored_at"],
                "problem": n["problem"] or ("" if n["up_to_date"] else "scoring"),
            }
            for n in networks
        ],
        as_json=False,
    )


def alerts(
    network: Annotated[str | None, typer.Option(help="Only of this network.")] = None,
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
    found = _all(url, token, f"{API}/alerts", wanted)
    if as_json:
        print_json(found)
        return
    print_rows(
        [
            {
                "id": a["id"],
                "severity": a["severity"],
                "status": a["status"] + (" (flapping)" if a["flapping"] else ""),
                "network": a["network"],
                "value": f"{a['parameter']} of {named(a['fact'])}",
                "is": a["observed"],
                "expected": a["expected"],
                "score": a["score"],
                "broken": len(a["broken_intents"]),
                "moved": len(a["moved"]),
            }
            for a in found
        ],
        as_json=False,
    )


def ack(
    alert: Annotated[str, typer.Argument(help="Its id, as in a17.")],
    note: Annotated[str, typer.Option(help="Something to say with it.")] = "",
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Say that you look after an alert."""
    done = _ask(url, token, "POST", f"{API}/alerts/{_segment(alert)}/ack", json={"note": note})
    _tell(done, f"{alert} is acknowledged", as_json)


@baseline.command("approve")
def approve(
    network: Network,
    snapshot: Annotated[
        str | None, typer.Option(help="As it was with this snapshot, not as it is now.")
    ] = None,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Approve a network as it is."""
    wanted = {"now": True} if snapshot is None else {"snapshot_id": snapshot}
    done = _ask(url, token, "PUT", f"{API}/networks/{_segment(network)}/baseline", json=wanted)
    said = f"{network} is approved by {done['approved_by']} at {done['approved_at']}"
    _tell(done, said, as_json)


@baseline.command("history")
def history(
    network: Network, url: Url = LOCAL, token: Secret = None, as_json: AsJson = False
) -> None:
    """Show who approved what and when."""
    path = f"{API}/networks/{_segment(network)}/baseline/history"
    print_rows(_all(url, token, path), as_json)


@intents.command("list")
def list_intents(
    network: Network, url: Url = LOCAL, token: Secret = None, as_json: AsJson = False
) -> None:
    """Show the intents of a network."""
    found = _all(url, token, f"{API}/networks/{_segment(network)}/intents")
    if as_json:
        print_json(found)
        return
    rows = [
        {
            "intent": named(i),
            "holds": i["holds"],
            "source": i["source"],
        }
        for i in found
    ]
    print_rows(rows, as_json=False)


@intents.command("put")
def put_intents(
    network: Network,
    file: Annotated[Path, typer.Argument(help='{"intents": […]}, or - for stdin.')],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """State the intents of a network, in place of those stated before."""
    body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    path, headers = (
        f"{API}/networks/{_segment(network)}/intents",
        {"Content-Type": "application/json"},
    )
    done = _ask(url, token, "PUT", path, content=body, headers=headers)
    said = f"{network} has {done['stated']} stated and {done['derived']} derived intents"
    _tell(done, said, as_json)


@intents.command("derive")
def derive_intents(
    network: Network, url: Url = LOCAL, token: Secret = None, as_json: AsJson = False
) -> None:
    """Derive intents from the baseline anew."""
    done = _ask(url, token, "POST", f"{API}/networks/{_segment(network)}/intents/derive")
    said = f"{network} has {done['stated']} stated and {done['derived']} derived intents"
    _tell(done, said, as_json)


@change.command("announce")
def announce(
    file: CandidateFile,
    ticket: Annotated[str, typer.Option(help="What it is filed under, as in CHG-1042.")],
    network: Of = None,
    window: Annotated[
        str | None, typer.Option(help="START/END, as in 2026-11-15T22:00:00Z/2026-11-16T00:00:00Z.")
    ] = None,
    lasting: Annotated[
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
    body, name = _candidate(file, network)
    content = json.loads(body)
    wanted = {"ticket": ticket, "comment": comment} | _window(window, lasting)
    wanted |= {"changes": content["changes"]} if "changes" in content else {"candidate": content}
    if author is not None:
        wanted["author"] = author
    path = f"{API}/networks/{_segment(name)}/changes"
    done = _ask(url, token, "POST", path, **_packed(json.dumps(wanted).encode()))
    if not as_json:
        _print_check(done["check"])
    said = f"{done['id']} is announced from {done['begins_at']} to {done['ends_at']}"
    _tell(done, said, as_json)


def _window(window: str | None, lasting: str | None) -> dict[str, str]:
    if (window is None) == (lasting is None):
        refuse("--window: either --window START/END or --for HOW LONG")
    if window is not None:
        begins_at, slash, ends_at = window.partition("/")
        if not slash:
            refuse(f"--window: {window!r} is not START/END")
        return {"begins_at": begins_at, "ends_at": ends_at}
    found = re.fullmatch(r"([1-9]\d{0,5})([mhd])", lasting or "")
    if found is None:
        refuse(f"--for: {lasting!r} is not as in 90m, 2h or 1d")
    length = timedelta(**{UNITS[found[2]]: int(found[1])})
    return {"ends_at": (datetime.now(UTC) + length).isoformat()}


@change.command("list")
def list_changes(
    network: Of = None,
    everything: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Show the announced changes."""
    found = [c for c in _changes(url, token, network) if everything or c["closed_at"] is None]
    if as_json:
        print_json(found)
        return
    shown = ("id", "network", "ticket", "author", "status", "begins_at", "ends_at", "summary")
    print_rows([{name: c[name] for name in shown} for c in found], as_json=False)


@change.command("cancel")
def cancel(
    change_id: Annotated[str, typer.Argument(help="Its id, as in c3.")],
    network: Of = None,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a change: what it announced is expected no longer."""
    names = [c["network"] for c in _changes(url, token, network) if c["id"] == change_id]
    if not names:
        refuse(f"CHANGE_ID: there is no change {change_id!r}")
    path = f"{API}/networks/{_segment(names[0])}/changes/{_segment(change_id)}"
    _tell(_ask(url, token, "DELETE", path), f"{change_id} is cancelled", as_json)


def _changes(url: str, token: str | None, network: str | None) -> list[Any]:
    """The changes of one network, or of all."""
    names = [network] if network else [n["name"] for n in _all(url, token, f"{API}/networks")]
    return [c for n in names for c in _all(url, token, f"{API}/networks/{_segment(n)}/changes")]


def _tell(answer: Any, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        say(sentence)


def _segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def _ask(url: str, token: str | None, method: str, path: str, **request: Any) -> Any:
    headers = request.pop("headers", {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        answer = httpx.request(
            method, url.rstrip("/") + path, headers=headers, timeout=60, **request
        )
    except httpx.InvalidURL as error:
        refuse(f"--url: {url}: {error}")
    except httpx.HTTPError as error:
        refuse(f"--url: {url} does not answer: {error}")
    if not answer.is_success:
        _complain(url, answer)
    return answer.json()


def _complain(url: str, answer: httpx.Response) -> NoReturn:
    try:
        problem = answer.json()
    except json.JSONDecodeError:
        refuse(f"{url}: {answer.status_code} {answer.reason_phrase}")
    errors = problem.get("errors") or []
    lines = [f"{e['field']}: {e['reason']}" if e["field"] else e["reason"] for e in errors]
    refuse("\n".join(lines) or str(problem.get("detail", problem)))


def _all(url: str, token: str | None, path: str, query: dict[str, Any] | None = None) -> list[Any]:
    """The items of all pages."""
    items: list[Any] = []
    params = {"limit": PAGE} | (query or {})
    while True:
        page = _ask(url, token, "GET", path, params=params)
        items += page["items"]
        if page["next"] is None:
            return items
        params["cursor"] = page["next"]
