"""Commands about who is told: receivers, deliveries, silences, maintenance windows."""

import re
from datetime import UTC, datetime
from getpass import getuser
from typing import Annotated, Any

import typer

from gsid_service.command.asking import (
    API,
    LOCAL,
    Secret,
    Url,
    ask,
    ask_all,
    columns,
    lasting,
    segment,
    show,
    tell,
)
from gsid_service.terminal import AsJson, print_rows, refuse, say

receivers = typer.Typer(help="Who is told of alerts.", no_args_is_help=True)
deliveries = typer.Typer(help="Messages to receivers.", no_args_is_help=True)
silences = typer.Typer(help="Which alerts nobody is told of.", no_args_is_help=True)
maintenance = typer.Typer(help="When work is done, and alerts are quiet.", no_args_is_help=True)

FAILED = 1
MATCHER = re.compile(r"(\w+)(!=|!~|=|~)(.*)", re.DOTALL)
Comment = Annotated[str, typer.Option(help="Why.")]
For = Annotated[str | None, typer.Option("--for", help="How long, as in 90m, 2h or 3d.")]
From = Annotated[str | None, typer.Option("--from", help="When it begins; now.")]
Until = Annotated[str | None, typer.Option("--until", help="When it ends, as 2026-11-16T06:00Z.")]


@receivers.command("list")
def list_receivers(url: Url = LOCAL, token: Secret = None, as_json: AsJson = False) -> None:
    """Show the receivers, and how it goes with each."""
    print_rows(ask_all(url, token, f"{API}/receivers"), as_json)


