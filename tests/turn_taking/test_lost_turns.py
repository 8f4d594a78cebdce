"""A turn whose lease ended writes nothing, loses no result, and ends no task in silence."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.tools.function_tool import FunctionTool
from redis.asyncio import Redis

from sayso_approvals.records import Journal
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import CONTINUE, TaskState
from support.agents import Counter, Replica, agent, call, calls, reply, says


async def _until_free(replica: Replica) -> None:
    async with asyncio.timeout(20):
        while "s1" not in await replica.ledger.work():
            await asyncio.sleep(0.02)


async def test_a_result_that_comes_after_the_same_replica_took_the_turn_again_is_kept(redis: Redis) -> None:
    seen = Counter()
    hold = asyncio.Event()

    async def refund(order: str) -> dict[str, str]:
        """Refunds an order."""
        seen.ran("refund", order=order)
        await hold.wait()
        return {"refunded": order}

    model = seen.model(calls(call("refund", "c1", order="A")), says("Done."))
    replica = Replica(redis, agent("desk", model, [FunctionTool(refund)]), ["refund"], lease=0.6)
    paused = await replica.say("go")
    deciding = asyncio.create_task(replica.decide("approve"))
    while "refund" not in seen.order:
        await asyncio.sleep(0.01)
    await redis.execute_command("CLIENT", "PAUSE", "1200", "WRITE")
    await _until_free(replica)
    await replica.service.go_on("s1")
    (view,) = await replica.ledger.calls()
    assert view.state.journal is Journal.UNKNOWN

    hold.set()
    with pytest.raises(Refusal) as caught:
        await deciding
    assert "goes on by itself" in caught.value.detail
    await replica.service.go_on("s1")
    done = await replica.service.get(paused.id, requester="alice")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert seen.order == ["model", "refund", "model"]


async def test_a_replica_that_dies_in_a_later_free_call_leaves_a_question_and_not_a_dead_card(redis: Redis) -> None:
    seen = Counter()
    entered = asyncio.Event()

    async def look(order: str) -> dict[str, str]:
        """Looks at an order, for ever."""
        seen.ran("look", order=order)
        entered.set()
        await asyncio.Event().wait()
        return {}

    def replica() -> Replica:
        model = seen.model(calls(call("refund", "c1", order="A")), calls(call("look", "c2", order="A")), says("Done."))
        return Replica(redis, agent("desk", model, [seen.tool("refund"), FunctionTool(look)]), ["refund"], lease=0.5)

    dying = replica()
    paused = await dying.say("go")
    deciding = asyncio.create_task(dying.decide("approve"))
    await entered.wait()
    deciding.cancel()
    for task in list(dying.service._tasks):
        task.cancel()
    await asyncio.gather(*dying.service._tasks, deciding, return_exceptions=True)

    fresh = replica()
    await _until_free(fresh)
    await fresh.service.go_on("s1")
    left = await fresh.service.get(paused.id, requester="alice")
    assert [i.name for i in left.interruptions] == [CONTINUE]
    done = await fresh.decide("approve")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert [name for name, _ in seen.runs] == ["refund", "look"]
