"""Finding what is stored: a run by its id, a requester's pauses, and what became of a call.

Nothing here changes anything, and nothing is kept for it: run ids lead to their task, and a task's history says what
was asked at each of its stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sayso_approvals.ledger import Ledger, Place, Resolution
from sayso_approvals.refusals import Refusal
from sayso_runtime import nested, tasks
from sayso_runtime.decisions import became, knows
from sayso_runtime.messages import Inbound, Task, TaskState
from sayso_runtime.turns import Turns

PAUSES_AT_ONCE = 100  # looked at in one round trip when pauses are listed


def no_run(run_id: str) -> Refusal:
    """There is none, or it is not the caller's: nobody is told which."""
    return Refusal("not_found", f"run {run_id} does not exist", ids=(run_id,))


async def run(turns: Turns, run_id: str, requester: str) -> Task:
    """The task that a run id belongs to. Raises `not_found`."""
    try:
        task = await turns.load(tasks.task_of(run_id))
    except Refusal as refusal:
        if refusal.code != "not_found":
            raise
        raise no_run(run_id) from refusal
    if task.requester != requester or tasks.shown(task, run_id) is None:
        raise no_run(run_id)
    return task


def shown_at(inbound: Inbound, task: Task | None) -> Mapping[str, str] | None:
    """What the stop that a decision names did ask; None where it names none, or the task as a whole."""
    if inbound.run_id is None or task is None or inbound.run_id == task.id:
        return None
    shown = tasks.shown(task, inbound.run_id)
    if shown is None:
        raise no_run(inbound.run_id)
    return shown


async def pauses(
    ledger: Ledger, turns: Turns, requester: str, after: Place | None, limit: int
) -> tuple[list[Task], Place | None]:
    """The requester's tasks with something to decide, oldest first, as they are now; and where to go on, None at the
    end. Whoever's pauses they are, only `PAUSES_AT_ONCE` are looked at in one step."""
    found: list[Task] = []
    while True:
        page = await ledger.unfinished(after, PAUSES_AT_ONCE)
        for place, views in page:
            after = place
            waiting = [view for view in views if view.open or view.doubtful]
            if not waiting or waiting[0].pause.requester != requester:
                continue
            task = await turns.load(waiting[0].pause.task_id)
            interruptions = tuple(tasks.interruption(view) for view in waiting)
            found.append(replace(task, state=TaskState.INPUT_REQUIRED, interruptions=interruptions))
            if len(found) == limit:
                return found, after
        if len(page) < PAUSES_AT_ONCE:
            return found, None


async def exactly(ledger: Ledger, turns: Turns, refusal: Refusal, found: Resolution, task: Task | None) -> Refusal:
    """What became of a call that is no longer open, where the look at the session alone could not tell."""
    if refusal.code not in ("unknown_call", "already_decided", "not_found") or len(refusal.ids) != 1:
        return refusal
    name = refusal.ids[0]
    if task is None and found.task_id is not None:
        task = await turns.load(found.task_id)
    pause_id = (tasks.shown(task) or {}).get(name) if task is not None else None
    for view in await ledger.view(pause_id) if pause_id else ():
        if knows(view, name) and view.state.verdict is not None:
            exact = nested.late(view, name) or became(view, ids=(name,))
            exact.extra |= refusal.extra
            return exact
    return refusal
