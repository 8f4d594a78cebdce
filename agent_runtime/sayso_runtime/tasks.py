"""Pure functions from what the ledger knows to what clients see."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sayso_approvals.forwarding import inner_calls
from sayso_approvals.records import CallView, Kind, Pause, PausedCall, expiry_of
from sayso_runtime.messages import (
    CONTINUE,
    OUTCOME_UNKNOWN,
    Artifact,
    AskPart,
    Interruption,
    Message,
    Part,
    Task,
    TaskState,
    TextPart,
)


def stamp(at: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def interruption(view: CallView) -> Interruption:
    """What a person is asked about a call that is open, or whose outcome is unknown."""
    if view.doubtful:
        return _outcome_question(view)
    note = view.state.note
    if not view.intact:
        note = "INTEGRITY: this record was changed after it was written. Do not believe it; it can only be cancelled"
    return asked(view.pause, view.call, note=note)


def asked(pause: Pause, call: PausedCall, note: str = "") -> Interruption:
    """The question of an open call."""
    hint = f"{call.hint} ({note})" if note else call.hint
    return Interruption(
        id=call.call_id,
        kind=Kind.CONFIRMATION if call.kind in (Kind.CONTINUE, Kind.FORWARD) else call.kind,
        confirmation_id=call.confirmation_id or call.call_id,
        name=CONTINUE if call.kind is Kind.CONTINUE else call.alias,
        arguments=json.loads(call.arguments),
        hint=hint,
        payload=None if call.kind is Kind.CONTINUE else json.loads(call.payload),
        server=call.server,
        tool=call.tool,
        digest=call.digest,
        gated_by=call.gated_by,
        opened_at=pause.opened_at,
        expires_at=expiry_of(pause, call),
        pause_id=pause.pause_id,
    )


def _outcome_question(view: CallView) -> Interruption:
    call = view.call
    arguments = {
        "tool": call.alias,
        "arguments": json.loads(call.arguments),
        "startedAt": stamp(view.state.started_at),
        "approve": "run it again",
        "reject": "leave it",
    }
    why = f": {view.state.note}" if view.state.note else ""
    return Interruption(
        id=view.outcome_id,
        kind=Kind.CONFIRMATION,
        confirmation_id=view.outcome_id,
        name=OUTCOME_UNKNOWN,
        arguments=arguments,
        hint=(
            f"outcome unknown: {call.alias} was started and nobody knows whether it took effect{why}. "
            "Look at its effects first. Approve runs it again, reject leaves it."
        ),
        server=call.server,
        tool=call.tool,
        digest=call.digest,
        gated_by=call.gated_by,
        opened_at=view.pause.opened_at,
        expires_at=view.expires_at,
        pause_id=view.pause.pause_id,
    )


def sentence(interruptions: Sequence[Interruption]) -> str:
    """One line that says what is waited for."""
    if not interruptions:
        return "Nothing is waiting."
    words = []
    for one in interruptions:
        if one.name == OUTCOME_UNKNOWN:
            words.append(f"outcome unknown of {one.arguments['tool']}")
        elif one.name == CONTINUE:
            words.append(f"the model failed ({one.arguments.get('reason', '')}): go on?")
        else:
            words.append(one.name)
    return f"Waiting for a say-so: {', '.join(words)}."


def new_message(role: str, parts: Iterable[Part], at: float) -> Message:
    """A message of ours, with an id of its own."""
    return Message(uuid.uuid4().hex, "user" if role == "user" else "agent", tuple(parts), {}, at)


def task_of(run_id: str) -> str:
    """The id of the task that a run id belongs to."""
    return run_id.partition("-")[0]


def shown(task: Task, run_id: str = "") -> dict[str, str] | None:
    """What was asked at a stop of the task (at any stop, for the task's own id or none): the id of each call, and of
    each confirmation, with its pause. None when the task never had such a run.

    The question of each stop stays in the history under the stop's run id, so nothing else has to be kept, and a run
    id that lies about its task finds nothing there.
    """
    found: dict[str, str] = {}
    known = run_id in ("", task.id)
    for message in task.history:
        asked_here = [part.interruption for part in message.parts if isinstance(part, AskPart)]
        if asked_here and run_id in ("", task.id, message.message_id):
            known = True
            for one in asked_here:
                for inner in inner_calls(one.payload):
                    found |= {inner.confirmation_id: one.pause_id, inner.id: one.pause_id}
                found |= {one.confirmation_id: one.pause_id, one.id: one.pause_id}
    return found if known else None


#: How many agents above this one a message may name, and how long each name may be.
MOST_ABOVE, LONGEST_NAME = 16, 256


def path_of(task: Task) -> tuple[str, ...]:
    """The agents above this one, as the message that began the task says. For people: it proves nothing."""
    given = task.history[0].metadata.get("sayso_path") if task.history else None
    names = given if isinstance(given, list) else []
    return tuple(name for name in names[:MOST_ABOVE] if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME)


def paused(
    task: Task, interruptions: Sequence[Interruption], at: float, *, text: str = "", said: Sequence[str] = ()
) -> Task:
    """The task waits. A fresh run id goes with every stop: it is the task's id and something of its own, and the id
    of the question in the history. `text`: what the question says first; `said`: what the model has said since."""
    parts: list[Part] = [AskPart(one) for one in interruptions]
    parts.append(TextPart("\n".join(t for t in (text, *said, sentence(interruptions)) if t)))
    run_id = f"{task.id}-{uuid.uuid4().hex[:8]}"
    status = Message(run_id, "agent", tuple(parts), {}, at)
    return replace(
        task,
        state=TaskState.INPUT_REQUIRED,
        at=at,
        status=status,
        history=(*task.history, status),
        interruptions=tuple(interruptions),
        run_id=run_id,
        said="\n".join(t for t in (task.said, *said) if t),
    )


def answered(task: Task, text: str, at: float, *, state: TaskState = TaskState.COMPLETED) -> Task:
    """The task has its answer."""
    parts = (TextPart(text),)
    reply = new_message("agent", parts, at)
    return replace(
        task,
        state=state,
        at=at,
        status=None,
        history=(*task.history, reply),
        artifacts=(*task.artifacts, Artifact(uuid.uuid4().hex, parts)),
        interruptions=(),
    )


def failed(task: Task, why: str, at: float, *, state: TaskState = TaskState.FAILED) -> Task:
    """The task ended without an answer."""
    status = new_message("agent", (TextPart(why),), at)
    return replace(task, state=state, at=at, status=status, history=(*task.history, status), interruptions=())


def working(task: Task, at: float, message: Message | None = None) -> Task:
    """The task goes on, after a message of the user if there is one."""
    history = (*task.history, message) if message else task.history
    return replace(task, state=TaskState.WORKING, at=at, status=None, history=history, interruptions=())
