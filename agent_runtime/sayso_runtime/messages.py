"""What doors and `RunService` say to each other: neutral of any wire format and of any agent framework.

A door parses a request into `Inbound`, hands it to `RunService.send`, and renders the `Task` and the `RunEvent`s that
come back. Times are seconds since the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from sayso_approvals.records import Kind, Verdict

#: Names of the questions that Sayso itself asks; they stand where a tool's name stands.
OUTCOME_UNKNOWN = "sayso_outcome_unknown"
CONTINUE = "sayso_continue"


class TaskState(StrEnum):
    """The states of A2A that a run can be in."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        """Nothing can follow."""
        return self in (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED)


@dataclass(frozen=True, slots=True)
class Interruption:
    """One thing that waits for a person.

    `id` is what a verdict names. `confirmation_id` is the engine's own id of the question. For a gated tool `name` and
    `arguments` are the real tool's (the name as the model knows it); for Sayso's own questions they are
    `sayso_outcome_unknown` and `sayso_continue` with their explanation.
    """

    id: str
    kind: Kind
    confirmation_id: str
    name: str
    arguments: dict[str, Any]
    hint: str
    payload: Any = None
    server: str = ""
    tool: str = ""
    digest: str = ""
    gated_by: tuple[str, ...] = ()
    opened_at: float = 0.0
    expires_at: float = 0.0
    pause_id: str = ""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text. `metadata` as the client sent it, or ours."""

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataPart:
    """Structured data, passed along as it came."""

    data: Any
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskPart:
    """A question to a person: doors render it in the form their client understands."""

    interruption: Interruption


