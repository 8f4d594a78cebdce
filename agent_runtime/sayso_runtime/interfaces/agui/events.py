"""A run in AG-UI's events. One `Telling` follows one run.

A pause ends the run: the calls that wait were started and closed, a snapshot of the conversation holds them, and the
run finishes with one interrupt for each thing that waits. Their results come in the run that answers them, under the
ids that they have had from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    BaseEvent,
    FunctionCall,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from sayso_runtime import tasks
from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.boundaries import (
    Boundaries,
    Call,
    Result,
    Step,
    TextClosed,
    TextGrew,
    TextOpened,
    answer_of,
)
from sayso_runtime.interfaces.problems import kind
from sayso_runtime.messages import CONTINUE, OUTCOME_UNKNOWN, Ended, Interruption, RunEvent, Task, TaskState
from sayso_runtime.nested import spread

_VERDICT: dict[str, Any] = {"approved": {"type": "boolean"}, "reason": {"type": "string"}}


class Telling:
    """See the module. `given`: the run's input, whose messages the snapshot begins with."""

    def __init__(self, given: RunAgentInput) -> None:
        self._ids = {"thread_id": given.thread_id, "run_id": given.run_id}
        self._messages: list[Message] = list(given.messages)
        self._boundaries = Boundaries()

    def started(self) -> BaseEvent:
        """The first event of a run that was taken up."""
        return RunStartedEvent(**self._ids)

    def events(self, event: RunEvent) -> Iterator[BaseEvent]:
        """What happens after the beginning; the last event ends the run."""
        for step in self._boundaries.steps(event):
            self._remember(step)
            yield from _step(step)
        if isinstance(event, Ended):
            yield from self._end(event.task)

    def broken(self, problem: dict[str, Any]) -> Iterator[BaseEvent]:
        """The end of a run that cannot go on: what is open is closed, and the rest of the problem is in words, as the
        protocol has no fields for it."""
        for step in self._boundaries.close():
            yield from _step(step)
        yield error(problem)

    def _end(self, task: Task) -> Iterator[BaseEvent]:
        match task.state:
            case TaskState.INPUT_REQUIRED:
                waiting = spread(task.interruptions)
                self._hold(waiting)
                yield MessagesSnapshotEvent(messages=self._messages)
                outcome = RunFinishedInterruptOutcome(interrupts=[_interrupt(one) for one in waiting])
                yield RunFinishedEvent(**self._ids, outcome=outcome)
            case TaskState.CANCELED:
                yield RunFinishedEvent(**self._ids, outcome=RunFinishedCancelledOutcome())
            case TaskState.FAILED:
                yield RunErrorEvent(message=answer_of(task), code="model_failed")
            case _:
                yield RunFinishedEvent(**self._ids)

    def _remember(self, step: Step) -> None:
        match step:
            case TextClosed(message_id, text):
                self._messages.append(AssistantMessage(id=message_id, content=text))
            case Call():
                self._call(step)
            case Result(call_id, _, content, is_error):
                more = {"error": content} if is_error else {}
                told = ToolMessage(id=_result_id(call_id), tool_call_id=call_id, content=content, **more)
                self._messages.append(told)

    def _call(self, call: Call) -> None:
        made = ToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments))
        last = self._messages[-1] if self._messages else None
        if isinstance(last, AssistantMessage) and last.id == call.message_id and last.tool_calls is not None:
            last.tool_calls.append(made)
        else:
            self._messages.append(AssistantMessage(id=call.message_id, tool_calls=[made]))

    def _hold(self, interruptions: Iterable[Interruption]) -> None:
        """The snapshot holds every call that waits, also one that the client did not send along."""
        made = [message.tool_calls or () for message in self._messages if isinstance(message, AssistantMessage)]
        known = {call.id for calls in made for call in calls}
        for one in interruptions:
            if _is_call(one) and one.id not in known:
                self._call(Call(one.id, one.name, strict_json.dumps(one.arguments).decode(), f"{one.id}-asked"))


def error(problem: dict[str, Any]) -> BaseEvent:
    """A problem document as the end of a run."""
    message = str(problem["detail"])
    if "decidedAt" in problem:
        message += f" (at {problem['decidedAt']})"
    waiting = problem.get("interruptions") or ()
    if waiting:
        message += " Open: " + ", ".join(f"{one['id']} ({one['tool_name']})" for one in waiting) + "."
    return RunErrorEvent(message=message, code=str(problem["code"]))


def chunk(events: Iterable[BaseEvent]) -> bytes:
    """The events as they go over the wire: as the package's encoder lays them out, but for halves of characters in a
    model's text, over which it fails."""
    return b"".join(b"data: " + strict_json.dumps(event.model_dump(by_alias=True)) + b"\n\n" for event in events)


def _step(step: Step) -> Iterator[BaseEvent]:
    match step:
        case TextOpened(message_id):
            yield TextMessageStartEvent(message_id=message_id, role="assistant")
        case TextGrew(message_id, text):
            yield TextMessageContentEvent(message_id=message_id, delta=text)
        case TextClosed(message_id):
            yield TextMessageEndEvent(message_id=message_id)
        case Call(call_id, name, arguments, message_id):
            yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, parent_message_id=message_id)
            yield ToolCallArgsEvent(tool_call_id=call_id, delta=arguments)
            yield ToolCallEndEvent(tool_call_id=call_id)
        case Result(call_id, _, content):
            yield ToolCallResultEvent(
                message_id=_result_id(call_id), tool_call_id=call_id, content=content, role="tool"
            )


def _result_id(call_id: str) -> str:
    return f"{call_id}-result"


def _is_call(one: Interruption) -> bool:
    return one.name not in (CONTINUE, OUTCOME_UNKNOWN)


def _interrupt(one: Interruption) -> Interrupt:
    return Interrupt(
        id=one.id,
        reason=kind(one),
        message=one.hint,
        tool_call_id=one.id if _is_call(one) else None,
        response_schema=_schema(one),
        expires_at=tasks.stamp(one.expires_at) if one.expires_at else None,
    )


def _schema(one: Interruption) -> dict[str, Any]:
    """What an answer to it looks like. An unknown outcome can be told instead of being decided."""
    if kind(one) == "input_required":
        return {"description": "the value that is wanted"}
    properties = {**_VERDICT, "result": {}} if one.name == OUTCOME_UNKNOWN else _VERDICT
    return {"type": "object", "properties": properties, "required": ["approved"], "additionalProperties": False}
