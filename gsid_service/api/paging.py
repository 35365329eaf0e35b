"""Cursors: where a page ends, in a form that only this service reads."""

import base64
import json
import math
from typing import Annotated, Any

from fastapi import Query

from gsid_service.api.problems import Problem
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
        raise Problem(422, "cursor: not one of this service", [("cursor", "not one of ours")])
    return place


def _is_sane(part: Any) -> bool:
    """Whether both databases can compare with it."""
    if isinstance(part, str):
        return is_text(part)
    return math.isfinite(part) and abs(part) < 2**63
