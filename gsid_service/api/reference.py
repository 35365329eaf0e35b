"""/docs: the API on one page, made from its OpenAPI description; loads nothing from elsewhere."""

import json
from html import escape
from typing import Any


def page(openapi: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            tag = (operation.get("tags") or ["other"])[0]
            groups.setdefault(tag, []).append(_operation(path, method, operation, openapi))
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(rows)}" for tag, rows in groups.items())
    title = f"{escape(openapi['info']['title'])} {escape(openapi['info']['version'])}"
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        "<link rel=icon href=/static/icon.svg><link rel=stylesheet href=/static/reference.css>"
        f"<h1>{title}</h1>"
        "<p>Errors are problem documents (RFC 9457). Lists are paged: ask for the next page with "
        "<code>cursor</code> set to <code>next</code>. For machines: "
        f"<a href=/openapi.json>openapi.json</a>.</p>{body}</html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any], openapi: dict[str, Any]) -> str:
    rows = "".join(_parameter(parameter) for parameter in operation.get("parameters", ()))
    answers = "".join(
        f"<tr><td>{status}<td>{escape(answer['description'])}"
        for status, answer in operation["responses"].items()
    )
    shown = f"<table>{rows}</table>" if rows else ""
    body = operation.get("requestBody")
    if body:
        content = next(iter(body["content"].values()))
        example = json.dumps(_example(content["schema"], openapi), indent=1)
        shown += f"<p>Body:<pre>{escape(example)}</pre>"
    return (
        f"<details><summary><span class='m {method}'>{method.upper()}</span>"
        f"<code>{escape(path)}</code> {escape(operation.get('description', ''))}</summary>"
        f"{shown}<table>{answers}</table></details>"
    )


def _parameter(parameter: dict[str, Any]) -> str:
    note = parameter.get("description", "")
    default = parameter.get("schema", {}).get("default")
    if default is not None:
        note += f" Default {default}."
    return f"<tr><td><code>{escape(parameter['name'])}</code><td>{escape(note)}"


def _example(schema: dict[str, Any], openapi: dict[str, Any]) -> Any:
    """An example of a schema, from the examples of its fields."""
    if "$ref" in schema:
        return _example(openapi["components"]["schemas"][schema["$ref"].split("/")[-1]], openapi)
    if schema.get("examples"):
        return schema["examples"][0]
    if "default" in schema:
        return schema["default"]
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        return _example(choice, openapi)
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        return {name: _example(field, openapi) for name, field in fields.items()}
    if schema.get("type") == "array":
        return [_example(schema["items"], openapi)] if "items" in schema else []
    return {"string": "…", "integer": 0, "number": 0.0, "boolean": True}.get(schema.get("type", ""))
