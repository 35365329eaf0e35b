"""Receivers: one module a type, named as the type, with one class `Receiver`.

Another type is another module; nothing else changes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import ClassVar, Protocol

from gsid_service.notices import Message
from gsid_service.notify.post import UnsafeUrl, check

TYPES = tuple(sorted(module.name for module in iter_modules([str(Path(__file__).parent)])))


class BadReceiver(ValueError):
    """A receiver that cannot be; names the key."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key, self.reason = key, reason


@dataclass(frozen=True, slots=True)
class Target:
    """What a receiver is made from."""

    name: str
    url: str | None
    secrets: Callable[[], tuple[str, ...]] = field(repr=False)  # read anew, so that they can rotate
    external_url: str = ""
    allow_http: bool = False
    hosts: tuple[str, ...] = ()
    timeout: float = 10.0
    resend: float = 60.0  # seconds, for receivers that forget what is not said again


class Receiver(Protocol):
    """Sends messages to one place."""

    by_cause: ClassVar[bool]  # whether alerts are grouped for it
    acknowledgements: ClassVar[bool]  # whether it is told of them
    shown: str  # where it sends to, without secrets

    def __init__(self, target: Target) -> None: ...
    def send(self, key: str, message: Message, now: datetime) -> str:
        """What was answered; raises `DeliveryError`."""
        ...

    def close(self) -> None: ...


def make(kind: str, target: Target) -> Receiver:
    """A receiver of a type; raises `BadReceiver`."""
    if kind not in TYPES:
        raise BadReceiver("type", f"{kind!r} is none of {', '.join(TYPES)}")
    made: Receiver = import_module(f"{__name__}.{kind}").Receiver(target)
    return made


def checked_url(target: Target) -> str:
    """The URL that there must be, and that messages may go to."""
    if target.url is None:
        raise BadReceiver("url", "is needed")
    try:
        check(target.url, target.allow_http, target.hosts)
    except UnsafeUrl as error:
        raise BadReceiver("url", str(error)) from None
    return target.url


def one_secret(target: Target) -> str:
    """The secret that there must be."""
    found = target.secrets()
    if not found:
        raise BadReceiver("secret_env", "a secret is needed: secret_env or secret_file")
    return found[0]