@dataclass(frozen=True, slots=True)
class CallPart:
    """An ungated tool call that the model made, for display."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResultPart:
    """What an executed call returned, for display."""

    id: str
    name: str
    response: Any
    is_error: bool = False


Part = TextPart | DataPart | AskPart | CallPart | ResultPart


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a task's history."""

    message_id: str
    role: Literal["user", "agent"]
    parts: tuple[Part, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Artifact:
    """An answer of the agent."""

    artifact_id: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A run as clients see it. `version` counts its stored versions.

    `status` is the message that goes with the state: in `input-required` it has one `AskPart` per interruption and one
    `TextPart`; in `failed` a sentence. `interruptions` are what is open now. `run_id` names the newest stop (see
    `tasks.run_of`), and `said` is what the model has said in a task that has no answer yet.
    """

    id: str
    context_id: str
    state: TaskState
    at: float
    version: int = 0
    status: Message | None = None
    history: tuple[Message, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    requester: str = ""
    run_id: str = ""
    created_at: float = 0.0
    said: str = ""

    def message(self, message_id: str) -> Message | None:
        """A message of the history. A client's message that is not there was never taken up by this task."""
        return next((message for message in self.history if message.message_id == message_id), None)


# --- what comes in


@dataclass(frozen=True, slots=True)
class Answer:
    """One verdict about one interruption. `payload`: edited arguments, a value or a settled result; None: none.

    `value` is for doors that cannot tell what kind of call an id names: what a call gets that wants a value, whatever
    the verdict says. Other calls go by the verdict alone.
    """

    verdict: Verdict
    reason: str = ""
    payload: Any = None
    has_payload: bool = False
    value: Any = None
    has_value: bool = False


@dataclass(frozen=True, slots=True)
class UniformDecision:
    """A verdict without ids: it means what is open when it arrives, and never an unknown outcome's retry."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class NamedDecision:
    """Verdicts by id (a tool call's id or a confirmation's id). Never empty. `whole`: nothing that waits for a verdict
    may be left out. `requests`: nothing that was asked together (the calls of one agent) may be decided in part."""

    answers: Mapping[str, Answer]
    whole: bool = False
    requests: bool = False


Decision = UniformDecision | NamedDecision


@dataclass(frozen=True, slots=True)
class Inbound:
    """A request: either a message for the model (`decision` None, at least one part) or a decision.

    `context_id` is the session. Without it, `task_id` finds it; without both a new session begins. `parts` are the
    message's parts as they came, for the task's history. `requester` comes from the authentication layer only.
    `run_id` is the stop that a decision answers: it then means the calls that were shown there, and no later ones.
    """

    requester: str
    message_id: str
    parts: tuple[Part, ...]
    context_id: str | None = None
    task_id: str | None = None
    run_id: str | None = None
    decision: Decision | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    via: str = "chat"


# --- what goes out


@dataclass(frozen=True, slots=True)
class Began:
    """Always first: the task as it is when the run (or its continuation) begins."""

    task: Task


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as the model writes it; of the answer of another agent that was called, as `author`."""

    text: str
    author: str = ""


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model calls tools that run at once (never a gated one that waits)."""

    calls: tuple[CallPart, ...]


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """Calls that ran (or were refused) and what the model is told; never a placeholder."""

    results: tuple[ResultPart, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """Always last: the task paused (`input-required`), completed, failed or was cancelled, and is stored so."""

    task: Task


RunEvent = Began | TextDelta | ToolCalled | ToolReturned | Ended


def text_of(parts: tuple[Part, ...]) -> str:
    """The text parts, joined by line breaks."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def task_to_json(task: Task) -> str:
    """The stored form of a task (version left out: the store counts it)."""
    return json.dumps(_encode(task), ensure_ascii=False, separators=(",", ":"))


def _encode(value: Any) -> Any:
    match value:
        case Task():
            return {
                "id": value.id,
                "context": value.context_id,
                "state": value.state.value,
                "at": value.at,
                "created": value.created_at,
                "requester": value.requester,
                "run": value.run_id,
                "said": value.said,
                "status": _encode(value.status) if value.status else None,
                "history": [_encode(message) for message in value.history],
                "artifacts": [{"id": a.artifact_id, "parts": [_encode(p) for p in a.parts]} for a in value.artifacts],
                "interruptions": [_encode(i) for i in value.interruptions],
            }
        case Message():
            return {
                "id": value.message_id,
                "role": value.role,
                "at": value.at,
                "metadata": dict(value.metadata),
                "parts": [_encode(part) for part in value.parts],
            }
        case TextPart():
            return {"text": value.text, "metadata": dict(value.metadata)}
        case DataPart():
            return {"data": value.data, "metadata": dict(value.metadata)}
        case AskPart():
            return {"ask": _encode(value.interruption)}
        case CallPart():
            return {"call": {"id": value.id, "name": value.name, "arguments": value.arguments}}
        case ResultPart():
            return {
                "result": {
                    "id": value.id,
                    "name": value.name,
                    "response": value.response,
                    "error": value.is_error,
                }
            }
        case Interruption():
            return {
                "id": value.id,
                "kind": value.kind.value,
                "confirmation": value.confirmation_id,
                "name": value.name,
                "arguments": value.arguments,
                "hint": value.hint,
                "payload": value.payload,
                "server": value.server,
                "tool": value.tool,
                "digest": value.digest,
                "gatedBy": list(value.gated_by),
                "opened": value.opened_at,
                "expires": value.expires_at,
                "pause": value.pause_id,
            }
        case _:
            raise TypeError(f"a {type(value).__name__} is not part of a task")


def task_from_json(text: str, version: int) -> Task:
    """The inverse of `task_to_json`."""
    doc = json.loads(text)
    return Task(
        id=doc["id"],
        context_id=doc["context"],
        state=TaskState(doc["state"]),
        at=doc["at"],
        created_at=doc["created"],
        requester=doc["requester"],
        run_id=doc["run"],
        said=doc.get("said", ""),
        version=version,
        status=_message(doc["status"]) if doc["status"] else None,
        history=tuple(_message(m) for m in doc["history"]),
        artifacts=tuple(Artifact(a["id"], tuple(_part(p) for p in a["parts"])) for a in doc["artifacts"]),
        interruptions=tuple(_interruption(i) for i in doc["interruptions"]),
    )


def _message(doc: dict[str, Any]) -> Message:
    return Message(doc["id"], doc["role"], tuple(_part(p) for p in doc["parts"]), doc["metadata"], doc["at"])


def _part(doc: dict[str, Any]) -> Part:
    if "text" in doc:
        return TextPart(doc["text"], doc["metadata"])
    if "data" in doc:
        return DataPart(doc["data"], doc["metadata"])
    if "ask" in doc:
        return AskPart(_interruption(doc["ask"]))
    if "call" in doc:
        return CallPart(doc["call"]["id"], doc["call"]["name"], doc["call"]["arguments"])
    result = doc["result"]
    return ResultPart(result["id"], result["name"], result["response"], result["error"])


def _interruption(doc: dict[str, Any]) -> Interruption:
    return Interruption(
        id=doc["id"],
        kind=Kind(doc["kind"]),
        confirmation_id=doc["confirmation"],
        name=doc["name"],
        arguments=doc["arguments"],
        hint=doc["hint"],
        payload=doc["payload"],
        server=doc["server"],
        tool=doc["tool"],
        digest=doc["digest"],
        gated_by=tuple(doc["gatedBy"]),
        opened_at=doc["opened"],
        expires_at=doc["expires"],
        pause_id=doc["pause"],
    )
