"""What is wrong with a document, each problem with the field it is in."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

ID_LENGTH = 200
PROBLEMS_SHOWN = 20
PROBLEMS_AT_MOST = 1000  # are looked for: a document of nothing else must not cost memory and time


class Problem(NamedTuple):
    """What is wrong, and in which field, as in `facts[3].params.local_pref`."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class InvalidSnapshot(ValueError):
    """The document cannot be taken; `problems` holds the first ones, `total` counts those found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        everything = list(problems)
        self.total = len(everything)
        self.problems = tuple(everything[:PROBLEMS_SHOWN])
        more = self.total - len(self.problems)
        lines = [str(p) for p in self.problems] + ([f"and {more} more"] if more else [])
        super().__init__("\n".join(lines))


class NotJSON(InvalidSnapshot):
    """The document is not JSON at all."""


def invalid(error: ValidationError) -> InvalidSnapshot:
    """What pydantic found, as problems."""
    if error.error_count() > PROBLEMS_AT_MOST:
        return InvalidSnapshot([Problem("body", f"has {error.error_count():,} problems")])
    details = error.errors(include_url=False, include_input=False)
    if details[0]["type"] == "json_invalid":
        return NotJSON([Problem("", details[0]["msg"].removeprefix("Invalid JSON: "))])
    return InvalidSnapshot(_problem(detail) for detail in details)


def _problem(detail: ErrorDetails) -> Problem:
    field = "" if detail["loc"] else "body"
    for part in detail["loc"]:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    return Problem(field, _REASONS.get(detail["type"], detail["msg"].removeprefix("Value error, ")))


_REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this object",
    "string_too_short": "must not be empty",
    "string_too_long": f"must be at most {ID_LENGTH} characters long",
    "timezone_aware": "must have a time zone, as in 2026-11-15T22:00:00Z",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
}


def unknown(name: str, what: str, known: Iterable[str]) -> str:
    return f"unknown {what} {quoted(name)}; known: {', '.join(known) or 'none'}"


def quoted(value: Any) -> str:
    """A value as an error shows it: on one line, and not longer than it is worth."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"
