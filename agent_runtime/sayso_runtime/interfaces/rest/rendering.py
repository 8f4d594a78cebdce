"""A task as REST clients see it. Pure."""

from __future__ import annotations

from typing import Any

from sayso_approvals.refusals import Refusal
from sayso_runtime import tasks
from sayso_runtime.interfaces.boundaries import answer_of
from sayso_runtime.interfaces.problems import interruption
from sayso_runtime.messages import CONTINUE, Task, TaskState
from sayso_runtime.nested import spread

STATUS = {
    TaskState.SUBMITTED: "RUNNING",
    TaskState.WORKING: "RUNNING",
    TaskState.INPUT_REQUIRED: "PAUSED",
    TaskState.COMPLETED: "COMPLETED",
    TaskState.FAILED: "FAILED",
    TaskState.CANCELED: "CANCELLED",
}


def run(task: Task, agent: str) -> dict[str, Any]:
    """`result` is the answer, the text so far where it waits, and why where it failed. `interruptions` are there only
    where it waits."""
    document: dict[str, Any] = {
        "status": STATUS[task.state],
        "run_id": task.run_id,
        "agent": agent,
        "session_id": task.context_id,
        "result": answer_of(task),
        "created_at": tasks.stamp(task.created_at),
        "updated_at": tasks.stamp(task.at),
    }
    if task.state is TaskState.INPUT_REQUIRED:
        document["interruptions"] = [interruption(one) for one in spread(task.interruptions)]
    return document


def status_of(task: Task) -> int:
    """The HTTP status of a run that ended well, or that waits."""
    return 202 if task.state is TaskState.INPUT_REQUIRED else 200


def model_failed(task: Task, agent: str) -> Refusal | None:
    """The refusal that goes out where the model gave no answer, None where it did."""
    extra: dict[str, Any] = {"run_id": task.run_id, "agent": agent, "session_id": task.context_id}
    if task.state is TaskState.FAILED:
        return Refusal("model_failed", f"{answer_of(task)} Send the message again.", extra=extra)
    failed = [one for one in task.interruptions if one.name == CONTINUE]
    if not failed:
        return None
    extra["interruptions"] = [interruption(one) for one in spread(task.interruptions)]
    why = "; ".join(str(one.arguments.get("reason", "")) for one in failed)
    return Refusal(
        "model_failed",
        f"The model failed after a tool had run: {why}. What ran is kept: send the same decisions again to go on.",
        ids=tuple(one.id for one in failed),
        extra=extra,
    )
