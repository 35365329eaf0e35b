"""No key is given twice, and who gives one twice is told where."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gsid_service.ingest import strict
from gsid_service.ingest.problems import InvalidSnapshot, NotJSON

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
CONTENT = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(CONTENT)
def test_what_has_each_key_once_is_read_as_it_is(content: Any) -> None:
    text = json.dumps(content)
    assert strict.read(text) == content
    strict.refuse_repeated_keys(text.encode())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1, "a": 1}', "a"),
        ('{"a": {"b": [0, {"c": 1, "d": 2, "c": 3}]}}', "a.b[1].c"),
        ('[{}, {"x": {}, "x": {}}]', "[1].x"),
        ('{"a": [{"k": 1, "k": 2}], "z": 1, "z": 2}', "z"),
    ],
)
def test_the_key_is_named_with_its_place(text: str, place: str) -> None:
    for check in (strict.read, strict.refuse_repeated_keys):
        with pytest.raises(InvalidSnapshot) as refused:
            check(text)
        (problem,) = refused.value.problems
        assert problem == (place, "is given twice in one object")


def test_of_a_very_large_document_only_the_key_is_named() -> None:
    text = '[{"k": 1, "k": 2}' + ", {}" * (strict.PLACED_AT_MOST // 4) + "]"
    with pytest.raises(InvalidSnapshot, match=r"^k: is given twice"):
        strict.refuse_repeated_keys(text)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5_000])
def test_what_is_not_json(text: bytes) -> None:
    with pytest.raises(NotJSON):
        strict.read(text)
