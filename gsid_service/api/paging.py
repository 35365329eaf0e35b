"""Cursors: where a page ends, in a form that only this service reads."""

import base64
import json
from typing import Annotated, Any

from fastapi import Query

from gsid_service.api.problems import Problem

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
    except ValueError:
        place = None
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds):
        raise Problem(422, "cursor: not one of this service", [("cursor", "not one of ours")])
    return place
