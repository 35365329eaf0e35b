"""Settings: a TOML file, then `GSID_SECTION_KEY` variables, then flags, into frozen sections.

Everything is checked once, at the start; an error names the key, where it came from and its value.
"""

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

PREFIX = "GSID_"
BESIDE = Path(__file__).resolve().parents[1]  # where the package is: in a clone, models too
MEBIBYTE = 1 << 20
MESSAGES = {  # where pydantic's own would not say what to write
    ("receivers", "tuple_type"): "each is a table of its own, [[receivers]]",
    ("database.url", "string_pattern_mismatch"): "must begin with sqlite:/// or "
    "postgresql+psycopg://",
}
OTHERS = ("GSID_URL", "GSID_TOKEN", "GSID_CACHE")  # that are read elsewhere
LIST = "receivers"  # the one section that is a list of tables, [[receivers]], in the file only

Count = Annotated[int, Field(ge=1, le=10**9)]
Seconds = Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)]
Wait = Annotated[float, Field(ge=0, le=1e8, allow_inf_nan=False)]
Probability = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        kind = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and kind in {int, float}:
            raise ValueError("is true or false, not a number")
        return value


class Server(Section):
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port; 0 takes a free one.")
    role: Literal["all", "api", "scorer", "notifier"] = Field(
        default="all", description="What this process does; other than all needs PostgreSQL."
    )
    tls_certificate: Path | None = Field(default=None, description="PEM file; needed off loopback.")
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's key.")
    insecure: bool = Field(default=False, description="Listen off loopback without TLS or tokens.")
    body_bytes: Count = Field(
        default=64 * MEBIBYTE, description="Largest body, also once unpacked."
    )
    request_seconds: Seconds = Field(
        default=60, description="After this long a request is given up."
    )
    connections: Count = Field(
        default=500, description="Open at once; beyond, the one that is idle the longest is closed."
    )
    idle_seconds: Count = Field(
        default=30, description="A connection without a whole request for so long is closed."
    )

    @property
    def on_loopback(self) -> bool:
        return self.host.lower() == "localhost" or _is_loopback(self.host)

    @model_validator(mode="after")
    def _both_or_none(self) -> "Server":
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key come together")
        return self


class Database(Section):
    url: str = Field(
        default="sqlite:///gsid.db",
        pattern=r"^(sqlite:///|postgresql\+psycopg://).",
        description="sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME.",
    )
    password_file: Path | None = Field(
        default=None, description="File with the password, where it is not in the url."
    )
    migrate: bool = Field(default=True, description="Bring the tables up to date at the start.")


class Jobs(Section):
    """On PostgreSQL, where several processes share the work."""

    at_once: Count = Field(
        default=2, description="Networks that one process scores at once: one computes, one waits."
    )
    stalled_seconds: Annotated[float, Field(ge=1, le=3600)] = Field(
        default=10, description="A process silent for so long is dead, and another takes its jobs."
    )


class Model(Section):
    folder: Path = Field(
        default=Path("models/gsid-1"),
        description="Folder of the model; a relative one may be here, or beside the package.",
    )
    threads: int = Field(default=1, ge=1, le=1024, description="Cores for its arithmetic.")

    @property
    def place(self) -> Path:
        """Where it is: a relative folder that is not here may be beside the package."""
        found = (place for place in (self.folder, BESIDE / self.folder) if place.exists())
        return next(found, self.folder)


class Ingest(Section):
    queue: Count = Field(default=256, description="Snapshots waiting to be stored; more get 429.")
    retry_seconds: Count = Field(default=1, description="What Retry-After says then.")


class Cycle(Section):
    stale_seconds: Seconds = Field(
        default=900, description="A collector silent for so long is stale."
    )
    sweep_seconds: Seconds = Field(
        default=30, description="How often silence and retention are looked at."
    )
    intents_at_most: Count = Field(default=2000, description="Intents derived for a network.")

    @property
    def patience(self) -> timedelta:
        return timedelta(seconds=self.stale_seconds)


class Verify(Section):
    seconds: Seconds = Field(
        default=2, description="For proving what suspicious values break, in each cycle."
    )
    forwarding_seconds: Wait = Field(
        default=90,
        description="How long a router may forward otherwise than its values say.",
    )


