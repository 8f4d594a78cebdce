"""One page per kind of resource, from the JSON schema of its model: type, default and meaning of every field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from markdown import code, table
from sayso_api.meta import API_VERSION
from sayso_api.objects import KINDS

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """`<kind>.md` -> text."""
    return {f"{kind.lower()}.md": page(kind, model.model_json_schema(by_alias=True)) for kind, model in KINDS.items()}


def page(kind: str, schema: Schema) -> str:
    """The page of one kind: the object itself, then each of its parts in the order in which they are met."""
    parts = schema.get("$defs", {})
    text = [f"# {kind}", f"`apiVersion: {API_VERSION}`, `kind: {kind}`", _purpose(schema), _fields(schema)]
    for name in _in_order(schema, parts):
        part = parts[name]
        text += [f'<a id="{name.lower()}"></a>', f"## {name}", _purpose(part), _fields(part)]
    return "\n\n".join(block for block in text if block) + "\n"


def _purpose(schema: Schema) -> str:
    rules = [f"- {_sentence(rule['message'])}" for rule in schema.get("x-kubernetes-validations", ())]
    return "\n\n".join(filter(None, [schema.get("description", ""), "\n".join(rules)]))


def _sentence(message: str) -> str:
    text = message.removeprefix("expected ")
    return f"{text[:1].upper()}{text[1:]}."


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (
            code(name),
            type_of(field),
            _default(name in required, field),
            field.get("description", ""),
        )
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "type", "default", "meaning"), rows) if rows else ""


def _default(required: bool, field: Schema) -> str:
    if required or "const" in field:
        return "*required*"
    value = field.get("default")
    return "" if value in (None, "", [], {}) else code(json.dumps(value, ensure_ascii=False))


def type_of(field: Schema) -> str:
    """A field's type in words, with a link where it is a part of its own."""
    if "$ref" in field:
        name = str(field["$ref"]).rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    for many in ("anyOf", "oneOf", "allOf"):
        if many in field:
            options = [type_of(option) for option in field[many] if option.get("type") != "null"]
            return " or ".join(dict.fromkeys(options))
    if "const" in field:
        return code(str(field["const"]))
    if "enum" in field:
        return " or ".join(code(str(value)) for value in field["enum"])
    kind: str | None = field.get("type")
    match kind:
        case "array":
            return f"list of {type_of(field.get('items', {}))}{_size(field, 'Items', ' items')}"
        case "object":
            values = field.get("additionalProperties")
            return f"map of {type_of(values)}" if isinstance(values, dict) and values else "map"
        case "string":
            return f"text{_size(field, 'Length', ' characters')}"
        case "integer" | "number" as word:
            return word + _range(field)
        case None if "pattern" in field and "required" in field:
            words = re.fullmatch(r"\^\((.*)\)\$", field["pattern"])
            names = [code(word) for word in (words[1].split("|") if words else [])]
            return " or ".join([*names, *(f"a map with {code(name)}" for name in field["required"])])
        case None:
            return "any"
        case other:
            return other


def _size(field: Schema, what: str, unit: str) -> str:
    most = field.get(f"max{what}")
    return f" (up to {most:,}{unit})" if most is not None else ""


def _range(field: Schema) -> str:
    bounds = [
        f"{sign} {field[key]:g}"
        for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<"))
        if key in field
    ]
    return f", {', '.join(bounds)}" if bounds else ""


def _in_order(schema: Schema, parts: dict[str, Schema]) -> Iterator[str]:
    """Names of the parts that `schema` leads to, each once, in reading order."""
    seen: set[str] = set()
    waiting = [schema]
    while waiting:
        for name in _references(waiting.pop(0).get("properties", {})):
            if name not in seen:
                seen.add(name)
                waiting.append(parts[name])
                yield name


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rsplit("/", 1)[-1]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
