"""What another agent answered over A2A 0.3, put together from whole tasks or from the elements of a stream.

    Garbage      the answer is not A2A, or not A2A that could be gone on with

Pure. Nothing here believes what it reads: every field may be missing, of another type, or of any size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

CONFIRMATION = "adk_request_confirmation"
#: States after which nothing comes by itself.
TERMINAL = frozenset({"completed", "failed", "canceled", "rejected"})
INPUT_REQUIRED = "input-required"
#: Calls that one pause of another agent may show.
MOST_CALLS = 256
LONGEST_ID = 256  # characters


class Garbage(Exception):  # noqa: N818  it says what came
    """What was answered makes no sense. The text says what."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Where the other agent stands. `stop` tells one pause of its task from the next. `calls` are those that wait
    there, in the form of `hitl_parts`, and those of agents below it in place of its own call of them."""

    task_id: str
    context_id: str
    state: str
    text: str
    stop: str = ""
    calls: tuple[dict[str, Any], ...] = ()

    @property
    def settled(self) -> bool:
        """Nothing more comes by itself."""
        return self.state in TERMINAL or self.state in (INPUT_REQUIRED, "auth-required")

    def moved(self, stop: str) -> bool:
        """It is settled, and not at the stop that was seen before."""
        return self.settled and not (self.state == INPUT_REQUIRED and self.stop == stop)


@dataclass(slots=True)
class Assembly:
    """Takes the results of one request in the order in which they come."""

    task_id: str = ""
    context_id: str = ""
    _state: str = "submitted"
    _message: Mapping[str, Any] = field(default_factory=dict)
    _artifacts: dict[str, list[str]] = field(default_factory=dict)
    _said: str = ""  # by a message that was sent instead of a task

    def take(self, result: Any) -> str:
        """One element. Returns the piece of text that the agent is just writing, if it is one. Raises `Garbage`."""
        if not isinstance(result, dict):
            raise Garbage("a result that is no object")
        match result.get("kind"):
            case "task":
                self._task(result)
            case "status-update":
                self._ids(result.get("taskId"), result.get("contextId"))
                return self._status(result.get("status"))
            case "artifact-update":
                self._artifact(result.get("artifact"), append=result.get("append") is True)
            case "message":
                self._ids(result.get("taskId"), result.get("contextId"))
                self._state, self._said = "completed", _text(result.get("parts"))
            case kind:
                raise Garbage(f"a result of the kind {str(kind)[:40]!r}")
        return ""

    @property
    def ended(self) -> bool:
        """The last state is one that nothing follows by itself."""
        return self._state in TERMINAL or self._state in (INPUT_REQUIRED, "auth-required")

    def reply(self) -> Reply:
        """What came of it. Raises `Garbage` for a pause whose calls cannot be named."""
        text = "\n".join("".join(pieces) for pieces in self._artifacts.values()) or self._said
        calls: tuple[dict[str, Any], ...] = ()
        if self._state == INPUT_REQUIRED:
            calls = tuple(_questions(self._message.get("parts")))
            if calls and not self.task_id:
                raise Garbage("a pause of a task without an id")
            if len(calls) > MOST_CALLS:
                raise Garbage(f"a pause of more than {MOST_CALLS} calls")
        return Reply(
            task_id=self.task_id,
            context_id=self.context_id,
            state=self._state,
            text=text or _text(self._message.get("parts")),
            stop=self._stop(calls),
            calls=calls,
        )

    def _stop(self, calls: tuple[dict[str, Any], ...]) -> str:
        given = self._message.get("messageId")
        if isinstance(given, str) and 0 < len(given) <= LONGEST_ID:
            return given
        return hashlib.sha256("\0".join(call["id"] for call in calls).encode()).hexdigest()[:32]

    def _task(self, task: Mapping[str, Any]) -> None:
        self._ids(task.get("id"), task.get("contextId"))
        self._artifacts.clear()
        artifacts = task.get("artifacts")
        for artifact in artifacts if isinstance(artifacts, list) else ():
            self._artifact(artifact, append=False)
        self._status(task.get("status"))

    def _ids(self, task_id: Any, context_id: Any) -> None:
        for given in (task_id, context_id):
            if given is not None and (not isinstance(given, str) or len(given) > LONGEST_ID):
                raise Garbage("an id that is not a short text")
        self.task_id = task_id or self.task_id
        self.context_id = context_id or self.context_id

    def _status(self, status: Any) -> str:
        state = status.get("state") if isinstance(status, dict) else None
        if not isinstance(state, str):
            raise Garbage("a status without a state")
        message = status.get("message")
        self._state = state
        self._message = message if isinstance(message, dict) else {}
        return _partial(self._message.get("parts")) if state == "working" else ""

    def _artifact(self, artifact: Any, *, append: bool) -> None:
        if not isinstance(artifact, dict):
            raise Garbage("an artifact that is no object")
        name, text = str(artifact.get("artifactId")), _text(artifact.get("parts"))
        if append and name in self._artifacts:
            self._artifacts[name].append(text)
        else:
            self._artifacts[name] = [text]


def _parts(parts: Any) -> Iterator[Mapping[str, Any]]:
    yield from (part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()


def _text(parts: Any) -> str:
    return "".join(
        part["text"] for part in _parts(parts) if part.get("kind") == "text" and isinstance(part.get("text"), str)
    )


def _partial(parts: Any) -> str:
    """The piece of an answer in progress: text that is marked so."""
    marked = []
    for part in _parts(parts):
        metadata = part.get("metadata")
        marks = metadata if isinstance(metadata, dict) else {}
        if marks.get("adk_partial") is True or marks.get("kagent_adk_partial") is True:
            marked.append(part)
    return _text(marked)


def _questions(parts: Any) -> Iterator[dict[str, Any]]:
    for part in _parts(parts):
        data = part.get("data")
        if part.get("kind") != "data" or not isinstance(data, dict) or data.get("name") != CONFIRMATION:
            continue
        args = data.get("args")
        asked = args if isinstance(args, dict) else {}
        confirmation = asked.get("toolConfirmation")
        said = confirmation if isinstance(confirmation, dict) else {}
        payload = said.get("payload")
        below = payload.get("hitl_parts") if isinstance(payload, dict) else None
        if isinstance(below, list) and below:
            for inner in below:
                yield _call(inner if isinstance(inner, dict) else {})
        else:
            metadata = part.get("metadata")
            kind = metadata.get("sayso_kind") if isinstance(metadata, dict) else None
            more = {"hint": said.get("hint"), "payload": payload, "kind": kind}
            yield _call({"id": data.get("id"), "originalFunctionCall": asked.get("originalFunctionCall"), **more})


def _call(given: Mapping[str, Any]) -> dict[str, Any]:
    """One waiting call as `hitl_parts` has it. Raises `Garbage`."""
    original = given.get("originalFunctionCall")
    if not isinstance(original, dict):
        raise Garbage("a question without its call")
    name, args = original.get("name"), original.get("args")
    id_, question = original.get("id"), given.get("id")
    for value in (name, id_, question):
        if not isinstance(value, str) or not value or len(value) > LONGEST_ID or not value.isprintable():
            raise Garbage("a question whose name and ids are not short texts")
    if args is not None and not isinstance(args, dict):
        raise Garbage("a question whose arguments are no object")
    call = {
        "name": CONFIRMATION,
        "id": question,
        "originalFunctionCall": {"name": name, "args": args or {}, "id": id_},
    }
    for key in ("hint", "kind"):
        if isinstance(given.get(key), str) and given[key]:
            call[key] = given[key]
    return call | ({"payload": given["payload"]} if given.get("payload") is not None else {})
