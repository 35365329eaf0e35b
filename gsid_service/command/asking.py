"""Asking a running service: the options that such commands have, requests, and what to print."""

import gzip
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from urllib.parse import quote

import typer

from gsid_service.terminal import print_json, print_rows, refuse, say

if TYPE_CHECKING:
    import httpx

Url = Annotated[str, typer.Option("--url", envvar="GSID_URL", help="Where the service is.")]
Secret = Annotated[
    str | None, typer.Option("--token", envvar="GSID_TOKEN", help="From gsid token create.")
]
LOCAL = "http://127.0.0.1:8080"
API = "/api/v1"
PAGE = 1000
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def tell(answer: Any, sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        say(sentence)


def segment(name: str) -> str:
    """A name as one segment of a path."""
    if not name:
        refuse("a name is empty")
    return quote(name, safe="")


def ask(url: str, token: str | None, method: str, path: str, **request: Any) -> Any:
    import httpx  # here: the commands that ask nobody start faster

    headers = request.pop("headers", {})
    if token:
        headers["Authorization"] = f"Bearer {_plain(token)}"
    try:
        answer = httpx.request(
            method, url.rstrip("/") + path, headers=headers, timeout=60, **request
        )
    except httpx.InvalidURL as error:
        refuse(f"--url: {url}: {error}")
    except httpx.HTTPError as error:
        refuse(f"--url: {url} does not answer: {error}")
    found = _document(answer)
    if not answer.is_success:
        _complain(url, answer, found)
    if found is None:
        refuse(f"--url: what answers at {url} is no GSID service")
    return found


def _plain(token: str) -> str:
    """A token as a header may hold it; what is wrong with it is said without showing it."""
    token = token.strip()
    if not re.fullmatch(r"[!-~]+", token):
        refuse("--token: has other characters than those of a token")
    return token


def _document(answer: "httpx.Response") -> dict[str, Any] | None:
    """The object in an answer; None where there is none, as in a page of somebody else."""
    try:
        found = answer.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _complain(url: str, answer: "httpx.Response", problem: dict[str, Any] | None) -> NoReturn:
    if problem is None:
        refuse(f"{url}: {answer.status_code} {answer.reason_phrase}")
    errors = problem.get("errors") or []
    lines = [f"{e['field']}: {e['reason']}" if e["field"] else e["reason"] for e in errors]
    refuse("\n".join(lines) or str(problem.get("detail", problem)))


def ask_all(
    url: str, token: str | None, path: str, query: dict[str, Any] | None = None
) -> list[Any]:
    """The items of all pages."""
    items: list[Any] = []
    params = {"limit": PAGE} | (query or {})
    while True:
        page = ask(url, token, "GET", path, params=params)
        if "items" not in page:
            refuse(f"--url: what answers at {url} is no GSID service")
        items += page["items"]
        if page["next"] is None:
            return items
        params["cursor"] = page["next"]


def packed(body: bytes) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    return {"content": gzip.compress(body, 1), "headers": headers}


def show(found: list[Any], as_json: bool, row: Callable[[Any], dict[str, Any]]) -> None:
    """All that is known as JSON, or a row of each that fits a screen."""
    print_rows(found if as_json else [row(one) for one in found], as_json)


def columns(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A row of what was found under these names."""
    return lambda one: {name: one[name] for name in names}


def lasting(text: str) -> timedelta:
    """What --for says."""
    found = re.fullmatch(r"([1-9]\d{0,5})([smhd])", text)
    if found is None:
        refuse(f"--for: {text!r} is not a time, as in 90m, 2h or 3d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})
