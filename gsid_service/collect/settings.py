"""The collector's settings: a TOML file into frozen sections, checked once, at the start."""

import os
import tomllib
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator

from gsid_service.config import BadSettings, Count, Probability, Seconds, Section

MEBIBYTE = 1 << 20


class Service(Section):
    """Where snapshots go."""

    url: str = Field(pattern=r"^https?://[^\s/]+", description="Of the service.")
    token_file: Path | None = Field(default=None, description="Holds the token; read each time.")
    ca_file: Path | None = Field(default=None, description="PEM; by default the system's CAs.")
    timeout_seconds: Seconds = Field(default=30, description="How long an answer may take.")
    allow_http: bool = Field(default=False, description="Also without TLS, and off loopback.")

    @field_validator("token_file", mode="before")
    @classmethod
    def _expanded(cls, value: Any) -> Any:
        """systemd tells by a variable where credentials are."""
        return os.path.expandvars(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _safe(self) -> "Service":
        parsed = urlsplit(self.url)
        if parsed.scheme == "http" and not self.allow_http and not _is_loopback(parsed.hostname):
            raise ValueError("url: http only to loopback, or with allow_http = true")
        return self


class Collector(Section):
    """The process."""

    state: Path = Field(description="Folder for the spool and the sequence numbers.")
    interval_seconds: Seconds = Field(default=30, description="How often a router is read.")
    jitter: Probability = Field(default=0.1, description="Share of the interval left to chance.")
    heartbeat_seconds: Seconds = Field(
        default=300, description="A router that does not change is heard of so often."
    )
    complete_seconds: Seconds = Field(
        default=3600, description="How often a complete view is sent, whatever changed."
    )
    spool_bytes: Count = Field(
        default=256 * MEBIBYTE, description="Of snapshots waiting while the service is away."
    )
    classes_from: Count = Field(
        default=5000, description="From so many prefixes on, those alike are one destination."
    )
    metrics_host: str = Field(default="127.0.0.1", description="Where /metrics is.")
    metrics_port: int = Field(default=9108, ge=0, le=65535, description="0 takes a free one.")


class Router(Section):
    """One router; what its source asks for besides is in `options`."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1, max_length=200, description="Its collector's id.")
    source: str = Field(description="frr, bird, openconfig, bmp, file, simulated or module:Class.")
    interval_seconds: Seconds | None = Field(default=None, description="If not as in [collector].")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class Settings(Section):
    """All settings of one site."""

    network: str = Field(min_length=1, max_length=200, description="The network's name.")
    service: Service
    collector: Collector
    names: dict[str, str] = Field(default={}, description="Of routers, by router id.")
    routers: tuple[Router, ...] = Field(min_length=1)

    @field_validator("routers")
    @classmethod
    def _names_differ(cls, found: tuple[Router, ...]) -> tuple[Router, ...]:
        names = [router.name for router in found]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the name {twice[0]!r} is there twice")
        return found


S = TypeVar("S", bound=Section)


def load(file: Path) -> Settings:
    """The settings of a file; raises `BadSettings` with a line for each problem."""
    try:
        content = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadSettings(f"{file}: {error}") from None
    return checked(Settings, content, f"{file}: ")


def checked(kind: type[S], content: dict[str, Any], place: str = "") -> S:
    """A section of some content; a problem begins with `place` and names its key."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        lines = [place + _line(kind, detail) for detail in error.errors()]
    raise BadSettings("\n".join(lines))


def _line(kind: Any, detail: Any) -> str:
    where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in detail["loc"])[1:]
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        for part in detail["loc"][:-1]:
            kind = kind.model_fields[part].annotation or kind
        message = f"no such setting; known: {', '.join(kind.model_fields)}"
    return f"{where}: {message}" if where else message


def _is_loopback(host: str | None) -> bool:
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return host == "localhost"
