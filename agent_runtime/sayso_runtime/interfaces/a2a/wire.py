"""Tasks and run events as JSON: what both generations say, with what only one of them says left open.

A pause is a status update whose message holds one confirmation part per question, in the form that ADK's and kagent's
clients look for (wire A), then a sentence. An answer is an artifact in one piece and a bare `completed`. A stream
begins with the task, says everything else as updates, and ends with a final one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from sayso_approvals.records import Kind
from sayso_runtime.interfaces.a2a import hitl
from sayso_runtime.interfaces.a2a.decisions import CONFIRMATION
from sayso_runtime.messages import (
    Artifact,
    AskPart,
    Began,
    CallPart,
    DataPart,
    Ended,
    Interruption,
    Message,
    Part,
    ResultPart,
    RunEvent,
    Task,
    TaskState,
    TextDelta,
    TextPart,
    ToolCalled,
    ToolReturned,
)

Json = dict[str, Any]

# Readers look for `adk_` first, then for `kagent_`.
_CALL = {"adk_type": "function_call", "kagent_type": "function_call"}
_RESPONSE = {"adk_type": "function_response", "kagent_type": "function_response"}
_QUESTION = {**_CALL, "adk_is_long_running": True, "kagent_is_long_running": True}
#: For agents above, which pass questions on: this one takes no bare yes.
_VALUE = {"sayso_kind": Kind.INPUT_REQUIRED.value}
_PARTIAL = {"adk_partial": True, "kagent_adk_partial": True}


class Wire(ABC):
    """One protocol generation as a client hears it. Subclasses say how it spells things; all of it is pure but for the
    ids of messages that nobody stores (the pieces of an answer in progress)."""

    #: The extensions that are spoken, for the answer's header.
    extensions: tuple[str, ...] = ()

    # --- spelling

    @abstractmethod
    def text(self, text: str, metadata: Mapping[str, Any]) -> Json: ...

    @abstractmethod
    def data(self, data: Any, metadata: Mapping[str, Any]) -> Json: ...

    @abstractmethod
    def state(self, state: TaskState) -> str: ...

    @abstractmethod
    def envelope(self, kind: str, document: Json) -> Json:
        """What marks a message, a task or an artifact as one. `kind` is 0.3's name for it."""

    @abstractmethod
    def role(self, role: str) -> str: ...

    @abstractmethod
    def status_update(self, document: Json, *, final: bool) -> Json: ...

    @abstractmethod
    def artifact_update(self, document: Json) -> Json: ...

    @abstractmethod
    def streamed_task(self, task: Json) -> Json:
        """A task as an element of a stream, or as the answer to a message."""

    # --- what both say

    def task(self, task: Task, history: int | None = None) -> Json:
        """The whole task. `history`: how many of its newest messages, None: all."""
        document = self._bare_task(task, task.status, history)
        if task.artifacts:
            document["artifacts"] = [self._artifact(artifact) for artifact in task.artifacts]
        return self.envelope("task", document)

    def began(self, task: Task, history: int | None = None) -> Json:
        """The first element of a stream. Question and answer are left to the updates that follow: clients act on
        updates, and some would ask or show twice what they found here as well."""
        return self.streamed_task(self.envelope("task", self._bare_task(task, None, history)))

    def _bare_task(self, task: Task, status: Message | None, history: int | None) -> Json:
        newest = task.history if history is None else task.history[-history:] if history else ()
        return {
            "id": task.id,
            "contextId": task.context_id,
            "status": self._status(task.state, task.at, task, status),
            "history": [self.message(message, task) for message in newest],
        }

    def message(self, message: Message, task: Task) -> Json:
        """One message of a task."""
        document: Json = {
            "messageId": message.message_id,
            "role": self.role(message.role),
            "parts": self.parts(message.parts),
            "contextId": task.context_id,
            "taskId": task.id,
        }
        if message.metadata:
            document["metadata"] = dict(message.metadata)
            if hitl.URI in message.metadata:
                document["extensions"] = [hitl.URI]
        return self.envelope("message", document)

    def parts(self, parts: Iterable[Part]) -> list[Json]:
        """A message's parts."""
        return [self._part(part) for part in parts]

    def updates(self, event: RunEvent, task: Task, known: frozenset[str], now: float) -> list[Json]:
        """What a run says after its beginning, as stream elements in order. `task`: the task as it began; `known`: ids
        of the artifacts that it had; `now`: seconds since the epoch, for updates that nobody stores."""
        match event:
            case Began():
                raise ValueError("a run begins once")
            case TextDelta():
                return [self._working(task, now, (TextPart(event.text, _PARTIAL),))]
            case ToolCalled():
                return [self._working(task, now, event.calls)]
            case ToolReturned():
                return [self._working(task, now, event.results)]
            case Ended():
                return [
                    *(self._answer(a, event.task) for a in event.task.artifacts if a.artifact_id not in known),
                    self._end(event.task),
                ]

    def _answer(self, artifact: Artifact, task: Task) -> Json:
        return self.artifact_update(
            {
                "taskId": task.id,
                "contextId": task.context_id,
                "artifact": self._artifact(artifact),
                "append": False,
                "lastChunk": True,
            }
        )

    def _end(self, task: Task) -> Json:
        # The answer stands in its artifact; in `completed` it would be shown twice.
        message = None if task.state is TaskState.COMPLETED else task.status
        status = self._status(task.state, task.at, task, message)
        return self.status_update({"taskId": task.id, "contextId": task.context_id, "status": status}, final=True)

    def _working(self, task: Task, now: float, parts: tuple[Part, ...]) -> Json:
        message = Message(uuid4().hex, "agent", parts)
        status = self._status(TaskState.WORKING, now, task, message)
        return self.status_update({"taskId": task.id, "contextId": task.context_id, "status": status}, final=False)

    def _status(self, state: TaskState, at: float, task: Task, message: Message | None) -> Json:
        status: Json = {"state": self.state(state), "timestamp": timestamp(at)}
        if message is not None:
            status["message"] = self.message(message, task)
        return status

    def _artifact(self, artifact: Artifact) -> Json:
        return {"artifactId": artifact.artifact_id, "parts": self.parts(artifact.parts)}

    def _part(self, part: Part) -> Json:
        match part:
            case TextPart():
                return self.text(part.text, part.metadata)
            case DataPart():
                return self.data(part.data, part.metadata)
            case AskPart():
                wants_value = part.interruption.kind is Kind.INPUT_REQUIRED
                return self.data(question(part.interruption), {**_QUESTION, **_VALUE} if wants_value else _QUESTION)
            case CallPart():
                return self.data({"id": part.id, "name": part.name, "args": part.arguments}, _CALL)
            case ResultPart():
                return self.data({"id": part.id, "name": part.name, "response": _response(part)}, _RESPONSE)


def question(interruption: Interruption) -> Json:
    """A pending call as the confirmation request that ADK's clients know."""
    return {
        "name": CONFIRMATION,
        "id": interruption.confirmation_id,
        "args": {
            "originalFunctionCall": {
                "name": interruption.name,
                "args": interruption.arguments,
                "id": interruption.id,
            },
            "toolConfirmation": {
                "hint": interruption.hint,
                "confirmed": False,
                "payload": interruption.payload,
            },
        },
    }


def interruption_summary(interruption: Interruption) -> Json:
    """A pending call as an error's data lists it."""
    return {
        "id": interruption.id,
        "confirmationId": interruption.confirmation_id,
        "kind": interruption.kind.value,
        "name": interruption.name,
        "arguments": interruption.arguments,
        "hint": interruption.hint,
        "openedAt": timestamp(interruption.opened_at),
        "expiresAt": timestamp(interruption.expires_at),
    }


def timestamp(at: float) -> str:
    """RFC 3339 in UTC, with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _response(part: ResultPart) -> Json:
    return {"result": part.response, "isError": True} if part.is_error else {"result": part.response}
