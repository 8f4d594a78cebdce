"""Talking to another agent so that, whatever breaks in between, nothing counts twice and nothing is lost.

A Sayso agent gives a repeated message its first answer again, and its tasks can be read at any time: after a lost
connection the same message is sent again, or its task is watched. Of any other agent only what it has answered counts:
a message that may have arrived is never sent again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sayso_runtime.tools.agent_peer import TASK_NOT_FOUND, Declined, Lost, OnText, Peer, PeerError, Silent, Unreachable
from sayso_runtime.tools.agent_reply import Garbage, Reply
from sayso_runtime.tools.fence import FenceLost
from sayso_runtime.tools.outcome import NotSent, OutcomeUnknown

log = logging.getLogger(__name__)

AGENT = "agent"
#: Seconds between two tries: the first, and the most.
FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
#: Seconds for which a message that certainly did not arrive is tried again: an agent that is restarted comes back.
COMES_BACK = 8.0
#: Refusals that say: not now.
_LATER = frozenset({"busy", "store_unreachable"})
#: Refusals that say: what was decided about is not open there any more.
_OVER = frozenset({"already_decided", "expired", "superseded", "cancelled"})
_NOT_THERE = frozenset({"unknown_call", "not_found"})


class NoAnswer(Exception):  # noqa: N818  it says what there is not
    """The agent gave no answer that could be gone on with, and nobody has to settle anything. The text says why."""


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation with one agent. `own`: it is a Sayso agent. `fence` raises where nothing may be sent any more,
    `still_ours` where the turn is lost. `patience`: seconds without any sign of the agent after which it counts as
    gone."""

    peer: Peer
    name: str
    own: bool
    patience: float
    fence: Callable[[], None]
    still_ours: Callable[[], None]
    on_text: OnText

    async def ask(self, message: Mapping[str, Any]) -> Reply:
        """Sends a request. Raises `NotSent`, `OutcomeUnknown` and `NoAnswer`."""
        try:
            return await self._deliver(message, "")
        except Declined as error:
            raise NoAnswer(f"it declined: {error}") from error
        except Garbage as error:
            raise NoAnswer(f"it answered with {error}") from error
        except Lost as error:
            if self.own:
                raise NoAnswer(str(error)) from error
            raise OutcomeUnknown(self.name, AGENT, str(error)) from error

    async def decide(self, message: Mapping[str, Any], stop: str) -> Reply:
        """Sends a decision about what its task waited for at `stop`; where it is not open there any more, what became
        of the task. Raises `NotSent` where nothing was decided, and as `ask`."""
        task_id = str(message["taskId"])
        try:
            return await self._deliver(message, stop)
        except Declined as error:
            return await self._declined(error, task_id, stop)
        except Garbage as error:
            raise NoAnswer(f"it answered with {error}") from error
        except Lost as error:
            if self.own:  # it can be decided again: what arrived twice counts once
                raise NotSent(self.name, f"nobody knows yet whether it heard: {error}") from error
            raise OutcomeUnknown(self.name, AGENT, str(error)) from error

    async def look(self, task_id: str, stop: str = "") -> Reply:
        """The task once it is settled and not at `stop`. Raises `NotSent` and `NoAnswer`."""
        try:
            return await self._follow(task_id, stop)
        except Declined as error:
            raise NoAnswer(f"its task is gone: {error}") from error
        except Garbage as error:
            raise NoAnswer(f"it answered with {error}") from error
        except PeerError as error:
            raise NotSent(self.name, str(error)) from error

    async def withdraw(self, task_id: str) -> str:
        """Cancels what waits there. Returns why that is not certain, empty where it is."""
        pauses = _Pauses(COMES_BACK)
        while True:
            self.still_ours()
            try:
                await self.peer.cancel(task_id)
            except Declined as error:  # it has ended, or goes on with what somebody decided there
                log.info("agent %s did not cancel task %s: %s", self.name, task_id, error)
                return "" if error.code in _OVER or error.number == TASK_NOT_FOUND else str(error)
            except (PeerError, Garbage) as error:
                if not await pauses.more():
                    return str(error)
            else:
                return ""

    # --- delivering

    async def _deliver(self, message: Mapping[str, Any], stop: str) -> Reply:
        """Sends a message until it is answered. Raises `NotSent`, `Declined`, `Lost` (perhaps heard) and `Garbage`."""
        pauses, heard = _Pauses(COMES_BACK), False
        while True:
            try:
                if heard and self.own:
                    self.still_ours()
                else:
                    self.fence()
            except FenceLost as error:
                if pauses.used:
                    raise NotSent(self.name, "no connection came about in time") from error
                raise
            try:
                return await self.peer.send(message, self.on_text)
            except Unreachable as error:
                if not await pauses.more():
                    raise (Lost(str(error)) if heard else NotSent(self.name, str(error))) from error
            except Declined as error:
                if error.code not in _LATER or not await pauses.more():
                    raise
            except Silent:
                raise
            except Lost as error:
                if not self.own:
                    raise
                log.warning("agent %s: %s; asking again", self.name, error)
                if not heard:
                    heard, pauses = True, _Pauses(self.patience)
                if error.task_id and "taskId" not in message:
                    return await self._follow(error.task_id, stop)
                if not await pauses.more():
                    raise

    async def _follow(self, task_id: str, stop: str) -> Reply:
        """Reads the task until it is settled and has left `stop`."""
        pauses = _Pauses(self.patience)
        while True:
            self.still_ours()
            try:
                reply = await self.peer.get(task_id)
            except (Unreachable, Lost):
                if not await pauses.more():
                    raise
                continue
            except Declined as error:
                if error.code not in _LATER or not await pauses.more():
                    raise
                continue
            if reply.moved(stop) if stop else reply.settled:
                return reply
            if not reply.settled:
                pauses.again()  # it works
            if not await pauses.more():
                raise Silent(f"its task {task_id} does not go on", task_id)

    async def _declined(self, error: Declined, task_id: str, stop: str) -> Reply:
        """What became of the task whose decision the agent refused. What it said is raised where it stays as it is."""
        if error.code not in _OVER | _NOT_THERE:
            raise NotSent(self.name, f"it refused: {error}") from error
        try:
            reply = await self.peer.get(task_id)
            if not reply.moved(stop) and error.code in _OVER:
                reply = await self._follow(task_id, stop)  # whoever decided it, it is about to go on
        except Declined as gone:
            raise NoAnswer(f"its task is gone: {gone}") from gone
        except Garbage as garbage:
            raise NoAnswer(f"it answered with {garbage}") from garbage
        except PeerError as further:
            raise NotSent(self.name, f"it refused: {error}; and then: {further}") from further
        if not reply.moved(stop):
            raise NotSent(self.name, f"it refused: {error}") from error
        return reply


class _Pauses:
    """Waits longer each time, until the time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pause = FIRST_PAUSE
        self._end = time.monotonic() + seconds
        self.used = False

    def again(self) -> None:
        """The time begins anew."""
        self._end = time.monotonic() + self._seconds

    async def more(self) -> bool:
        """Waits; False where the time is over."""
        self.used = True
        if time.monotonic() + self._pause > self._end:
            return False
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, LAST_PAUSE)
        return True
