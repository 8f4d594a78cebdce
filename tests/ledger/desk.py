"""A desk with one agent's ledger, as many replicas of it as a test wants, and short words for common steps."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_approvals.digest import canonical, digest
from sayso_approvals.ledger import Choice, Ledger
from sayso_approvals.records import (
    AgentId,
    CallView,
    Commit,
    Completion,
    Kind,
    Pause,
    PausedCall,
    Turn,
    Verdict,
)
from sayso_approvals.refusals import Refusal
from sayso_approvals.seal import new_key


class Desk:
    """One agent, its key, and its replicas' ledgers on one real Redis."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self.agent = AgentId("shop", "refund-desk")
        self.key = new_key()
        self._ids = itertools.count(1)

    def replica(self, lease: float = 30.0) -> Ledger:
        """The ledger as another replica sees it: nothing is shared with the others but Redis."""
        return Ledger(self.redis, self.agent, self.key, lease_seconds=lease)

    def call(self, call_id: str = "c1", kind: Kind = Kind.TOOL_CALL, **changes: Any) -> PausedCall:
        """A call that asks."""
        arguments = {"order": call_id}
        call = PausedCall(
            call_id=call_id,
            kind=kind,
            server="shop/orders",
            endpoint="http://orders.shop:8000/mcp",
            tool="refund",
            alias="refund",
            arguments=canonical(arguments),
            digest=digest("shop/orders", "http://orders.shop:8000/mcp", "refund", arguments),
            gated_by=("Agent shop/refund-desk",),
        )
        return replace(call, **changes)

    def pause(self, turn: Turn, *calls: PausedCall, seconds: float = 600.0, pause_id: str = "") -> Pause:
        """A pause of the turn's run that expires in `seconds` on Redis' clock."""
        now = time.time() + turn.clock_offset
        return Pause(
            pause_id=pause_id or f"p{next(self._ids)}",
            agent=self.agent,
            session_id=turn.session_id,
            task_id="t1",
            engine="adk",
            requester=turn.requester,
            opened_at=now,
            expires_at=now + seconds,
            calls=calls,
        )

    async def paused(
        self, ledger: Ledger, *calls: PausedCall, session: str = "s1", seconds: float = 600.0
    ) -> list[CallView]:
        """A run that has just paused at `calls` (one plain call if none are given)."""
        turn = await ledger.take(session, requester="ann")
        pause = self.pause(turn, *(calls or (self.call(),)), seconds=seconds)
        await ledger.commit(turn, Commit(events=('{"n":1}',), pause=pause, release=True))
        return await ledger.view(pause.pause_id)

    async def decide(
        self, ledger: Ledger, view: CallView, verdict: Verdict = Verdict.APPROVED, by: str = "ann", **more: Any
    ) -> None:
        """One verdict about one call."""
        await ledger.decide([choice(view, verdict, **more)], by=by, via="chat", decision_id=f"d{next(self._ids)}")

    async def approved(self, ledger: Ledger, *calls: PausedCall, session: str = "s1") -> list[CallView]:
        """A pause whose calls are all approved."""
        views = await self.paused(ledger, *calls, session=session)
        for view in views:
            await self.decide(ledger, view)
        return views

    async def claimed(self, ledger: Ledger, *calls: PausedCall, session: str = "s1") -> tuple[Turn, list[CallView]]:
        """A turn that may go on with approved calls."""
        await self.approved(ledger, *calls, session=session)
        return await ledger.take_and_claim(session, requester="ann")

    async def lease_over(self, turn: Turn) -> None:
        """Waits until Redis' clock has passed the end of the turn's lease."""
        (key,) = [key async for key in self.redis.scan_iter("*:session:*") if await self._is(key, turn)]

        async def over() -> bool:
            seconds, micros = await self.redis.time()
            return bool(int(await self.redis.hget(key, "lease") or 0) < seconds * 1000 + micros // 1000)

        await eventually(over)

    async def _is(self, key: str, turn: Turn) -> bool:
        return bool(await self.redis.hget(key, "id") == turn.session_id)

    async def live_key(self) -> str:
        """The key of the only session's calls."""
        (key,) = [key async for key in self.redis.scan_iter("*:live:*")]
        return str(key)

    async def field(self, suffix: str) -> str:
        """The name of the only field of the session's calls that ends so."""
        (name,) = [name for name in await self.redis.hkeys(await self.live_key()) if name.endswith(suffix)]
        return str(name)


def choice(view: CallView, verdict: Verdict = Verdict.APPROVED, **more: Any) -> Choice:
    """A verdict about a call as it was shown."""
    return Choice(view.pause.pause_id, view.call.call_id, **{"digest": view.call.digest, "verdict": verdict} | more)


def completion(turn: Turn, view: CallView) -> Completion:
    """The model has been told about this call."""
    return Completion(view.pause.pause_id, view.call.call_id, turn.token)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Looks again and again until it is so; the test's own time limit ends it otherwise."""
    while not await condition():
        await asyncio.sleep(0.01)


async def refused(work: Awaitable[object], code: str) -> Refusal:
    """The refusal that `work` ends in, which must have this code."""
    with pytest.raises(Refusal) as caught:
        await work
    assert caught.value.code == code, caught.value
    return caught.value