class Alerts(Section):
    open_score: Probability = Field(default=0.65, description="From this score on an alert opens.")
    close_score: Probability = Field(default=0.35, description="Below this score it resolves.")
    flap_changes: Count = Field(
        default=4, description="Openings and resolutions that count as flapping,"
    )
    flap_seconds: Seconds = Field(default=3600, description="within this time.")

    @model_validator(mode="after")
    def _apart(self) -> "Alerts":
        if self.close_score >= self.open_score:
            raise ValueError(
                f"close_score {self.close_score} is not below open_score {self.open_score}"
            )
        return self


class Retention(Section):
    days: Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False)] = Field(
        default=90, description="History older than this goes."
    )
    snapshots: Count = Field(default=10_000, description="Snapshots kept of each network at most.")


class Metrics(Section):
    highest_scores: int = Field(
        default=20, ge=0, le=10**6, description="Scores of each network shown as series."
    )


class Log(Section):
    format: Literal["console", "json"] = Field(default="console", description="console or json.")
    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level."
    )


class Notify(Section):
    group_wait_seconds: Wait = Field(
        default=30, description="A new group of alerts waits so long for more of its cause."
    )
    group_interval_seconds: Wait = Field(
        default=300, description="What is new in a group is told this long after the last message."
    )
    repeat_interval_seconds: Seconds = Field(
        default=14_400, description="What still fires, and nobody acknowledged, is told again."
    )
    resend_seconds: Seconds = Field(
        default=60, description="How often Alertmanager is told what still fires."
    )
    timeout_seconds: Seconds = Field(default=10, description="How long a receiver may take.")
    retry_seconds: Seconds = Field(
        default=1, description="Before the first retry; doubled with each, with jitter, up to"
    )
    retry_at_most_seconds: Seconds = Field(default=300, description="this long.")
    give_up_seconds: Seconds = Field(
        default=86_400, description="After this long a message is a dead letter."
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="The only hosts that messages go to; empty is any."
    )
    external_url: str = Field(
        default="http://127.0.0.1:8080",
        pattern=r"^https?://[^\s]+$",
        description="Where people reach the console; links in messages begin with it.",
    )

    @field_validator("hosts", mode="before")
    @classmethod
    def _by_commas(cls, value: Any) -> Any:
        return tuple(filter(None, value.split(","))) if isinstance(value, str) else value


