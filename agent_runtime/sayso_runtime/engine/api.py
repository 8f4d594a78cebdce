"""The seam between `RunService` and an agent framework.

An engine runs turns: it starts one with a message, resumes one with verdicts, or goes on after the model failed. It
never decides anything and never talks to a client. Everything that it learns lands in the `Scope`, and what a client
may want to see meanwhile is yielded as `EngineEvent`s.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from sayso_approvals.ledger import Ledger, TurnLost
from sayso_approvals.records import CallView, Commit, Completion, PausedCall, Turn
from sayso_runtime.messages import CallPart, Part, ResultPart
from sayso_runtime.tools.fence import FenceLost


@dataclass(frozen=True, slots=True)
class Spoken:
    """Text of the model. `partial`: a piece that the whole text follows later. `final`: it is (part of) the answer."""

    text: str
    partial: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """Calls that run at once."""

    calls: tuple[CallPart, ...]


@dataclass(frozen=True, slots=True)
class Returned:
    """What the model is told of calls: results, errors, refusals."""

    results: tuple[ResultPart, ...]


EngineEvent = Spoken | Called | Returned


class ModelFailed(Exception):  # noqa: N818  said as people say it; the word is also the refusal's code
    """The model gave no reply. The text names provider and model and holds no secret."""


def _unseen(author: str, text: str) -> None:
    del author, text


@dataclass(slots=True)
class Scope:
    """One turn of one session, while this replica holds it.

    `claimed` are the decided calls that this turn carries out, by call id. The engine fills `asks` (new questions, to
    become a pause), `doubts` (call ids whose outcome nobody knows), `unsent` (call ids that certainly did not run, with
    the reason), `begun` and `finished` (call ids whose execution is on record), `told` (call ids that the model has an
    answer for) and `ran` (some tool ran in this turn).
    """

    turn: Turn
    ledger: Ledger
    claimed: dict[str, CallView] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    asks: dict[str, PausedCall] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    unsent: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)
    ran: bool = False
    path: tuple[str, ...] = ()  # the agents above this one, as the message that began the run says
    show: Callable[[str, str], None] = _unseen  # an agent that was called, and a piece of text that it writes
    running: dict[str, Any] = field(default_factory=dict)  # call id -> the tool that runs now
    failure: Exception | None = None
    _completed: set[str] = field(default_factory=set)
    _flushing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check(self) -> None:
        """Raises `FenceLost` unless the lease still holds by this process' own clock."""
        if time.monotonic() >= self.turn.deadline:
            raise FenceLost("the tool", f"the turn of session {self.turn.session_id} is no longer this replica's")

    def check_call(self, call: PausedCall) -> None:
        """The same for a call whose start is on record: the turn may be renewed, the time for sending is not."""
        self.check()
        if not self.turn.may_send(call):
            raise FenceLost(call.server, f"the time for sending {call.alias} ({call.call_id}) has passed")

    def pins(self) -> dict[str, tuple[str, str]]:
        """Names that the model was given for tools of calls that wait: they stay as they are."""
        views = (*self.turn.calls, *self.claimed.values())
        return {view.call.alias: (view.call.server, view.call.tool) for view in views}

    def completions(self) -> tuple[Completion, ...]:
        """Claimed calls that the model has been told about and that no commit has completed yet."""
        return tuple(
            Completion(view.pause.pause_id, view.call.call_id, self.turn.token)
            for call_id, view in self.claimed.items()
            if call_id in self.told and call_id not in self._completed
        )

    async def flush(self) -> None:
        """Stores what has happened so far: done before anything outside of the process is touched.

        Calls run side by side, and so may this: each event goes out once, and one that comes meanwhile waits its turn.
        """
        async with self._flushing:
            completions = self.completions()
            count = len(self.events)
            if count or completions:
                commit = Commit(events=tuple(self.events[:count]), completions=completions)
                await self.ledger.commit(self.turn, commit)
                del self.events[:count]
                self._completed.update(c.call_id for c in completions)


#: The turn that the running code belongs to.
SCOPE: ContextVar[Scope | None] = ContextVar("sayso_scope", default=None)


def current(session_id: str) -> Scope:
    """The turn that the running code belongs to: not whichever turn of the session is newest.

    Raises `TurnLost` where there is none, or another one: then the code is left over from a turn that was lost.
    """
    scope = SCOPE.get()
    if scope is None or scope.turn.session_id != session_id:
        raise TurnLost(f"no turn of session {session_id} is open here")
    return scope


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can carry back to the framework."""

    name: str
    partial_answers: bool
    structured_payload: bool
    cancelled_is_distinct: bool


class Engine(Protocol):
    """A framework that can run an agent."""

    @property
    def capabilities(self) -> Capabilities: ...

    def start(self, scope: Scope, parts: Sequence[Part]) -> AsyncIterator[EngineEvent]:
        """A new message."""
        ...

    def resume(self, scope: Scope) -> AsyncIterator[EngineEvent]:
        """Carries out `scope.claimed`."""
        ...

    def proceed(self, scope: Scope) -> AsyncIterator[EngineEvent]:
        """Goes on after the model failed, from what is stored."""
        ...

    def committed(self, scope: Scope) -> None:
        """The turn's end is stored."""
        ...

    def forget(self, scope: Scope) -> None:
        """What this turn left in memory may differ from what is stored: drop it."""
        ...
