"""Waiting for a session's turn: a queue that lives in Redis, polled with a widening pause.

A place in the queue counts for two seconds after its owner was last heard of, so the waiters of a dead replica make
way by themselves. Waiters in the same process are told at once when a turn ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sayso_approvals.refusals import Refusal

MOST_WAITING = 8
PLACE_SECONDS = 2.0
FIRST_POLL, LAST_POLL = 0.01, 0.15  # seconds


class TurnLost(Exception):  # noqa: N818
    """The turn's lease ended, or its fence moved on: nothing of this step was written. Stop working."""


class Queue:
    """The lease's lengths, and the waiting."""

    def __init__(self, lease_seconds: float) -> None:
        if lease_seconds <= 0:
            raise ValueError("a lease lasts longer than no time")
        self._lease = lease_seconds
        self.lease_ms = max(1, int(lease_seconds * 1000))
        self.place_ms = int(PLACE_SECONDS * 1000)
        self.most = MOST_WAITING
        self._here: dict[str, set[asyncio.Event]] = {}

    def deadline(self, started: float) -> float:
        """Until when a lease asked for at `started` may be used: a fifth before Redis could let somebody else in."""
        return started + self._lease * 0.8

    async def wait(
        self, session_id: str, attempt: Callable[[str], Awaitable[Any]], seconds: float
    ) -> tuple[float, Any]:
        """Asks for the turn until it is given: when the request that got it was sent, and the reply to it.

        Raises `not_found`, or `busy` when all places are taken or `seconds` are over.
        """
        place, pause, until = "", FIRST_POLL, time.monotonic() + seconds
        freed = asyncio.Event()
        here = self._here.setdefault(session_id, set())
        here.add(freed)
        try:
            while True:
                started = time.monotonic()
                reply = await attempt(place)
                match reply[0]:
                    case "taken":
                        return started, reply
                    case "unknown":
                        raise Refusal("not_found", "There is no such session.")
                    case "busy":
                        raise Refusal("busy", f"{MOST_WAITING} messages already wait for this session. Try again.")
                place = reply[1]
                if time.monotonic() >= until:
                    raise Refusal("busy", f"Waited {seconds:g} s for this session's turn. Try again.")
                try:
                    async with asyncio.timeout(min(pause, until - time.monotonic())):
                        await freed.wait()
                except TimeoutError:
                    pause = min(pause * 1.5, LAST_POLL)
                freed.clear()
        finally:
            here.discard(freed)
            if not here:
                self._here.pop(session_id, None)

    def free(self, session_id: str) -> None:
        """A turn ended here: whoever waits in this process asks again at once."""
        for freed in self._here.get(session_id, ()):
            freed.set()
