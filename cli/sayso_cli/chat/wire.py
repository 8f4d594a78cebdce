"""What the terminal chat says and hears over A2A 0.3: pure functions between JSON and a few records."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

OUTCOME_UNKNOWN = "sayso_outcome_unknown"
CONTINUE = "sayso_continue"
ASK_USER = "ask_user"
ENDED = frozenset({"completed", "failed", "canceled", "rejected"})

_CONFIRMATION = "adk_request_confirmation"


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing that waits for a person. `id` is what a decision names; `name` a tool's or one of Sayso's own."""

    id: str
    name: str
    arguments: Any
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """A call that ran by itself, or its result: for display only."""

    name: str
    value: Any
    result: bool
    is_error: bool = False


@dataclass(slots=True)
class Reply:
    """What one request brought: grows with `absorb` until the stream ends."""

    task_id: str | None = None
    context_id: str | None = None
    state: str = ""
    asks: list[Ask] = field(default_factory=list)
    answer: list[str] = field(default_factory=list)
    note: str = ""

    @property
    def text(self) -> str:
        """The agent's answer."""
        return "".join(self.answer)


def message(
    parts: Sequence[Mapping[str, Any]], *, context_id: str, task_id: str | None = None, message_id: str | None = None
) -> dict[str, Any]:
    """A user's message. Sending it again with the same id gets the first answer again."""
    found: dict[str, Any] = {
        "kind": "message",
        "role": "user",
        "messageId": message_id or f"chat-{uuid.uuid4().hex}",
        "contextId": context_id,
        "parts": list(parts),
        "metadata": {"timestamp": datetime.now(UTC).isoformat(timespec="milliseconds")},
    }
    if task_id is not None:
        found["taskId"] = task_id
    return found


def text_part(text: str) -> dict[str, Any]:
    """Words."""
    return {"kind": "text", "text": text}


def decision_parts(
    verdicts: Mapping[str, str],
    reasons: Mapping[str, str],
    answers: Mapping[str, Sequence[Sequence[str]]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Verdicts (`approve`, `reject`) by id: always each call by name, so that none can be meant by accident.
    `answers` are those to the questions of calls of `ask_user`, in their order."""
    data: dict[str, Any] = {"decision_type": "batch", "decisions": dict(verdicts)}
    given = {name: reason for name, reason in reasons.items() if reason}
    if given:
        data["rejection_reasons"] = given
    if answers:
        data["ask_user_answers"] = {
            name: [{"answer": list(answer)} for answer in entries] for name, entries in answers.items()
        }
    label = ", ".join(f"{name}: {verdict}" for name, verdict in verdicts.items())
    return [{"kind": "data", "data": data, "metadata": {}}, text_part(label)]


def absorb(reply: Reply, event: Mapping[str, Any]) -> list[Shown]:
    """Takes one event (or a whole task) into `reply`; returns what can be shown at once."""
    kind = event.get("kind")
    task_id = event.get("id") if kind == "task" else event.get("taskId")
    reply.task_id = str(task_id) if task_id else reply.task_id
    reply.context_id = str(event["contextId"]) if event.get("contextId") else reply.context_id
    if kind == "artifact-update":
        artifact = event.get("artifact") or {}
        if not event.get("append"):
            reply.answer.clear()
        reply.answer.extend(_texts(artifact.get("parts")))
        return []
    if kind == "message":
        reply.state = reply.state or "completed"
        reply.answer.extend(_texts(event.get("parts")))
        return []
    if kind == "task":
        # What it holds is how things stand, replays of earlier turns included: the newest answer is the last artifact.
        artifacts = event.get("artifacts") or []
        reply.answer = _texts(artifacts[-1].get("parts")) if artifacts else []
    status = event.get("status") or {}
    reply.state = str(status.get("state") or reply.state)
    parts = (status.get("message") or {}).get("parts") or []
    reply.asks = [ask for part in parts for ask in _asks(part)]
    if reply.state != "working":
        reply.note = "".join(_texts(parts))
    return [shown for part in parts if (shown := _shown(part)) is not None] if kind == "status-update" else []


def _asks(part: Any) -> list[Ask]:
    """What a part asks. A call that waits for another agent asks what that agent waits for."""
    data = part.get("data") if isinstance(part, Mapping) else None
    if not isinstance(data, Mapping) or data.get("name") != _CONFIRMATION:
        return []
    args = data.get("args") or {}
    confirmation = args.get("toolConfirmation") or {}
    payload = confirmation.get("payload")
    inner = payload.get("hitl_parts") if isinstance(payload, Mapping) else None
    if isinstance(inner, list) and inner:
        below = [_ask(one, one, one) for one in inner if isinstance(one, Mapping)]
        return [ask for ask in below if ask is not None]
    ask = _ask(data, args, confirmation)
    return [ask] if ask is not None else []


def _ask(data: Mapping[str, Any], args: Mapping[str, Any], confirmation: Mapping[str, Any]) -> Ask | None:
    call = args.get("originalFunctionCall") or {}
    name = str(call.get("name") or "")
    identity = str(call.get("id") or data.get("id") or "")
    return Ask(identity, name, call.get("args"), str(confirmation.get("hint") or "")) if identity else None


def _shown(part: Any) -> Shown | None:
    if not isinstance(part, Mapping) or not isinstance(part.get("data"), Mapping):
        return None
    metadata, data = part.get("metadata") or {}, part["data"]
    kind = metadata.get("adk_type") or metadata.get("kagent_type")
    if data.get("name") == _CONFIRMATION:
        return None
    if kind == "function_call":
        return Shown(str(data.get("name") or ""), data.get("args"), result=False)
    if kind == "function_response":
        response = data.get("response") or {}
        failed = isinstance(response, Mapping) and bool(response.get("isError"))
        value = response.get("result", response) if isinstance(response, Mapping) else response
        return Shown(str(data.get("name") or ""), value, result=True, is_error=failed)
    return None


def _texts(parts: Any) -> list[str]:
    return [str(part["text"]) for part in parts or [] if isinstance(part, Mapping) and "text" in part]
