"""A tool's answer as the model sees it: the wire's own field names, as agents get them from ADK's MCP tool."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

#: Values that the server owns: whatever keys they hold are its own business.
_SERVERS_OWN = frozenset({"_meta", "inputSchema", "outputSchema", "structuredContent"})


def dump(model: BaseModel) -> dict[str, Any]:
    """The wire form of a result or tool, without absent fields, and with `_meta` under the name `meta`."""
    document = _rename(model.model_dump(mode="json", by_alias=True, exclude_none=True))
    document.pop("resultType", None)
    return dict(document)


def error_result(text: str) -> dict[str, Any]:
    """A result that says that the tool failed. For errors that the server itself answered with."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def size_of(result: dict[str, Any]) -> int:
    """Bytes of the result as JSON."""
    return len(json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _rename(value: Any) -> Any:
    if isinstance(value, list):
        return [_rename(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        ("meta" if key == "_meta" else key): item if key in _SERVERS_OWN else _rename(item)
        for key, item in value.items()
    }
