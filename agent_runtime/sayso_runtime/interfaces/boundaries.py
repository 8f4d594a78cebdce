"""A run's events as things that are opened and closed: texts and tool calls.

Clients that draw while they listen need to know where a text begins and ends, and of a call first its name, then its
arguments, then its result. One `Boundaries` follows one run and yields such steps in order; whatever a run does,
everything that was opened is closed before its end.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sayso_runtime.messages import (
    CONTINUE,
    OUTCOME_UNKNOWN,
    Artifact,
    AskPart,
    CallPart,
    Ended,
    ResultPart,
    RunEvent,
    Task,
    TaskState,
    TextDelta,
    ToolCalled,
    ToolReturned,
    text_of,
)


@dataclass(frozen=True, slots=True)
class TextOpened:
    message_id: str


@dataclass(frozen=True, slots=True)
class TextGrew:
    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TextClosed:
    message_id: str
    text: str  # all of it


@dataclass(frozen=True, slots=True)
class Call:
    """A call, told whole: opened, its arguments (JSON text), closed. `message_id`: the calls of one reply share it."""

    id: str
    name: str
    arguments: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a call returned, as text: JSON where it is not one already. Its call may be of an earlier run."""

    id: str
    name: str
    content: str
    is_error: bool


Step = TextOpened | TextGrew | TextClosed | Call | Result


@dataclass(slots=True)
class Boundaries:
    """See the module."""

    _open: str = ""
    _author: str = ""  # of the open text: another agent that was called, empty for this one
    _grown: list[str] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _called: set[str] = field(default_factory=set)

    def steps(self, event: RunEvent) -> Iterator[Step]:
        """What happens now. At the end: the rest of the text, and the calls that were asked about for the first time,
        which have no result yet."""
        match event:
            case TextDelta(text, author):
                if self._open and author != self._author:
                    yield from self.close()
                if not self._open:
                    self._open, self._author = uuid.uuid4().hex, author
                    yield TextOpened(self._open)
                self._grown.append(text)
                yield TextGrew(self._open, text)
            case ToolCalled(calls):
                yield from self.close()
                yield from self._calls(calls)
            case ToolReturned(results):
                yield from self.close()
                for result in results:
                    yield Result(result.id, result.name, _text(result), result.is_error)
            case Ended(task):
                yield from self.close()
                yield from self._whole(answer_of(task))
                yield from self._calls(_newly_asked(task))

    def close(self) -> Iterator[Step]:
        """Closes what is open."""
        if self._open:
            text = "".join(self._grown)
            yield TextClosed(self._open, text)
            if not self._author:
                self._texts.append(text)
            self._open = ""
            self._grown.clear()

    def _whole(self, text: str) -> Iterator[Step]:
        """A text that was not told piece by piece."""
        if text and text not in (*self._texts[-1:], "\n".join(self._texts)):
            yield from self.steps(TextDelta(text))
            yield from self.close()

    def _calls(self, calls: tuple[CallPart, ...]) -> Iterator[Step]:
        message_id = uuid.uuid4().hex
        for call in calls:
            if call.id not in self._called:
                self._called.add(call.id)
                yield Call(call.id, call.name, json.dumps(call.arguments, ensure_ascii=False), message_id)


def answer_of(task: Task) -> str:
    """The answer of a task, or what the model has said so far."""
    last: Artifact | None = task.artifacts[-1] if task.artifacts else None
    if task.state is TaskState.INPUT_REQUIRED:
        return task.said
    if last is not None:
        return text_of(last.parts)
    return text_of(task.status.parts) if task.status else task.said


def _newly_asked(task: Task) -> tuple[CallPart, ...]:
    """Calls that wait and that no earlier stop of the task has asked about."""
    now = task.status.message_id if task.status else ""
    before = {
        (part.interruption.pause_id, part.interruption.id)
        for message in task.history
        if message.message_id != now
        for part in message.parts
        if isinstance(part, AskPart)
    }
    return tuple(
        CallPart(one.id, one.name, one.arguments)
        for one in task.interruptions
        if one.name not in (CONTINUE, OUTCOME_UNKNOWN) and (one.pause_id, one.id) not in before
    )


def _text(result: ResultPart) -> str:
    response: Any = result.response
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False, default=str)
