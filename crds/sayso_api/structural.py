"""Pydantic's JSON schema to what Kubernetes calls a structural schema.

A structural schema has a type at every place, no references, and `anyOf` in no place that could change a type.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, TypeAdapter

Schema = dict[str, Any]

_DROPPED = frozenset({"title", "$defs", "discriminator", "additionalProperties", "const"})

_FIRST = ("description", "type", "default", "enum", "format", "pattern")
_LAST = ("additionalProperties", "items", "properties")


def structural(model: type[BaseModel]) -> Schema:
    """The structural schema of a model, with its fields as manifests spell them."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.get("$defs", {}))


def structural_type(annotation: Any) -> Schema:
    """The structural schema of a type without fields, such as a name."""
    return _convert(TypeAdapter(annotation).json_schema(), {})


def _convert(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    schema = _resolved(schema, definitions)
    converted: Schema = {key: value for key, value in schema.items() if key not in _DROPPED}
    if "const" in schema:
        converted["enum"] = [schema["const"]]
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if bound in schema:
            # OpenAPI 3.0, which Kubernetes follows, has the exclusive bound as a flag beside the inclusive one.
            converted |= {limit: schema[bound], bound: True}
    if converted.get("default", ...) in (None, "", []) or isinstance(converted.get("default"), dict):
        # An empty default says nothing, and filled in it would count as given in the rules. Kubernetes has no null,
        # and fills in an object's defaults only where the object is given, so those stand at its fields.
        del converted["default"]
    if "properties" in schema:
        converted["properties"] = {name: _convert(field, definitions) for name, field in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        converted["items"] = _convert(schema["items"], definitions)
    if isinstance(schema.get("additionalProperties"), dict):
        converted["additionalProperties"] = _convert(schema["additionalProperties"], definitions)
    return {key: converted[key] for key in sorted(converted, key=_reading_order)}


def _reading_order(key: str) -> tuple[int, str]:
    """What a reader asks first comes first; the long parts come last."""
    return (_FIRST.index(key) if key in _FIRST else len(_FIRST) + (key in _LAST), key)


def _resolved(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """`schema` without references and without `null` as a choice; what stands beside a reference wins."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _resolved(definitions[name], definitions) | beside
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        beside = {key: value for key, value in schema.items() if key != "anyOf"}
        return _resolved(choices[0], definitions) | beside
    return schema
