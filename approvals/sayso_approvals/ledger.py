"""The pause ledger in Redis: every change of state is one Lua script.

The scripts are named as the protocol's steps are (`take`, `commit`, `decide`, `expire`, `claim`, `begin`, `finish`,
`doubt`, `settle`, `reopen`) and live beside this module in `scripts/`. Python never reads, changes and writes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sayso_approvals.records import AgentId, Begin, CallView, Commit, Turn, Verdict


class TurnLost(Exception):
    """The turn's lease ended and its fence moved on: nothing of this step was written. Stop working."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a message finds on arrival, read in one step.

    `answering`: another decision of this session is still being answered, so a verdict without ids cannot mean what is
    open now. `task_id` is the session's newest task. `last` is the newest decided call, for saying what became of it.
    """

    requester: str | None  # None: the session does not exist
    task_id: str | None
    calls: list[CallView]  # not done
    answering: bool
    last: CallView | None


@dataclass(frozen=True, slots=True)
class Choice:
    """One verdict about one call, to be sealed and stored by `Ledger.decide`. `payload` is JSON text."""

    pause_id: str
    call_id: str
    digest: str
    verdict: Verdict
    reason: str = ""
    payload: str = "null"


class Ledger:
    """One agent's pauses, sessions and tasks.

    Every method may raise `Refusal("store_unreachable")`; those that take a `Turn` raise `TurnLost`.
    """

    def __init__(self, redis: Any, agent: AgentId, key: bytes, *, lease_seconds: float = 15.0) -> None: ...

    # --- sessions and their turns
    async def resolve(self, session_id: str) -> Resolution: ...
    async def take(
        self, session_id: str, *, requester: str, create: bool = True, wait_seconds: float = 600.0
    ) -> Turn:
        """The session's turn, waiting for it in order of arrival; at most eight wait, the ninth gets `busy`.

        `requester` becomes the owner of a session that does not exist yet (if `create`, else `not_found`).
        """
        ...

    async def renew(self, turn: Turn) -> None: ...
    async def release(self, turn: Turn) -> None: ...
    async def events(self, session_id: str, start: int = 0) -> list[str]: ...
    async def commit(self, turn: Turn, commit: Commit) -> None:
        """Writes all of it or nothing. Raises `TurnLost`, or `Refusal("integrity")` on a task's version conflict."""
        ...

    # --- deciding
    async def decide(self, choices: Sequence[Choice], *, by: str, via: str, decision_id: str) -> None:
        """All choices or none: raises `already_decided`, `expired`, `superseded`, `cancelled`, `unknown_call`,
        `integrity`. Marks the session as answering `decision_id`, wakes the agent's replicas."""
        ...

    async def answered(self, session_id: str, decision_id: str) -> None:
        """The answer of this decision has gone out whole."""
        ...

    async def settle(
        self,
        pause_id: str,
        call_id: str,
        *,
        action: str,
        result: str | None,
        by: str,
        reason: str,
        attempt: int,
    ) -> None:
        """Settles an unknown outcome: `retry` (runs once more), `result` (JSON text given by a person), `abandon`."""
        ...

    async def expire_due(self, limit: int = 100) -> int: ...

    # --- executing (inside a turn)
    async def claim(self, turn: Turn) -> list[CallView]:
        """Fences every call of the session that is decided, not done and not in doubt, with this turn's token."""
        ...

    async def begin(self, turn: Turn, view: CallView) -> tuple[Begin, str | None, bool]: ...
    async def finish(self, turn: Turn, view: CallView, result: str, *, is_error: bool) -> bool: ...
    async def doubt(self, turn: Turn, view: CallView, note: str) -> None: ...
    async def reopen(self, turn: Turn, view: CallView, note: str) -> None: ...

    # --- tasks, repeated messages
    async def task(self, task_id: str) -> tuple[int, str] | None: ...
    async def answer_to(self, session_id: str, message_id: str) -> str | None: ...

    # --- looking after things
    async def work(self) -> list[str]:
        """Sessions that have something to go on with: decided calls that nobody holds, or a turn whose holder died."""
        ...

    async def wait_for_work(self, replica: str, timeout_seconds: float) -> list[str]: ...
    async def open_count(self) -> int: ...
    async def calls(self, *, include_done: bool = False) -> list[CallView]: ...
    async def view(self, pause_id: str) -> list[CallView]: ...
