"""A2A 0.3: everything has a `kind`, and a stream's last update is `final`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sayso_runtime.interfaces.a2a import reading
from sayso_runtime.interfaces.a2a.errors import CONTENT_TYPE_NOT_SUPPORTED, RpcError
from sayso_runtime.interfaces.a2a.wire import Json, Wire
from sayso_runtime.messages import DataPart, TaskState, TextPart


class V03(Wire):
    """What 0.3 clients send and hear."""

    user_roles = frozenset({"user"})
    zero_history_is_none = False
    #: At 200 these clients take a refusal on a stream for success, so it has an HTTP status of its own.
    refuses_streams_by_status = True

    def read_part(self, raw: Mapping[str, Any], path: str) -> TextPart | DataPart:
        """A part by its `kind`. Raises `RpcError`."""
        metadata = reading.optional_obj(raw.get("metadata"), f"{path}.metadata")
        match raw.get("kind"):
            case "text":
                return TextPart(reading.text(raw.get("text"), f"{path}.text"), metadata)
            case "data":
                return DataPart(reading.obj(raw.get("data"), f"{path}.data"), metadata)
            case "file":
                raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, f"params.{path}: this agent takes text and data, no files")
        raise reading.invalid(f"{path}.kind", "has to be text or data")

    def read_blocking(self, configuration: Mapping[str, Any]) -> bool:
        """Whether the client waits for the end."""
        return reading.flag(configuration.get("blocking"), "configuration.blocking", default=True)

    def text(self, text: str, metadata: Mapping[str, Any]) -> Json:
        part: Json = {"kind": "text", "text": text}
        return part | {"metadata": dict(metadata)} if metadata else part

    def data(self, data: Any, metadata: Mapping[str, Any]) -> Json:
        if not isinstance(data, dict):
            # 0.3 has only objects; this is how the two generations carry other values between them.
            return {
                "kind": "data",
                "data": {"value": data},
                "metadata": {**metadata, "data_part_compat": True},
            }
        part: Json = {"kind": "data", "data": data}
        return part | {"metadata": dict(metadata)} if metadata else part

    def state(self, state: TaskState) -> str:
        return state.value

    def role(self, role: str) -> str:
        return role

    def envelope(self, kind: str, document: Json) -> Json:
        return {"kind": kind, **document}

    def status_update(self, document: Json, *, final: bool) -> Json:
        return {"kind": "status-update", **document, "final": final}

    def artifact_update(self, document: Json) -> Json:
        return {"kind": "artifact-update", **document}

    def streamed_task(self, task: Json) -> Json:
        return task
