"""`RunService`: the one core behind every door.

It accepts a message or a decision, says no before anything is changed where it has to, and lets the rest happen in a
task of its own, so that a client that leaves loses nothing. Where a rule is about what is pending, `decisions.py` has
it; where it is about a turn, `turns.py`.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from sayso_approvals.ledger import ELSEWHERE, Choice, Ledger, Place, Resolution
from sayso_approvals.records import CallView, Journal, TaskWrite, Turn, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime import logs, lookups, tasks
from sayso_runtime.decisions import Plan, became, plan
from sayso_runtime.messages import (
    Began,
    Ended,
    Inbound,
    Message,
    RunEvent,
    Task,
    TaskState,
    task_from_json,
    task_to_json,
)
from sayso_runtime.runs import LiveRun, guarded, nothing_to_clear, replay
from sayso_runtime.turns import Turns

log = logging.getLogger(__name__)

#: How often a message that came twice looks for the answer of its first arrival.
SAME_MESSAGE_SECONDS = 0.05

#: Verdicts that something is to come of, on the engine and the servers that the call was made with.
_CARRIED_OUT = (Verdict.APPROVED, Verdict.ANSWERED)

Observer = Callable[[str, float], None]
Reachable = Callable[[Sequence[CallView]], Awaitable[None]]


async def _everything_reachable(views: Sequence[CallView]) -> None:
    del views


class RunService:
    """See the module, and `service_api.Service` for what doors may ask."""

    def __init__(
        self,
        ledger: Ledger,
        turns: Turns,
        *,
        while_paused: str = "Refuse",
        reachable: Reachable = _everything_reachable,
        ready: Callable[[], Awaitable[Sequence[str]]] | None = None,
        observe: Observer = lambda what, seconds: None,
        on_decision: Callable[[str], None] = lambda verdict: None,
    ) -> None:
        self._ledger = ledger
        self._turns = turns
        self._while_paused = while_paused
        self._reachable = reachable
        self._ready = ready
        self._observe = observe
        self._on_decision = on_decision
        self._live: dict[tuple[str, str], LiveRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._draining = False

    # --- what doors ask

    async def send(self, inbound: Inbound) -> LiveRun:
        """Accepts a message or a decision. Raises `Refusal` before anything is changed."""
        if self._draining:
            raise Refusal("busy", "this replica is stopping: send it again, another one takes it")
        if not inbound.parts:
            raise Refusal("malformed_decision", "the message has no parts: send a text or a decision")
        if inbound.run_id is not None:
            inbound = replace(inbound, task_id=tasks.task_of(inbound.run_id))
        session_id = await self._session_of(inbound)
        key = (session_id, inbound.message_id)
        if inbound.message_id and key in self._live:
            return self._live[key]
        found = await self._ledger.resolve(session_id, message_id=inbound.message_id, task_id=inbound.task_id or "")
        if inbound.message_id and key in self._live:  # it came twice while we were reading
            return self._live[key]
        if found.requester is not None and found.requester != inbound.requester:
            raise Refusal("not_found", f"session {session_id} does not exist")
        if found.answer is not None:
            return replay(task_from_json(found.answer, 0))
        task = _named(inbound, session_id, found)
        if inbound.decision is not None:
            return await self._decide(inbound, session_id, found, task)
        return await self._message(inbound, session_id, found, task)

    async def _session_of(self, inbound: Inbound) -> str:
        if inbound.context_id is not None:
            return inbound.context_id
        if inbound.task_id is not None:
            return (await self.get(inbound.task_id, requester=inbound.requester)).context_id
        if inbound.decision is not None:
            raise Refusal(
                "not_found", "a decision names its task (taskId) or its session (contextId); this one names neither"
            )
        return uuid.uuid4().hex

    async def get(self, task_id: str, *, requester: str) -> Task:
        """The task as it is stored."""
        task = await self._turns.load(task_id)
        if task.requester != requester:
            raise Refusal("not_found", f"task {task_id} does not exist", ids=(task_id,))
        return task

    async def run(self, run_id: str, *, requester: str) -> Task:
        """The task that a run id belongs to, as it is stored."""
        return await lookups.run(self._turns, run_id, requester)

    async def pauses(
        self, *, requester: str, after: Place | None = None, limit: int = 50
    ) -> tuple[list[Task], Place | None]:
        """The requester's tasks with something to decide, oldest first, and where to go on."""
        return await lookups.pauses(self._ledger, self._turns, requester, after, limit)

    async def cancel(self, task_id: str, *, requester: str) -> Task:
        """Cancels what is pending in the task and waits until the model has been told."""
        task = await self.get(task_id, requester=requester)
        if task.state is not TaskState.INPUT_REQUIRED:
            raise Refusal(
                "already_decided" if task.state.terminal else "busy",
                f"task {task_id} is {task.state.value}: only a paused task can be cancelled",
                ids=(task_id,),
            )
        found = await self._ledger.resolve(task.context_id)
        views = [view for view in found.calls if view.pause.task_id == task_id and view.open]
        if not views:
            raise became(found.last, "nothing of it is waiting")
        decision_id = uuid.uuid4().hex
        await self._ledger.decide(
            [_choice(view, Verdict.CANCELLED) for view in views],
            by=requester,
            via="chat",
            decision_id=decision_id,
            resumes=True,
        )
        run = LiveRun(task, lambda: self._ledger.answered(task.context_id, decision_id))
        self._spawn(run, self._carry_out(run, task.context_id, requester, None, "", cancelled=True))
        try:
            return await run.result()
        finally:
            await run.answered()

    async def ready(self) -> Sequence[str]:
        """Reasons why the agent is not ready."""
        if self._draining:
            return ["the agent is stopping"]
        return await self._ready() if self._ready else []

    # --- a message

    async def _message(self, inbound: Inbound, session_id: str, found: Resolution, task: Task | None) -> LiveRun:
        waiting = _waiting(found.calls)
        if waiting and not (self._while_paused == "CancelPause" and all(view.open for view in waiting)):
            return replay(await self._turns.load(waiting[0].pause.task_id))
        if task is not None and task.state.terminal:
            raise Refusal(
                "not_found",
                f"task {task.id} has ended ({task.state.value}): send the message without a task id",
                ids=(task.id,),
            )
        now = time.time()
        message = Message(inbound.message_id or uuid.uuid4().hex, "user", inbound.parts, inbound.metadata, now)
        task_id = uuid.uuid4().hex
        fresh = Task(
            id=task_id,
            context_id=session_id,
            state=TaskState.WORKING,
            at=now,
            created_at=now,
            requester=inbound.requester,
            run_id=task_id,
            history=(message,),
        )
        run = LiveRun(fresh, nothing_to_clear)
        self._remember(run, session_id, inbound.message_id)
        self._spawn(run, self._run_message(run, inbound, fresh))
        return run

    async def _run_message(self, run: LiveRun, inbound: Inbound, fresh: Task) -> None:
        started = time.monotonic()
        session_id = fresh.context_id
        logs.bind(session=session_id, run=fresh.id)
        try:
            while True:
                turn = await self._ledger.take(
                    session_id,
                    requester=inbound.requester,
                    message_id=inbound.message_id,
                    begins=TaskWrite(fresh.id, 0, task_to_json(fresh), fresh.state.value),
                )
                if turn.answer is not None:  # it came twice, and the other one was quicker
                    await self._ledger.release(turn)
                    earlier = task_from_json(turn.answer, 0)
                    run.emit(Began(earlier))
                    run.emit(Ended(earlier))
                    return
                waiting = _waiting(turn.calls)
                if waiting and self._while_paused == "CancelPause" and all(view.open for view in waiting):
                    # This turn carries it out at once, so nothing of it is "being answered" to anybody else.
                    await self._ledger.decide(
                        [_choice(view, Verdict.SUPERSEDED) for view in waiting],
                        by=inbound.requester,
                        via="pause-cancelled",
                        decision_id=fresh.id,
                        resumes=True,
                    )
                    await self._ledger.answered(session_id, fresh.id)
                elif waiting:
                    await self._ledger.release(turn)
                    paused = await self._turns.load(waiting[0].pause.task_id)
                    run.emit(Began(paused))
                    run.emit(Ended(paused))
                    return
                claimed = await self._ledger.claim(turn) if turn.calls else []
                if claimed:  # decided, but not yet carried out: that comes first
                    superseded = any(v.state.verdict and v.state.verdict.verdict is Verdict.SUPERSEDED for v in claimed)
                    await self._turns.carry_out(turn, claimed, _nobody, cancelled=superseded)
                    continue
                if turn.dirty:  # whoever had the turn before died in it
                    await self._turns.bury(turn, turn.previous_task, release=False)
                begun = replace(fresh, version=1)
                ended = await self._turns.begin_message(turn, begun, inbound.parts, run.emit, inbound.message_id)
                if ended.state is TaskState.INPUT_REQUIRED:
                    self._observe("pause", time.monotonic() - started)
                return
        finally:
            self._forget(run, session_id, inbound.message_id)

    # --- a decision

    async def _decide(self, inbound: Inbound, session_id: str, found: Resolution, task: Task | None) -> LiveRun:
        if inbound.decision is None:
            raise ValueError("not a decision")
        if found.requester is None:
            raise Refusal("not_found", f"session {session_id} does not exist")
        shown = lookups.shown_at(inbound, task)
        # the same message has the same decision id wherever it arrives
        decision_id = f"message:{inbound.message_id}" if inbound.message_id else uuid.uuid4().hex
        try:
            what = plan(inbound.decision, found, inbound.task_id, shown)
        except Refusal as refusal:
            if (first := await self._first_answer(inbound, session_id, decision_id, refusal)) is not None:
                return first
            raise await lookups.exactly(self._ledger, self._turns, refusal, found, task) from None
        views = {(view.pause.pause_id, view.call.call_id): view for view in found.calls}
        for choice in what.choices:
            if choice.verdict in _CARRIED_OUT:
                await self._check(views[choice.pause_id, choice.call_id])
        if task is None:  # whatever can fail comes before writing
            task = await self._turns.load(next(iter(views.values())).pause.task_id)
        try:
            await self._write(what, inbound, decision_id)
        except Refusal as refusal:
            if (first := await self._first_answer(inbound, session_id, decision_id, refusal)) is not None:
                return first
            raise
        run = LiveRun(task, lambda: self._ledger.answered(session_id, decision_id))
        message = Message(inbound.message_id or uuid.uuid4().hex, "user", inbound.parts, inbound.metadata, time.time())
        self._remember(run, session_id, inbound.message_id)
        self._spawn(run, self._carry_out(run, session_id, inbound.requester, message, inbound.message_id))
        return run

    async def _first_answer(
        self, inbound: Inbound, session_id: str, decision_id: str, refusal: Refusal
    ) -> LiveRun | None:
        """The answer of the same message that is being answered on another replica, once it is there."""
        if not inbound.message_id or refusal.code != "already_decided":
            return None
        while await self._ledger.answering(session_id, decision_id):
            answer = await self._ledger.answer_to(session_id, inbound.message_id)
            if answer is not None:
                return replay(task_from_json(answer, 0))
            await asyncio.sleep(SAME_MESSAGE_SECONDS)
        answer = await self._ledger.answer_to(session_id, inbound.message_id)
        return replay(task_from_json(answer, 0)) if answer is not None else None

    async def _check(self, view: CallView) -> None:
        """Refuses what this agent cannot carry out: another engine's pause, an agent that is gone, a server away."""
        if view.pause.engine != self._turns.engine_name:
            raise Refusal(
                "engine_changed",
                f"{view.call.alias} paused on engine {view.pause.engine!r} and this agent runs on "
                f"{self._turns.engine_name!r}: only cancel it, or bring the former engine back",
                ids=(view.call.call_id,),
            )
        await self._reachable([view])

    async def _write(self, what: Plan, inbound: Inbound, decision_id: str) -> None:
        if what.choices:
            await self._ledger.decide(
                what.choices, by=inbound.requester, via=inbound.via, decision_id=decision_id, resumes=True
            )
            for choice in what.choices:
                self._on_decision(choice.verdict.value)
        for settlement in what.settlements:
            await self._ledger.settle(
                settlement.view.pause.pause_id,
                settlement.view.call.call_id,
                action=settlement.action,
                result=settlement.result,
                by=inbound.requester,
                reason=settlement.reason,
                attempt=settlement.view.state.attempt,
                decision_id=decision_id,
            )
            self._on_decision(settlement.action)

    async def _carry_out(
        self,
        run: LiveRun,
        session_id: str,
        requester: str,
        message: Message | None,
        message_id: str,
        *,
        cancelled: bool = False,
    ) -> None:
        started = time.monotonic()
        logs.bind(session=session_id, run=run.task.id)
        try:
            turn, claimed = await self._ledger.take_and_claim(session_id, requester=requester, task_id=run.task.id)
            if claimed:
                await self._turns.carry_out(
                    turn, claimed, run.emit, message=message, message_id=message_id, cancelled=cancelled
                )
                self._observe("resume", time.monotonic() - started)
                return
            await self._ledger.release(turn)  # somebody else carried it out meanwhile
            current = await self._turns.load(run.task.id)
            run.emit(Began(current))
            run.emit(Ended(current))
        finally:
            self._forget(run, session_id, message_id)

    # --- what happened while nobody was looking

    async def go_on(self, session_id: str) -> None:
        """Carries out what is decided in a session and ends what a dead replica left; used by the worker."""
        logs.bind(session=session_id)
        found = await self._ledger.resolve(session_id)
        if found.requester is None:
            return
        turn, claimed = await self._ledger.take_and_claim(session_id, requester=found.requester, any_requester=True)
        try:
            able, held_up = await self._able(turn, claimed)
            if able:
                await self._turns.carry_out(turn, able, _nobody)
            else:
                await self._turns.bury(turn, found.task_id if turn.dirty and not claimed else None)
        finally:
            await self._ledger.answered(session_id, ELSEWHERE)
        if held_up is not None:
            raise held_up

    async def _able(self, turn: Turn, claimed: Sequence[CallView]) -> tuple[list[CallView], Refusal | None]:
        """Those of the claimed calls that can be carried out now.

        What can never be carried out is open again, for somebody to cancel. What waits for its tool server stays
        decided; the refusal says so. Where the tool has run already, its stored result needs no server.
        """
        able: list[CallView] = []
        held_up: Refusal | None = None
        for view in claimed:
            verdict = view.state.verdict
            if verdict is not None and verdict.verdict in _CARRIED_OUT and view.state.journal is Journal.NONE:
                try:
                    await self._check(view)
                except Refusal as refusal:
                    if refusal.code == "tool_server_unreachable":
                        held_up = refusal
                    else:
                        await self._ledger.reopen(turn, view, refusal.detail)
                    continue
            able.append(view)
        if len(able) < len(claimed):
            turn.calls = (await self._ledger.resolve(turn.session_id)).calls
        return able, held_up

    def stop(self) -> None:
        """Takes nothing new from now on."""
        self._draining = True

    async def drain(self, seconds: float) -> None:
        """Takes nothing new and waits for what runs, at most `seconds`."""
        self.stop()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    # --- keeping runs

    def _spawn(self, run: LiveRun, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(guarded(run, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _remember(self, run: LiveRun, session_id: str, message_id: str) -> None:
        if message_id:
            self._live[session_id, message_id] = run

    def _forget(self, run: LiveRun, session_id: str, message_id: str) -> None:
        if self._live.get((session_id, message_id)) is run:
            del self._live[session_id, message_id]


def _named(inbound: Inbound, session_id: str, found: Resolution) -> Task | None:
    """The task that the message names. Raises `not_found`, or `malformed_decision` when it is of another session."""
    if inbound.task_id is None:
        return None
    task = task_from_json(found.task[1], found.task[0]) if found.task else None
    owner = (inbound.requester, session_id)
    if inbound.run_id is not None and (task is None or (task.requester, task.context_id) != owner):
        raise lookups.no_run(inbound.run_id)
    if task is None or task.requester != inbound.requester:
        raise Refusal("not_found", f"task {inbound.task_id} does not exist", ids=(inbound.task_id,))
    if task.context_id != session_id:
        raise Refusal(
            "malformed_decision",
            f"task {task.id} is not of context {session_id}: leave one of them out",
            ids=(task.id,),
        )
    return task


def _waiting(views: Sequence[CallView]) -> list[CallView]:
    """What a new message has to wait for: what is open or in doubt, and what was changed and can only be cancelled."""
    return [view for view in views if view.open or view.doubtful or not view.intact]


def _choice(view: CallView, verdict: Verdict) -> Choice:
    return Choice(view.pause.pause_id, view.call.call_id, view.call.digest, verdict)


def _nobody(event: RunEvent) -> None:
    del event
