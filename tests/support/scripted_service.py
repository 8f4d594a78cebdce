"""A service whose runs are written down beforehand, for tests of what doors put on the wire.

It keeps tasks in memory and follows a script: a message's text chooses the `Turn` to play, a decision plays the turn
that comes after the pause. It judges nothing; the rules about decisions have their own tests, with the real service.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from sayso_approvals.records import Kind
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import (
    Artifact,
    AskPart,
    Began,
    CallPart,
    Ended,
    Inbound,
    Interruption,
    Message,
    ResultPart,
    RunEvent,
    Task,
    TaskState,
    TextDelta,
    TextPart,
    ToolCalled,
    ToolReturned,
    text_of,
)


@dataclass(frozen=True)
class Turn:
    """What one run does, in this order. `hold`: the run waits for the event before it ends. `fails`: it raises instead
    of ending. `refuses`: the service does not accept the message at all. `late`: it raises before it has begun."""

    deltas: tuple[str, ...] = ()
    calls: tuple[CallPart, ...] = ()
    results: tuple[ResultPart, ...] = ()
    asks: tuple[Interruption, ...] = ()
    text: str = ""
    hold: asyncio.Event | None = None
    fails: Exception | None = None
    refuses: Exception | None = None
    late: Exception | None = None
    state: TaskState = TaskState.COMPLETED
    then: Turn | None = None


def ask(call_id: str, name: str, hint: str = "", **arguments: object) -> Interruption:
    """A gated call that waits."""
    return Interruption(
        id=call_id,
        kind=Kind.TOOL_CALL,
        confirmation_id=f"adk-{call_id}",
        name=name,
        arguments=dict(arguments),
        hint=hint or f"{name} needs a say-so",
        server="shop/orders",
        tool=name,
        opened_at=1_700_000_000.0,
        expires_at=1_700_086_400.0,
        pause_id=f"pause-{call_id}",
    )


@dataclass
class ScriptedRun:
    """One run; it plays whether or not anybody listens."""

    service: ScriptedService
    task: Task
    log: list[RunEvent] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    error: Exception | None = None
    over: bool = False

    async def emit(self, event: RunEvent) -> None:
        async with self.news:
            self.log.append(event)
            self.news.notify_all()

    async def end(self, error: Exception | None = None) -> None:
        async with self.news:
            self.error, self.over = error, True
            self.news.notify_all()

    async def events(self) -> AsyncIterator[RunEvent]:
        position = 0
        while True:
            async with self.news:
                while position == len(self.log) and not self.over:
                    await self.news.wait()
            if position < len(self.log):
                yield self.log[position]
                position += 1
            elif self.error is not None:
                raise self.error
            else:
                return

    async def result(self) -> Task:
        async for event in self.events():
            if isinstance(event, Ended):
                return event.task
        raise AssertionError("the script has no end")

    async def answered(self) -> None:
        self.service.answered.append(self.task.id)
        self.service.heard.set()


class ScriptedService:
    """See the module. `inbound` is what doors handed over, `answered` the tasks whose answer was out."""

    def __init__(self) -> None:
        self.script: dict[str, Turn] = {}
        self.tasks: dict[str, Task] = {}
        self.inbound: list[Inbound] = []
        self.answered: list[str] = []
        self.heard = asyncio.Event()
        self.started = asyncio.Event()
        self.ended = asyncio.Event()
        self.reasons: list[str] = []
        self._next: dict[str, Turn] = {}
        self._playing: set[asyncio.Task[None]] = set()

    def on(self, text: str, turn: Turn) -> None:
        """Plays `turn` for messages with this text."""
        self.script[text] = turn

    async def send(self, inbound: Inbound) -> ScriptedRun:
        self.inbound.append(inbound)
        if inbound.decision is None:
            turn = self.script[text_of(inbound.parts)]
            task = self._fresh(inbound)
        else:
            task = self._paused(inbound)
            turn = self._next[task.id]
        if turn.refuses is not None:
            raise turn.refuses
        task = replace(task, history=(*task.history, self._said(inbound)), state=TaskState.WORKING, status=None)
        self.tasks[task.id] = task
        run = ScriptedRun(self, task)
        playing = asyncio.create_task(self._play(run, task, turn))
        self._playing.add(playing)
        playing.add_done_callback(self._playing.discard)
        return run

    async def get(self, task_id: str, *, requester: str) -> Task:
        task = self.tasks.get(task_id)
        if task is None or task.requester != requester:
            raise Refusal("not_found", f"task {task_id} does not exist", ids=(task_id,))
        return task

    async def cancel(self, task_id: str, *, requester: str) -> Task:
        task = replace(await self.get(task_id, requester=requester), state=TaskState.CANCELED, status=None)
        self.tasks[task_id] = task
        return task

    async def ready(self) -> Sequence[str]:
        return self.reasons

    async def close(self) -> None:
        """Stops what still plays."""
        for playing in self._playing:
            playing.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)

    async def _play(self, run: ScriptedRun, task: Task, turn: Turn) -> None:
        if turn.late is not None:
            await run.end(turn.late)
            return
        await run.emit(Began(task))
        self.started.set()
        for delta in turn.deltas:
            await run.emit(TextDelta(delta))
        if turn.calls:
            await run.emit(ToolCalled(turn.calls))
        if turn.results:
            await run.emit(ToolReturned(turn.results))
        if turn.hold is not None:
            await turn.hold.wait()
        if turn.fails is not None:
            await run.end(turn.fails)
            return
        ended = self._pause(task, turn) if turn.asks else self._end(task, turn)
        self.tasks[task.id] = ended
        if turn.then is not None:
            self._next[task.id] = turn.then
        await run.emit(Ended(ended))
        await run.end()
        self.ended.set()

    def _fresh(self, inbound: Inbound) -> Task:
        return Task(
            id=uuid.uuid4().hex,
            context_id=inbound.context_id or uuid.uuid4().hex,
            state=TaskState.WORKING,
            at=time.time(),
            requester=inbound.requester,
            run_id=uuid.uuid4().hex,
        )

    def _paused(self, inbound: Inbound) -> Task:
        for task in self.tasks.values():
            if inbound.task_id in (None, task.id) and inbound.context_id in (None, task.context_id):
                return task
        raise Refusal("not_found", "nothing is pending in this session")

    def _said(self, inbound: Inbound) -> Message:
        return Message(inbound.message_id, "user", inbound.parts, inbound.metadata, time.time())

    def _pause(self, task: Task, turn: Turn) -> Task:
        names = ", ".join(item.name for item in turn.asks)
        parts = (*(AskPart(item) for item in turn.asks), TextPart(f"Waiting for a say-so: {names}."))
        message = Message(uuid.uuid4().hex, "agent", parts)
        return replace(
            task,
            state=TaskState.INPUT_REQUIRED,
            at=time.time(),
            status=message,
            history=(*task.history, message),
            interruptions=turn.asks,
        )

    def _end(self, task: Task, turn: Turn) -> Task:
        answer = (TextPart(turn.text),)
        if turn.state is not TaskState.COMPLETED:
            status = Message(uuid.uuid4().hex, "agent", answer)
            return replace(task, state=turn.state, at=time.time(), status=status, interruptions=())
        return replace(
            task,
            state=turn.state,
            at=time.time(),
            artifacts=(*task.artifacts, Artifact(uuid.uuid4().hex, answer)),
            history=(*task.history, Message(uuid.uuid4().hex, "agent", answer)),
            interruptions=(),
        )