class Receiver(Section):
    """Who is told; `[[receivers]]` once for each."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$", description="As you like to call it.")
    type: str = Field(description="alertmanager, apprise, pagerduty, stdout or webhook.")
    url: str | None = Field(default=None, description="Where messages go; not for apprise.")
    secret_env: str | None = Field(default=None, description="The variable that holds the secret,")
    secret_file: Path | None = Field(default=None, description="or the file; several rotate.")
    min_severity: Literal["critical", "major", "minor"] = Field(
        default="major", description="The least that it is told of."
    )
    allow_http: bool = Field(default=False, description="Also without TLS, and off loopback.")
    group_wait_seconds: Wait | None = Field(default=None, description="If not as in [notify].")
    group_interval_seconds: Wait | None = Field(default=None, description="If not as in [notify].")
    repeat_interval_seconds: Seconds | None = Field(
        default=None, description="If not as in [notify]."
    )

    @model_validator(mode="after")
    def _one_secret(self) -> "Receiver":
        if self.secret_env is not None and self.secret_file is not None:
            raise ValueError("either secret_env or secret_file")
        return self


class Settings(Section):
    """All settings; what the service runs on."""

    server: Server = Server()
    database: Database = Database()
    jobs: Jobs = Jobs()
    model: Model = Model()
    ingest: Ingest = Ingest()
    cycle: Cycle = Cycle()
    verify: Verify = Verify()
    alerts: Alerts = Alerts()
    retention: Retention = Retention()
    metrics: Metrics = Metrics()
    log: Log = Log()
    notify: Notify = Notify()
    receivers: tuple[Receiver, ...] = ()

    @field_validator("receivers")
    @classmethod
    def _names_differ(cls, found: tuple[Receiver, ...]) -> tuple[Receiver, ...]:
        names = [receiver.name for receiver in found]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"the name {twice[0]!r} is there twice")
        return found


# What a running service takes over from a changed file; the rest needs a restart.
RELOADABLE = ("cycle", "verify", "alerts", "retention", "metrics")


class BadSettings(ValueError):
    """Settings that the service cannot run on; one line a problem."""


def load(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any] | None = None
) -> Settings:
    """Settings from a file, variables and flags (`section.key`), each overriding the one before."""
    tables: dict[str, Any] = {}
    origin: dict[tuple[str, ...], str] = {}
    if file is not None:
        for section, table in _read(file).items():
            if section == LIST:
                tables[LIST], origin[LIST,] = table, f"{file}: "
                continue
            if not isinstance(table, dict):
                raise BadSettings(f"{file}: {section}: not a section; known: {_sections()}")
            tables[section] = {}
            origin[section,] = f"{file}: "
            for key, value in table.items():
                tables[section][key] = value
                origin[section, key] = f"{file}: "
    for name, text in environment.items():
        place = _place(name)
        if place:
            tables.setdefault(place[0], {})[place[1]] = text
            origin[place] = f"{name}: "
    for name, value in (flags or {}).items():
        if value is not None:
            section, key = name.split(".")
            tables.setdefault(section, {})[key] = value
            origin[section, key] = f"--{key.replace('_', '-')}: "
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        raise BadSettings("\n".join(_line(e, origin) for e in error.errors())) from None


def ignored(environment: Mapping[str, str], settings: Settings) -> list[str]:
    """A line for each variable that looks like a setting and is none, as if it were mistyped."""
    sections = [section for section in Settings.model_fields if section != LIST]
    names = [f"{PREFIX}{section}_{key}".upper() for section in sections for key in fields(section)]
    others = {*OTHERS, *(receiver.secret_env for receiver in settings.receivers)}
    odd = [n for n in environment if n.startswith(PREFIX) and n not in others and not _place(n)]
    nearest = [(name, get_close_matches(name, names, n=1, cutoff=0)[0]) for name in sorted(odd)]
    return [f"{name}: is no setting, and ignored; the nearest is {near}" for name, near in nearest]


def sample() -> str:
    """A file with every setting at its default, each with what it means."""
    lines = ["# Every setting, at its default."]
    for section in Settings.model_fields:
        lines.append(f"\n# [[{LIST}]]" if section == LIST else f"\n[{section}]")
        for key, about in fields(section).items():
            value = about.get_default()
            unset = value is None or about.is_required()
            line = f"# {key} =" if unset else f"{key} = {_toml(value)}"
            lines += [
                f"# {about.description}",
                f"# {line}" if section == LIST and not unset else line,
            ]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int | float) else f'"{value}"'


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadSettings(f"{file}: cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{file}: not TOML: {error}") from None


def _place(name: str) -> tuple[str, str] | None:
    """The section and key that a variable names; None for variables that are none of ours."""
    if not name.startswith(PREFIX):
        return None
    section, _, key = name.removeprefix(PREFIX).lower().partition("_")
    if section == LIST:
        raise BadSettings(f"{name}: receivers are given in the file, as [[{LIST}]]")
    return (section, key) if section in Settings.model_fields and key else None


def _line(error: Any, origin: Mapping[tuple[str, ...], str]) -> str:
    where = tuple(str(part) for part in error["loc"])
    source = origin.get(where[:1] if where[0] == LIST else where[:2], "")
    if len(where) == 1 and where[0] != LIST and error["type"] == "value_error":
        # Of several keys: wherever they are from.
        places = {o[:-2] for k, o in origin.items() if k[0] == where[0] and k[1:]}
        source = ", ".join(sorted(places)) + (": " if places else "")
    name = _name(where)
    if error["type"] == "extra_forbidden":
        known = _sections() if len(where) == 1 else ", ".join(_keys(where[0]))
        return f"{source}{name}: no such setting; known: {known}"
    message = MESSAGES.get((name, error["type"]), error["msg"].removeprefix("Value error, "))
    # A URL may hold a password.
    hidden = isinstance(error["input"], dict | list | tuple) or where[-1] == "url"
    shown = "" if hidden else f" (is {error['input']!r})"
    return f"{source}{name}: {message}{shown}"


def _name(where: tuple[str, ...]) -> str:
    """As in server.port, and receivers[0].type."""
    return "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in where)[1:]


def _sections() -> str:
    return ", ".join(Settings.model_fields)


def _keys(section: str) -> list[str]:
    return list(fields(section))


def fields(section: str) -> dict[str, FieldInfo]:
    """The settings of a section, by key."""
    kind = Receiver if section == LIST else Settings.model_fields[section].annotation
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, Section) else {}


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
