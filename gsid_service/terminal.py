"""What commands print: a table on a terminal, plain lines in a pipe, JSON on request."""

import json
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
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*map(_cell, row.values()))
        OUT.print(table)
    else:
        lines = [rows[0].keys(), *(map(_cell, row.values()) for row in rows)]
        sys.stdout.writelines("\t".join(line) + "\n" for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def named(fact: dict[str, Any]) -> str:
    """A fact of an answer as engineers write it."""
    return f"{fact['predicate']}({', '.join(fact['args'])})"


def say(message: str) -> None:
    ERR.print(message, soft_wrap=True)


def refuse(message: str) -> NoReturn:
    ERR.print(message, style="red", soft_wrap=True)
    raise typer.Exit(BAD_INPUT)