@receivers.command("test")
def send_test(
    name: Annotated[str, typer.Argument(help="Its name in the settings.")],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Send a test message and report the answer; exit code 1 where it did not arrive."""
    done = ask(url, token, "POST", f"{API}/receivers/{segment(name)}/test")
    tell(done, f"{name} {'answered' if done['delivered'] else 'failed'}: {done['answer']}", as_json)
    if not done["delivered"]:
        raise typer.Exit(FAILED)


@receivers.command("enable")
def enable_receiver(
    name: Annotated[str, typer.Argument(help="Its name in the settings.")],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Use a receiver again that answered 410."""
    done = ask(url, token, "POST", f"{API}/receivers/{segment(name)}/enable")
    tell(done, f"{name} is enabled; {done['dead']} dead letters can be replayed", as_json)


@deliveries.command("list")
def list_deliveries(
    status: Annotated[str | None, typer.Option(help="pending, delivered or dead.")] = None,
    receiver: Annotated[str | None, typer.Option(help="Only to this one.")] = None,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Show messages, the newest first."""
    found = _deliveries(url, token, status, receiver)
    shown = ("id", "receiver", "network", "kind", "status", "attempts", "created_at", "answer")
    show(found, as_json, columns(*shown))


@deliveries.command("replay")
def replay(
    ids: Annotated[list[str] | None, typer.Argument(help="Dead letters, as in d12.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    receiver: Annotated[str | None, typer.Option(help="With --all: only to this one.")] = None,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Try dead letters again."""
    if bool(ids) == everything:
        refuse("IDS: name some, or say --all")
    if ids and receiver is not None:
        refuse("--receiver: only with --all")
    if everything:
        # The oldest first: nobody learns that something is over before it began.
        ids = [row["id"] for row in reversed(_deliveries(url, token, "dead", receiver))]
    done = [ask(url, token, "POST", f"{API}/deliveries/{segment(one)}/replay") for one in ids or ()]
    tell(done, f"{len(done)} to be tried again", as_json)


def _deliveries(url: str, token: str | None, status: str | None, receiver: str | None) -> list[Any]:
    """Messages; one to a receiver that is no longer in the settings may be there, too."""
    wanted = _given(status=status, receiver=receiver)
    found = ask_all(url, token, f"{API}/deliveries", wanted)
    if receiver is not None and not found:
        names = [row["name"] for row in ask_all(url, token, f"{API}/receivers")]
        if receiver not in names:
            refuse(f"--receiver: {receiver!r} is none of {', '.join(names) or 'those there are'}")
    return found


@silences.command("list")
def list_silences(
    everything: Annotated[bool, typer.Option("--all", help="Expired ones, too.")] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Show the silences, the newest first."""
    found = ask_all(url, token, f"{API}/silences", {"expired": everything})
    show(found, as_json, _silence_row)


def _silence_row(silence: dict[str, Any]) -> dict[str, Any]:
    matchers = (f"{m['name']}{m['operator']}{m['value']}" for m in silence["matchers"])
    return {
        "id": silence["id"],
        "status": silence["status"],
        "matchers": " ".join(matchers),
        "ends": silence["ends_at"],
        "author": silence["author"],
        "comment": silence["comment"],
    }


@silences.command("add")
def add_silence(
    matchers: Annotated[
        list[str],
        typer.Argument(
            help="All must fit: LABEL=VALUE, or with !=, ~ or !~ (~ as in file names). Labels: "
            "alert, network, predicate, fact, entity, parameter, severity, collector."
        ),
    ],
    comment: Comment,
    duration: For = None,
    begin: From = None,
    until: Until = None,
    yes: Annotated[bool, typer.Option("--yes", help="Also if it is long or broad.")] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Keep alerts quiet for a while."""
    starts_at, ends_at = _span(begin, duration, until)
    body = {
        "matchers": [_matcher(text) for text in matchers],
        "comment": comment,
        "author": getuser(),
        "starts_at": starts_at,
        "ends_at": ends_at,
        "confirm": yes,
    }
    done = ask(url, token, "POST", f"{API}/silences", json=body)
    tell(done, f"{done['id']} is {done['status']} until {done['ends_at']}", as_json)
    _warn(done)


@silences.command("end")
def end_silence(
    silence: Annotated[str, typer.Argument(help="Its id, as in q3.")],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """End a silence now."""
    done = ask(url, token, "DELETE", f"{API}/silences/{segment(silence)}")
    tell(done, f"{silence} is over", as_json)


@maintenance.command("list")
def list_windows(
    everything: Annotated[bool, typer.Option("--all", help="Cancelled ones, too.")] = False,
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Show the maintenance windows, the newest first."""
    found = ask_all(url, token, f"{API}/maintenance", {"cancelled": everything})
    shown = ("id", "mode", "network", "entity", "parameter", "open_until", "next_start", "rule")
    over = ("cancelled_at",) if everything else ()
    show(found, as_json, columns(*shown, *over, "author", "comment"))


@maintenance.command("add")
def add_window(
    comment: Comment,
    network: Annotated[str | None, typer.Option(help="Only of this network.")] = None,
    entity: Annotated[str | None, typer.Option(help="Only about this entity.")] = None,
    parameter: Annotated[str | None, typer.Option(help="Only of this parameter.")] = None,
    mode: Annotated[str, typer.Option(help="mute: tell nobody; hold: open no alert.")] = "mute",
    duration: For = None,
    begin: From = None,
    until: Until = None,
    rule: Annotated[
        str | None, typer.Option(help="How it recurs, as in FREQ=WEEKLY;BYDAY=SU.")
    ] = None,
    timezone: Annotated[str, typer.Option(help="In which it recurs.")] = "UTC",
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Announce that work is done, once or again and again."""
    starts_at, ends_at = _span(begin, duration, until)
    body = _given(network=network, entity=entity, parameter=parameter, rule=rule) | {
        "mode": mode,
        "comment": comment,
        "author": getuser(),
        "starts_at": starts_at,
        "ends_at": ends_at,
        "timezone": timezone,
    }
    done = ask(url, token, "POST", f"{API}/maintenance", json=body)
    until, start = done["open_until"], done["next_start"]
    when = f"open until {until}" if until else f"open from {start}" if start else "over already"
    tell(done, f"{done['id']} is {when}", as_json)
    _warn(done)


@maintenance.command("cancel")
def cancel_window(
    window: Annotated[str, typer.Argument(help="Its id, as in w2.")],
    url: Url = LOCAL,
    token: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a maintenance window, also one that is open."""
    done = ask(url, token, "DELETE", f"{API}/maintenance/{segment(window)}")
    tell(done, f"{window} is cancelled", as_json)


def _warn(done: dict[str, Any]) -> None:
    for warning in done["warnings"]:
        say(f"warning: {warning}; until there is, it keeps nothing quiet")


def _given(**wanted: str | None) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value is not None}


def _matcher(text: str) -> dict[str, str]:
    found = MATCHER.fullmatch(text)
    if found is None:
        refuse(f"MATCHERS: {text!r} is not of the form LABEL=VALUE")
    name, operator, value = found.groups()
    return {"name": name, "operator": operator, "value": value.strip('"')}


def _span(begin: str | None, duration: str | None, until: str | None) -> tuple[str, str]:
    """From when to when, as the API takes it."""
    if (duration is None) == (until is None):
        refuse("--for: say either --for or --until")
    starts = datetime.now(UTC) if begin is None else _time("--from", begin)
    ends = starts + lasting(duration) if duration else _time("--until", until or "")
    return starts.isoformat(), ends.isoformat()


def _time(option: str, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        refuse(f"{option}: {text!r} is not a time, as in 2026-11-16T06:00Z")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
