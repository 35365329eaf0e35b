"""The JSON schema of a snapshot, with each predicate's roles and ranges spelled out."""

from typing import Any

from gsid_service.ingest.shapes import WireSnapshot
from gsid_service.schema import SCHEMA, FactKind, Parameter, Schema


def json_schema(schema: Schema = SCHEMA) -> dict[str, Any]:
    document = WireSnapshot.model_json_schema(by_alias=True)
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    definitions = document["$defs"]
    definitions["WireEntity"]["properties"]["kind"]["enum"] = list(schema.entity)
    observable = [kind for kind in schema.facts if kind.observable]
    for name in ("WireFact", "WireFactKey"):
        definitions[name]["properties"]["predicate"]["enum"] = [kind.name for kind in observable]
    definitions["WireFact"]["allOf"] = [_predicate_schema(kind) for kind in observable]
    return document


def _predicate_schema(kind: FactKind) -> dict[str, Any]:
    params: dict[str, Any] = {
        "additionalProperties": False,
        "properties": {p.name: _parameter_schema(p) for p in kind.parameters},
        "required": [p.name for p in kind.parameters if p.required],
    }
    roles = " · ".join(role.name for role in kind.roles)
    arguments = {"minItems": len(kind.roles), "maxItems": len(kind.roles), "description": roles}
    then: dict[str, Any] = {"properties": {"args": arguments, "params": params}}
    if params["required"]:
        then["required"] = ["params"]
    return {"if": {"properties": {"predicate": {"const": kind.name}}}, "then": then}


def _parameter_schema(parameter: Parameter) -> dict[str, Any]:
    if parameter.symbols:
        return {"enum": [*parameter.symbols, *range(len(parameter.symbols))]}
    return {"type": "integer", "minimum": parameter.low, "maximum": parameter.high}
