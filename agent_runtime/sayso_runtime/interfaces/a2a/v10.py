"""A2A 1.0: protobuf's JSON. Which member is there says what a thing is; a stream ends by ending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sayso_runtime.interfaces.a2a import hitl, reading
from sayso_runtime.interfaces.a2a.errors import CONTENT_TYPE_NOT_SUPPORTED, RpcError
from sayso_runtime.interfaces.a2a.wire import Json, Wire
from sayso_runtime.messages import AskPart, DataPart, Message, Task, TaskState, TextPart

_STATES = {state: "TASK_STATE_" + state.value.upper().replace("-", "_") for state in TaskState}
_ROLES = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}


class V10(Wire):
    """What 1.0 clients send and hear."""

    user_roles = frozenset({"ROLE_USER"})
    zero_history_is_none = True
    #: The SDK's client shows the typed error of a JSON body at 200, and only the number of any other status.
    refuses_streams_by_status = False

    def read_part(self, raw: Mapping[str, Any], path: str) -> TextPart | DataPart:
        """A part by the member it has. Raises `RpcError`."""
        metadata = reading.optional_obj(raw.get("metadata"), f"{path}.metadata")
        present = [key for key in ("text", "data", "raw", "url") if key in raw]
        if len(present) != 1:
            raise reading.invalid(path, "has to have exactly one of text, data, raw, url")
        match present[0]:
            case "text":
                return TextPart(reading.text(raw["text"], f"{path}.text"), metadata)
            case "data":
                return DataPart(raw["data"], metadata)
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, f"params.{path}: this agent takes text and data, no files")

    def read_blocking(self, configuration: Mapping[str, Any]) -> bool:
        """Whether the client waits for the end."""
        return not reading.flag(
            configuration.get("returnImmediately"), "configuration.returnImmediately", default=False
        )

    def text(self, text: str, metadata: Mapping[str, Any]) -> Json:
        return {"text": text, "metadata": dict(metadata)} if metadata else {"text": text}

    def data(self, data: Any, metadata: Mapping[str, Any]) -> Json:
        return {"data": data, "metadata": dict(metadata)} if metadata else {"data": data}

    def state(self, state: TaskState) -> str:
        return _STATES[state]

    def role(self, role: str) -> str:
        return _ROLES[role]

    def envelope(self, kind: str, document: Json) -> Json:
        return document

    def status_update(self, document: Json, *, final: bool) -> Json:
        return {"statusUpdate": document}

    def artifact_update(self, document: Json) -> Json:
        return {"artifactUpdate": document}

    def streamed_task(self, task: Json) -> Json:
        return {"task": task}


class V10Hitl(V10):
    """1.0 with kagent's extension: what waits stands in the message's metadata, and not in parts."""

    extensions = (hitl.URI,)

    def message(self, message: Message, task: Task) -> Json:
        """One message of a task."""
        asks = [part.interruption for part in message.parts if isinstance(part, AskPart)]
        request = hitl.request(asks)
        if request is None:
            return super().message(message, task)
        rest = tuple(part for part in message.parts if not isinstance(part, AskPart))
        metadata = {**message.metadata, hitl.URI: request}
        return super().message(replace(message, parts=rest, metadata=metadata), task)
