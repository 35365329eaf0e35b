"""Text that both databases can keep: no NUL, and nothing that UTF-8 cannot say."""

from typing import Annotated

from pydantic import AfterValidator


def is_text(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _checked(text: str) -> str:
    if not is_text(text):
        raise ValueError("must not contain NUL or halves of characters")
    return text


Text = Annotated[str, AfterValidator(_checked)]
