"""Commands that speak to a running service: push, status, alerts, ack, baseline, intents."""

import gzip
import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import quote

import httpx
import typer

from gsid_service.terminal import AsJson, print_json, print_rows, refuse, say

Url = Annotated[str, typer.Option("--url", envvar="GSID_URL", help="Where the service is.")]
Secret = Annotated[
    str | None, typer.Option("--token", envvar="GSID_TOKEN", help="From gsid token create.")
]
Network = Annotated[str, typer.Argument(help="Name of the network.")]
LOCAL = "http://127.0.0.1:8080"
API = "/api/v1"
PAGE = 1000

baseline = typer.Typer(help="What the operator approved.", no_args_is_help=True)
intents = typer.Typer(help="What is wanted of a network.", no_args_is_help=True)


def push(
    files: Annotated[list[Path], typer.Argument(help="Snapshots (JSON), or - for stdin.")],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Send snapshots to the service."""
    rows = []
    for file in files:
        body = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        answer = _ask(
            url, token, "POST", "/ingest", content=gzip.compress(body, 1), headers=headers
        )
        rows.append({"file": str(file)} | answer)
    print_rows(rows, as_json)


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
                "value": f"{a['parameter']} of {_named(a['fact'])}",
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
            "intent": _named(i),
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


def _tell(answer: Any, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        say(sentence)


def _named(fact: dict[str, Any]) -> str:
    return f"{fact['predicate']}({', '.join(fact['args'])})"


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
