"""Work in the background survives one bad look; work that ends all the same makes the agent not ready, and says so."""

from __future__ import annotations

import asyncio
import logging

import pytest
from redis.asyncio import Redis

from sayso_approvals.ledger import Ledger
from sayso_approvals.refusals import Refusal
from sayso_runtime.process import Readiness
from sayso_runtime.worker import Worker
from support.agents import AGENT, KEY


class NoServers:
    """A toolbox of an agent without tool servers."""

    def problems(self) -> list[object]:
        return []


async def test_background_work_that_ends_by_itself_is_told_and_makes_the_agent_not_ready(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    readiness = Readiness(Ledger(redis, AGENT, KEY), NoServers())  # type: ignore[arg-type]
    readiness.warm = True
    assert await readiness.reasons() == []

    async def breaks() -> None:
        raise RuntimeError("a fault in the worker")

    async def for_ever() -> None:
        await asyncio.Event().wait()

    broken, whole = asyncio.create_task(breaks()), asyncio.create_task(for_ever())
    readiness.watch(broken, "the worker")
    readiness.watch(whole, "the watch")
    await asyncio.wait([broken])
    await asyncio.sleep(0)
    assert await readiness.reasons() == ["the worker has ended: restart the agent"]
    assert "a fault in the worker" in caplog.text
    whole.cancel()  # as at a stop: that is no fault
    await asyncio.wait([whole])
    assert await readiness.reasons() == ["the worker has ended: restart the agent"]


async def test_a_fault_in_one_look_does_not_end_the_worker(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger(redis, AGENT, KEY, lease_seconds=0.1)
    looked = asyncio.Event()
    left = {"work": 2, "expiry": 1}
    work, expire = ledger.wait_for_work, ledger.expire_due

    async def bad_work(replica: str, timeout_seconds: float) -> list[str]:
        if left["work"]:
            left["work"] -= 1
            raise RuntimeError("a fault in a look")
        looked.set()
        return await work(replica, timeout_seconds)

    async def bad_expiry(limit: int = 100) -> int:
        if left["expiry"]:
            left["expiry"] -= 1
            raise Refusal("store_unreachable", "Redis is away.")
        return await expire(limit)

    ledger.wait_for_work, ledger.expire_due = bad_work, bad_expiry  # type: ignore[method-assign]

    async def nothing(session_id: str) -> None:
        del session_id

    with caplog.at_level(logging.WARNING):
        worker = asyncio.create_task(Worker(ledger, nothing, "r1", lease=0.1).run())
        async with asyncio.timeout(20):
            await looked.wait()
    assert not worker.done()
    assert "a fault in a look" in caplog.text
    assert "Redis is away." in caplog.text
    worker.cancel()
    await asyncio.wait([worker])
