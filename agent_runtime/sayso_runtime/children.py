"""Looking after calls that wait for another agent: its pause may be decided where it is, and then this agent goes on.

Every replica looks at the other agent's task from time to time, seldom where nothing happens. When the task has moved,
it says so with a verdict on the call like any other: whoever comes first counts, and the call is taken up as usual.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sayso_approvals import forwarding
from sayso_approvals.ledger import Choice, Ledger
from sayso_approvals.records import CallView, Verdict
from sayso_approvals.refusals import Refusal

log = logging.getLogger(__name__)

#: Seconds between two looks at a call: the fewest, the most, and in between this part of the time that it has waited,
#: so that going on is late by no more than that part.
FIRST_LOOK, LAST_LOOK, PART = 1.0, 30.0, 0.1
#: Looks at other agents that are under way at once.
AT_ONCE = 16
#: Listing what waits may take one part in so many of the time.
SHARE = 20.0

Key = tuple[str, str]


class Child(Protocol):
    """Another agent, as far as its tasks can be looked at (`tools/remote_agent.py`)."""

    path: str

    async def has_moved(self, view: CallView) -> bool: ...


@dataclass(slots=True)
class _Next:
    at: float  # both on the monotonic clock
    since: float


class Children:
    """Looks at the tasks of other agents that this agent's calls wait for. `child_at` finds the agent of an endpoint,
    None where this agent may not call it any more."""

    def __init__(self, ledger: Ledger, child_at: Callable[[str], Child | None]) -> None:
        self._ledger = ledger
        self._child_at = child_at
        self._next: dict[Key, _Next] = {}
        self._few = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Until cancelled. The first round looks at everything: what happened while no replica ran is seen at once."""
        while True:
            started = time.monotonic()
            try:
                await self.round()
            except Refusal as error:
                log.warning("%s", error.detail)
            except Exception:
                log.exception("the agents that are waited for could not be looked at")
            await asyncio.sleep(max(FIRST_LOOK, (time.monotonic() - started) * SHARE))

    async def round(self) -> None:
        """Looks at whatever is due."""
        views = [view for view in await self._ledger.calls() if view.open and forwarding.is_forwarding(view)]
        now = time.monotonic()
        known, self._next = self._next, {}
        due = []
        for view in views:
            key = (view.pause.pause_id, view.call.call_id)
            following = self._next[key] = known.get(key) or _Next(now, now)
            if following.at <= now and view.intact:
                following.at = now + min(max(FIRST_LOOK, (now - following.since) * PART), LAST_LOOK)
                due.append(view)
        await asyncio.gather(*(self._look(view) for view in due))

    async def _look(self, view: CallView) -> None:
        child = self._child_at(view.call.endpoint)
        if child is None:
            return
        async with self._few:
            moved = await child.has_moved(view)
        if not moved:
            return
        choice = Choice(
            view.pause.pause_id, view.call.call_id, view.call.digest, Verdict.APPROVED, payload=forwarding.LOOK
        )
        try:
            await self._ledger.decide(
                [choice], by=f"agent {child.path}", via="child", decision_id=f"look:{choice.pause_id}:{choice.call_id}"
            )
        except Refusal as refusal:
            log.debug("call %s was decided meanwhile: %s", choice.call_id, refusal.detail)
