"""The one core behind every door, as the doors see it (`service.py` implements it)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from sayso_runtime.messages import Inbound, RunEvent, Task

#: Where a page of pauses ends: when its last pause opened (milliseconds), and that pause's name in the ledger's index.
Place = tuple[int, str]


class Run(Protocol):
    """A run in progress. It goes on whether or not anybody listens; a client that leaves loses nothing."""

    @property
    def task(self) -> Task:
        """The task as it was when the run was accepted."""
        ...

    def events(self) -> AsyncIterator[RunEvent]:
        """`Began` first, `Ended` last. Raises `Refusal` (`model_failed`, `store_unreachable`, …) instead of `Ended`
        where the run cannot answer; what is stored by then stays."""
        ...

    async def result(self) -> Task:
        """Waits for the end. Raises as `events` does."""
        ...

    async def answered(self) -> None:
        """The door calls this when the last byte of the answer is out (or the client is gone)."""
        ...


class Service(Protocol):
    """What a door may ask. Every method may raise `Refusal`."""

    async def send(self, inbound: Inbound) -> Run:
        """Accepts a message or a decision. Raises `Refusal` before anything is changed."""
        ...

    async def get(self, task_id: str, *, requester: str) -> Task: ...

    async def run(self, run_id: str, *, requester: str) -> Task:
        """The task that a run id belongs to, as it is stored."""
        ...

    async def pauses(
        self, *, requester: str, after: Place | None = None, limit: int = 50
    ) -> tuple[list[Task], Place | None]:
        """The requester's tasks with something to decide, oldest first, and where to go on (None: that was all)."""
        ...

    async def cancel(self, task_id: str, *, requester: str) -> Task:
        """Cancels what is pending in the task: recorded as cancelled, nobody decided."""
        ...

    async def ready(self) -> Sequence[str]:
        """Reasons why the agent is not ready; empty: it is."""
        ...
