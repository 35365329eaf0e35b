"""Cursors, which say where a page ends, and what else requests hold in a form of this service."""

import base64
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Query

from gsid_service.api.problems import about
from gsid_service.api.text import is_text

Limit = Annotated[int, Query(ge=1, le=1000, description="Items of a page.")]
Cursor = Annotated[
    str | None, Query(max_length=4000, description="`next` of the page before.", examples=[None])
]


def encode(place: Any) -> str:
    text = json.dumps(place, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str | None, *kinds: type) -> Any:
    """The place that a cursor stands for, of exactly these kinds; None for none."""
    if cursor is None:
        return None
    try:
        filled = cursor + "=" * (-len(cursor) % 4)
        place = json.loads(base64.b64decode(filled, b"-_", validate=True))
    except (ValueError, RecursionError):
        place = None
    fits = isinstance(place, list) and [type(part) for part in place] == list(kinds)
    if not fits or not all(_is_sane(part) for part in place):
        raise about(422, "cursor", "not one of this service")
    return place


def following(found: Sequence[Any], limit: int, place: str = "number") -> str | None:
    """The cursor of the next page, where more were found than a page holds."""
    return encode([getattr(found[limit - 1], place)]) if len(found) > limit else None


def _is_sane(part: Any) -> bool:
    """Whether both databases can compare with it."""
    if isinstance(part, str):
        return is_text(part)
    return math.isfinite(part) and abs(part) < 2**63


def number_in(letter: str, text: str) -> int | None:
    """The number in an id such as q3 or d12."""
    digits = text[1:]
    fits = text[:1] == letter and digits.isascii() and digits.isdigit() and len(digits) < 19
    return int(digits) if fits else None


def instant(field: str, time: datetime) -> datetime:
    """A time in UTC that both databases, and sums with it, can hold."""
    if not 1971 <= time.year <= 9000:
        reason = "must be from 1971 to 9000"
        raise about(422, field, reason)
    return time.astimezone(UTC)
