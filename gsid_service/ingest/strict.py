"""JSON in which no key is given twice: parsers keep the last one, and lose what the first held."""

import json
from typing import Any

from gsid_service.ingest.problems import InvalidSnapshot, NotJSON, Problem

PLACED_AT_MOST = 8 << 20  # bytes of a document in which a repeated key is looked for: it costs many


class _Twice(Exception):
    """A key that is given twice, wherever that is."""


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written."""


def read(document: bytes | str) -> Any:
    """The content; raises `NotJSON`, or `InvalidSnapshot` that says which key is given twice."""
    return _load(document, lambda pairs: dict(_once(pairs)))


def refuse_repeated_keys(document: bytes | str) -> None:
    """The same for who reads the content otherwise: nothing of it is kept."""
    _load(document, _forgotten)


def _load(document: bytes | str, make: Any) -> Any:
    try:
        return json.loads(document, object_pairs_hook=make)
    except _Twice as twice:
        place = _place(document) if len(document) <= PLACED_AT_MOST else str(twice)
        raise InvalidSnapshot([Problem(place, "is given twice in one object")]) from None
    except UnicodeDecodeError:
        raise NotJSON([Problem("", "it is not UTF-8")]) from None
    except (ValueError, RecursionError) as error:
        raise NotJSON([Problem("", str(error))]) from None


def _once(pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    if len(dict(pairs)) < len(pairs):
        raise _Twice(_repeated(pairs))
    return pairs


def _forgotten(pairs: list[tuple[str, Any]]) -> None:
    _once(pairs)


def _repeated(pairs: list[tuple[str, Any]]) -> str:
    names = [name for name, _ in pairs]
    return next(name for name in names if names.count(name) > 1)


def _place(document: bytes | str) -> str:
    """Where the first key is that is given twice, as in `facts[3].params.local_pref`."""
    left = [("", json.loads(document, object_pairs_hook=_Pairs))]
    while left:
        at, content = left.pop()
        if isinstance(content, _Pairs):
            inside = [(f"{at}.{name}" if at else name, value) for name, value in content]
            if len(dict(content)) < len(content):
                return _repeated([(name, None) for name, _ in inside])
            left += reversed(inside)
        elif isinstance(content, list):
            left += reversed([(f"{at}[{i}]", value) for i, value in enumerate(content)])
    raise LookupError("no key is given twice")
