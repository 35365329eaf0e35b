"""What commands print: a table on a terminal, plain lines in a pipe, JSON on request."""

import json
import re
import sys
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

# Ids may hold anything that prints: `[b]` and `:b:` in them are not for rich to interpret.
PLAIN: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
OUT = Console(**PLAIN)
ERR = Console(stderr=True, **PLAIN)
BAD_INPUT = 2
SHORT = 12  # characters of a column that is not worth a second line
INSTANT = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    """Rows as JSON, as a table on a terminal, or as tab-separated lines in a pipe."""
    if as_json:
        print_json(rows)
    elif not rows:
        say("nothing to show")
    elif OUT.is_terminal:
        table = Table()
        for name in rows[0]:
            longest = max(len(_cell(row[name], " ")) for row in rows)
            table.add_column(name, overflow="fold", no_wrap=longest <= SHORT)
        for row in rows:
            table.add_row(*(_cell(value, " ") for value in row.values()))
        OUT.print(table)
    else:
        lines = [rows[0].keys(), *(map(_cell, row.values()) for row in rows)]
        sys.stdout.writelines("\t".join(line) + "\n" for line in lines)


def _cell(value: Any, before_time: str = "T") -> str:
    """A value as people read it; a time to the second, in two lines where there is a space."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}"
    return INSTANT.sub(rf"\1{before_time}\2Z", str(value))


def named(fact: dict[str, Any]) -> str:
    """A fact of an answer as engineers write it."""
    return f"{fact['predicate']}({', '.join(fact['args'])})"


def say(message: str) -> None:
    ERR.print(message, soft_wrap=True)


def refuse(message: str) -> NoReturn:
    ERR.print(message, style="red", soft_wrap=True)
    raise typer.Exit(BAD_INPUT)


def is_attended() -> bool:
    return sys.stdin.isatty()


def confirm(question: str, otherwise: str) -> None:
    """Go on only where somebody says yes; `otherwise` is for who is not there to be asked."""
    if not is_attended():
        refuse(otherwise)
    if not typer.confirm(question, err=True):
        raise typer.Exit(BAD_INPUT)
