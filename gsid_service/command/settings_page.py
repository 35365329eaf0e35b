"""A page about every setting, from config.py to Markdown; docs/configuration.md is that page."""

from typing import Any

from gsid_service.config import LIST, RELOADABLE, Receiver, Settings, fields

HIGH = 1e8  # what is allowed beyond this is not worth a word
HEAD = """# Configuration

Written by `gsid settings --markdown` (`make docs`) from `gsid_service/config.py`; do not edit it
here.

A setting comes from a TOML file (`gsid serve --config gsid.toml`), then from a variable named
after its section and key, as in `GSID_DATABASE_URL`, then from a flag; the later wins. `gsid
settings` prints a file with all of them at their defaults ([gsid.toml](gsid.toml)), `gsid serve
--check-config` checks a file and prints what the service would run on. An unknown key, or a value
that is out of its range, stops the start with one line that names it.

`kill -HUP` or `POST /-/reload` takes over changes in the sections that say so; others need a
restart.
"""


def page() -> str:
    return HEAD + "".join(map(_section, Settings.model_fields))


def _section(name: str) -> str:
    title = f"[[{LIST}]], once for each" if name == LIST else f"[{name}]"
    when = "Taken over by a reload." if name in RELOADABLE else "Needs a restart."
    known = _schema(name)
    lines = [
        f"\n## {title}\n",
        f"{when}\n",
        "| key | default | allowed | meaning |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{key}` | {_default(about)} | {_allowed(known[key])} | {about.description} |"
        for key, about in fields(name).items()
    ]
    return "\n".join(lines) + "\n"


def _schema(name: str) -> dict[str, Any]:
    kind: Any = Receiver if name == LIST else Settings.model_fields[name].annotation
    found: dict[str, Any] = kind.model_json_schema()["properties"]
    return found


def _default(about: Any) -> str:
    if about.is_required():
        return "must be given"
    value = about.get_default()
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def _allowed(schema: dict[str, Any]) -> str:
    """What a value may be, in words."""
    schema = next((s for s in schema.get("anyOf", []) if s.get("type") != "null"), schema)
    if "enum" in schema:
        return ", ".join(f"`{choice}`" for choice in schema["enum"])
    if schema.get("format") == "path":
        return "a path"
    kind = {"integer": "a whole number", "number": "a number", "boolean": "`true`, `false`"}
    named = kind.get(schema["type"], "a list" if schema["type"] == "array" else "text")
    return " ".join([named, *_bounds(schema)])


def _bounds(schema: dict[str, Any]) -> list[str]:
    low, above, high = (schema.get(k) for k in ("minimum", "exclusiveMinimum", "maximum"))
    said = [] if low is None else [f"from {low:g}"]
    said += [] if above is None else [f"above {above:g}"]
    return said + ([] if high is None or high >= HIGH else [f"to {high:g}"])
