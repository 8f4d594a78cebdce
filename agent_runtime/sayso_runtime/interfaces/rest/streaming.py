"""A run as server-sent events: each has its type as the event's name and inside its data. Lines end in LF.

    run_started     run_id, agent, session_id
    message_start, text_delta (content), message_end                                    each with a message_id
    tool_call_start (name), tool_call_args (delta), tool_call_end, tool_call_result     each with a tool_call_id
    run_paused, run_completed, run_cancelled     the run, as it would have been answered without a stream
    problem         the problem details, where the run gave nothing else

One of the last two rows ends every stream, and everything that was opened is closed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.boundaries import (
    Call,
    Result,
    Step,
    TextClosed,
    TextGrew,
    TextOpened,
)
from sayso_runtime.interfaces.rest import rendering
from sayso_runtime.messages import Task, TaskState

Event = dict[str, Any]
_ENDS = {TaskState.INPUT_REQUIRED: "run_paused", TaskState.CANCELED: "run_cancelled"}


def started(task: Task, agent: str) -> Event:
    """The first event."""
    return {"type": "run_started", "run_id": task.run_id, "agent": agent, "session_id": task.context_id}


def step(what: Step) -> Iterator[Event]:
    """What happens meanwhile."""
    match what:
        case TextOpened(message_id):
            yield {"type": "message_start", "message_id": message_id, "role": "assistant"}
        case TextGrew(message_id, text):
            yield {"type": "text_delta", "message_id": message_id, "content": text}
        case TextClosed(message_id):
            yield {"type": "message_end", "message_id": message_id}
        case Call(call_id, name, arguments):
            yield {"type": "tool_call_start", "tool_call_id": call_id, "name": name}
            yield {"type": "tool_call_args", "tool_call_id": call_id, "delta": arguments}
            yield {"type": "tool_call_end", "tool_call_id": call_id}
        case Result(call_id, name, content, is_error):
            yield {
                "type": "tool_call_result",
                "tool_call_id": call_id,
                "name": name,
                "content": content,
                "is_error": is_error,
            }


def ended(task: Task, agent: str) -> Event:
    """The last event of a run that did not fail."""
    return {"type": _ENDS.get(task.state, "run_completed"), **rendering.run(task, agent)}


def problem(document: dict[str, Any]) -> Event:
    """The last event of a run that gave nothing else. The problem's own type is a URI, so it is one level down."""
    return {"type": "problem", "problem": document}


def chunk(events: Iterable[Event]) -> bytes:
    """The events as they go over the wire."""
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + strict_json.dumps(event) + b"\n\n" for event in events
    )
