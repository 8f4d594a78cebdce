"""A run in progress, kept whether or not anybody listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Began, Ended, RunEvent, Task

log = logging.getLogger(__name__)


class LiveRun:
    """A run in progress; see `service_api.Run`."""

    def __init__(self, task: Task, answered: Callable[[], Awaitable[None]]) -> None:
        self._task = task
        self._answered = answered
        self._log: list[RunEvent] = []
        self._news = asyncio.Event()
        self._error: Exception | None = None
        self._ended: Task | None = None

    @property
    def task(self) -> Task:
        """The task as it was when the run was accepted, or as it began."""
        return self._task

    def emit(self, event: RunEvent) -> None:
        """Adds an event for whoever listens, now or later."""
        if isinstance(event, Began):
            self._task = event.task
        if isinstance(event, Ended):
            self._ended = event.task
        self._log.append(event)
        self._news.set()

    def fail(self, error: Exception) -> None:
        """Ends the run with an error."""
        self._error = error
        self._news.set()

    async def events(self) -> AsyncIterator[RunEvent]:
        """All events from the first; may be iterated by several listeners."""
        position = 0
        while True:
            while position < len(self._log):
                event = self._log[position]
                position += 1
                yield event
                if isinstance(event, Ended):
                    return
            if self._error is not None:
                raise self._error
            news = self._news
            if position == len(self._log) and self._error is None:
                await news.wait()
                if self._news is news:
                    self._news = asyncio.Event()

    async def result(self) -> Task:
        """Waits for the end."""
        async for event in self.events():
            if isinstance(event, Ended):
                return event.task
        raise RuntimeError("a run ended without an end")

    async def answered(self) -> None:
        """The answer is out."""
        await self._answered()


def replay(task: Task) -> LiveRun:
    run = LiveRun(task, nothing_to_clear)
    run.emit(Began(task))
    run.emit(Ended(task))
    return run


async def guarded(run: LiveRun, work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Refusal as refusal:
        run.fail(refusal)
    except Exception as error:
        log.exception("the run of task %s failed", run.task.id)
        run.fail(error)


async def nothing_to_clear() -> None:
    return None
