"""Carrying out one turn of a session: from the fenced take to the one commit that ends it.

A turn either starts with a message, or carries out what was decided. Both end the same way (`_finish`): everything that
happened (events, a new pause, told calls, the task) is stored in one atomic step, and only then does the client hear.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from sayso_approvals.digest import canonical, digest
from sayso_approvals.forwarding import carried, distinct
from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import AgentId, CallView, Commit, Kind, Pause, PausedCall, TaskWrite, Turn, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime import tasks
from sayso_runtime.engine.api import Called, Engine, EngineEvent, ModelFailed, Returned, Scope, Spoken
from sayso_runtime.messages import (
    Began,
    Ended,
    Interruption,
    Message,
    Part,
    RunEvent,
    Task,
    TaskState,
    TextDelta,
    ToolCalled,
    ToolReturned,
    task_from_json,
    task_to_json,
)

log = logging.getLogger(__name__)

Emit = Callable[[RunEvent], None]


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the agent's configuration says about turns."""

    agent: AgentId
    timeout_seconds: float
    on_timeout: str


class Turns:
    """Runs turns of one agent on this replica."""

    def __init__(self, ledger: Ledger, engine: Engine, settings: TurnSettings, *, lease_seconds: float) -> None:
        self._ledger = ledger
        self._engine = engine
        self._settings = settings
        self._lease = lease_seconds

    @property
    def engine_name(self) -> str:
        """The framework that pauses of this agent belong to."""
        return self._engine.capabilities.name

    # --- a message

    async def begin_message(self, turn: Turn, task: Task, parts: Sequence[Part], emit: Emit, message_id: str) -> Task:
        """Runs the model on a new message. `task` is new, and was stored when the turn was taken."""
        scope = Scope(turn, self._ledger)
        emit(Began(task))
        return await self._drive(scope, task, self._engine.start(scope, parts), emit, message_id)

    # --- what was decided

    async def carry_out(
        self,
        turn: Turn,
        claimed: Sequence[CallView],
        emit: Emit,
        *,
        message: Message | None = None,
        message_id: str = "",
        cancelled: bool = False,
    ) -> Task:
        """Resumes the run whose calls were claimed. `cancelled`: the client cancelled the task as a whole."""
        scope = Scope(turn, self._ledger, claimed={view.call.call_id: view for view in claimed})
        task = await self.load(claimed[0].pause.task_id, turn)
        task = tasks.working(task, self._now(turn), message)
        emit(Began(task))
        questions = [view for view in claimed if view.call.kind is Kind.CONTINUE]
        for view in questions:
            scope.told.add(view.call.call_id)
        if questions and len(questions) == len(scope.claimed):
            return await self._continue(scope, task, questions[0], emit, message_id, cancelled=cancelled)
        return await self._drive(scope, task, self._engine.resume(scope), emit, message_id, cancelled=cancelled)

    async def _continue(
        self, scope: Scope, task: Task, question: CallView, emit: Emit, message_id: str, *, cancelled: bool
    ) -> Task:
        verdict = question.state.verdict
        if verdict is not None and verdict.verdict is Verdict.APPROVED:
            return await self._drive(scope, task, self._engine.proceed(scope), emit, message_id, cancelled=cancelled)
        who = verdict.by if verdict else "nobody"
        why = f": {verdict.reason}" if verdict and verdict.reason else ""
        ended = tasks.failed(
            task, f"Ended by {who} after the model had failed{why}", self._now(scope.turn), state=TaskState.CANCELED
        )
        try:
            return await self._commit(scope, ended, emit, message_id)
        except (TurnLost, Refusal) as error:
            await self._stopped(scope, error)
            raise

    # --- a turn whose holder died

    async def bury(self, turn: Turn, task_id: str | None, *, release: bool = True) -> None:
        """Ends what a dead replica left; nothing of it can be claimed.

        A message's task fails: sending the message again is the way on. A task that had paused, and of which nothing is
        open any more, was cut off after a decision was carried out: that is kept, and it asks whether to go on.
        """
        task = await self.load(task_id) if task_id is not None else None
        why = "The agent stopped while it worked on this. What it had started may or may not have taken effect."
        waiting = any(view.pause.task_id == task_id for view in turn.calls)
        if task is not None and task.state in (TaskState.WORKING, TaskState.SUBMITTED):
            task = tasks.failed(task, why, self._now(turn))
            write = TaskWrite(task.id, task.version, task_to_json(task), task.state.value)
            await self._ledger.commit(turn, Commit(task=write, release=release))
        elif release and task is not None and task.state is TaskState.INPUT_REQUIRED and not waiting:
            question = _continue_question("the agent stopped before the model had answered", why, {})
            await self._finish(Scope(turn, self._ledger, asks={question.call_id: question}), task, [], [], _nobody, "")
        elif release:
            await self._ledger.release(turn)

    async def load(self, task_id: str, turn: Turn | None = None) -> Task:
        """The stored task: as it was when the turn was taken, if that was asked for. Raises `not_found`."""
        if turn is not None and turn.task is not None:
            task = task_from_json(turn.task[1], turn.task[0])
            if task.id == task_id:
                return task
        stored = await self._ledger.task(task_id)
        if stored is None:
            raise Refusal("not_found", f"task {task_id} does not exist", ids=(task_id,))
        version, document = stored
        return task_from_json(document, version)

    # --- the one way through a turn

    async def _drive(
        self,
        scope: Scope,
        task: Task,
        events: AsyncIterator[EngineEvent],
        emit: Emit,
        message_id: str,
        *,
        cancelled: bool = False,
    ) -> Task:
        said: list[str] = []
        answer: list[str] = []
        failure: Exception | None = None
        scope.path = tasks.path_of(task)
        scope.show = lambda author, text: emit(TextDelta(text, author))
        renewal = asyncio.create_task(self._keep(scope.turn))
        try:
            try:
                async for event in events:
                    _show(event, emit, said, answer)
            except (TurnLost, Refusal):
                raise
            except Exception as error:
                failure = error
                if not isinstance(error, ModelFailed):
                    log.exception("the turn of session %s failed", scope.turn.session_id)
            await self._open_dropped(scope, failure)
            if failure is not None:
                return await self._failed(scope, task, failure, emit)
            return await self._finish(scope, task, said, answer, emit, message_id, cancelled=cancelled)
        except (TurnLost, Refusal) as error:
            await self._stopped(scope, error)
            raise
        finally:
            renewal.cancel()

    async def _stopped(self, scope: Scope, error: TurnLost | Refusal) -> None:
        """The turn cannot go on, and raises what its client hears. What is stored stays.

        A call that the refusal names, and that was certainly not started, is open again; other decided calls are taken
        up again by themselves.
        """
        self._engine.forget(scope)
        session_id = scope.turn.session_id
        if isinstance(error, TurnLost):
            advice = "it goes on by itself: look at the task again" if scope.claimed else "send the message again"
            raise Refusal("busy", f"the turn of session {session_id} was lost to its lease; {advice}") from error
        if error.code == "store_unreachable":
            return
        try:
            for call_id, view in scope.claimed.items():
                if call_id in error.ids and call_id not in scope.begun:
                    await self._ledger.reopen(scope.turn, view, error.detail)
            await self._ledger.release(scope.turn)
        except (TurnLost, Refusal) as further:
            log.warning("the turn of session %s could not be given back: %s", session_id, further)

    async def _open_dropped(self, scope: Scope, failure: Exception | None) -> None:
        """Deals with answers that the engine did not consume, so that none is lost and none is tried for ever.

        An approval that nothing came of is open again and says so. Where the tool ran, or was never to run, nothing is
        left to decide: the call is done, though the model was not told. A run that was cut off is an unknown outcome.
        """
        handled = scope.told | set(scope.doubts) | set(scope.unsent)
        for call_id, view in scope.claimed.items():
            if call_id in handled:
                continue
            verdict = view.state.verdict
            if call_id in scope.finished or (verdict and verdict.verdict is not Verdict.APPROVED and failure is None):
                log.warning("call %s of session %s is done, but the model was not told", call_id, scope.turn.session_id)
                scope.told.add(call_id)
            elif call_id in scope.begun:
                why = "it was cut off while it ran"
                await self._ledger.doubt(scope.turn, view, why)
                scope.doubts[call_id] = why
            else:
                why = str(failure) if failure else "the answer was not taken up where the call sits: decide again"
                log.warning("call %s of session %s is open again: %s", call_id, scope.turn.session_id, why)
                await self._ledger.reopen(scope.turn, view, why)

    async def _failed(self, scope: Scope, task: Task, failure: Exception, emit: Emit) -> Task:
        reason = str(failure) if isinstance(failure, ModelFailed) else f"{type(failure).__name__}: {failure}"
        now = self._now(scope.turn)
        if not scope.ran and not scope.told and not scope.asks:
            left = await self._left(scope, ())
            if left:
                return await self._commit(scope, tasks.paused(task, left, now, text=reason), emit, "")
            return await self._commit(scope, tasks.failed(task, f"The model failed: {reason}", now), emit, "")
        carried_out: dict[str, str] = {}
        for call_id, view in scope.claimed.items():
            if view.call.kind is Kind.CONTINUE:  # what was carried out before an earlier failure still counts
                carried_out |= json.loads(view.call.payload) or {}
            if view.state.verdict is not None:
                carried_out |= carried(view) | {call_id: view.state.verdict.verdict.value}
        hint = f"The model failed after a tool had run: {reason}. Its result is kept. Go on?"
        question = _continue_question(reason, hint, carried_out)
        scope.asks[question.call_id] = question
        return await self._finish(scope, task, [], [], emit, "")

    async def _finish(
        self,
        scope: Scope,
        task: Task,
        said: list[str],
        answer: list[str],
        emit: Emit,
        message_id: str,
        *,
        cancelled: bool = False,
    ) -> Task:
        now = self._now(scope.turn)
        pause: Pause | None = None
        if scope.asks:
            scope.asks = distinct(scope.asks, (view for view in scope.turn.calls if view.open))
            pause = Pause(
                pause_id=uuid.uuid4().hex,
                agent=self._settings.agent,
                session_id=scope.turn.session_id,
                task_id=task.id,
                engine=self._engine.capabilities.name,
                requester=scope.turn.requester,
                opened_at=now,
                expires_at=now + self._settings.timeout_seconds,
                calls=tuple(scope.asks.values()),
                on_timeout=self._settings.on_timeout,
                path=scope.path,
            )
        new = tuple(tasks.asked(pause, call) for call in pause.calls) if pause else ()
        left = await self._left(scope, new)
        if left:
            task = tasks.paused(task, left, now, said=said)
        elif self._undelivered(scope):
            task = tasks.working(task, now)
        else:
            text = "\n".join(answer or said[-1:])
            state = TaskState.CANCELED if cancelled else TaskState.COMPLETED
            task = tasks.answered(task, text, now, state=state)
        return await self._commit(scope, task, emit, message_id, pause)

    @staticmethod
    def _undelivered(scope: Scope) -> bool:
        """Whether something is decided that this turn did not carry out: then there is no answer yet."""
        return any(
            not view.open
            and not view.doubtful
            and view.call.call_id not in scope.told
            and view.pause.session_id == scope.turn.session_id
            for view in scope.turn.calls
        )

    async def _left(self, scope: Scope, new: tuple[Interruption, ...]) -> tuple[Interruption, ...]:
        """What is open when this turn ends: what was open before and nobody carried out, and what is new."""
        told = {(view.pause.pause_id, call_id) for call_id, view in scope.claimed.items() if call_id in scope.told}
        views = scope.turn.calls
        if scope.doubts or scope.unsent or len(told) < len(scope.claimed):
            views = (await self._ledger.resolve(scope.turn.session_id)).calls
        return (
            *(
                tasks.interruption(view)
                for view in views
                if (view.open or view.doubtful) and (view.pause.pause_id, view.call.call_id) not in told
            ),
            *new,
        )

    async def _commit(self, scope: Scope, task: Task, emit: Emit, message_id: str, pause: Pause | None = None) -> Task:
        document = task_to_json(task)
        commit = Commit(
            events=tuple(scope.events),
            pause=pause,
            completions=scope.completions(),
            task=TaskWrite(task.id, task.version, document, task.state.value),
            answers={message_id: document} if message_id else {},
            release=True,
        )
        await self._ledger.commit(scope.turn, commit)
        scope.events.clear()
        self._engine.committed(scope)
        task = replace(task, version=task.version + 1)
        emit(Ended(task))
        return task

    async def _keep(self, turn: Turn) -> None:
        """Renews the lease until cancelled. A renewal that fails changes nothing: the deadline passes by itself."""
        while True:
            await asyncio.sleep(self._lease / 3)
            try:
                await self._ledger.renew(turn)
            except TurnLost:
                return
            except Refusal as error:
                log.warning("the lease of session %s could not be renewed: %s", turn.session_id, error.detail)

    @staticmethod
    def _now(turn: Turn) -> float:
        return time.time() + turn.clock_offset


def _continue_question(reason: str, hint: str, carried_out: dict[str, str]) -> PausedCall:
    """Sayso's own question whether to call the model again; `carried_out` are verdicts that must not be asked twice."""
    arguments = {"reason": reason}
    return PausedCall(
        call_id=f"continue-{uuid.uuid4().hex[:12]}",
        kind=Kind.CONTINUE,
        server="sayso",
        endpoint="",
        tool="sayso_continue",
        alias="sayso_continue",
        arguments=canonical(arguments),
        digest=digest("sayso", "", "sayso_continue", arguments),
        hint=hint,
        payload=json.dumps(carried_out),
    )


def _nobody(event: RunEvent) -> None:
    """Where nobody listens."""
    del event


def _show(event: EngineEvent, emit: Emit, said: list[str], answer: list[str]) -> None:
    match event:
        case Spoken(text, partial, final):
            if partial:
                emit(TextDelta(text))
            else:
                said.append(text)
                if final:
                    answer.append(text)
        case Called(calls):
            emit(ToolCalled(calls))
        case Returned(results):
            emit(ToolReturned(results))
