"""A turn whose lease ended writes nothing, loses no result, and ends no task in silence."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.tools.function_tool import FunctionTool
from redis.asyncio import Redis

from sayso_api.runtimeconfig import ScriptedTurn
from sayso_approvals.ledger import Choice
from sayso_approvals.records import Journal, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import CONTINUE, Inbound, TaskState, TextPart
from sayso_runtime.worker import Worker
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
    replica = Replica(redis, agent("desk", model, [FunctionTool(refund)]), ["refund"], lease=1.0)
    paused = await replica.say("go")
    deciding = asyncio.create_task(replica.decide("approve"))
    while "refund" not in seen.order:
        await asyncio.sleep(0.01)
    await redis.execute_command("CLIENT", "PAUSE", "1800", "WRITE")
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


async def test_a_task_whose_holder_died_ends_although_another_message_was_waiting(redis: Redis) -> None:
    seen = Counter()

    def replica() -> Replica:
        slow = ScriptedTurn(text="late", delay_seconds=60)
        return Replica(redis, agent("desk", seen.model(slow, says("two"), says("three"))), [], lease=0.5)

    dying, other = replica(), replica()
    first = await dying.service.send(Inbound("alice", "m1", (TextPart("one"),), context_id="s1"))
    async with asyncio.timeout(10):
        while not seen.models:
            await asyncio.sleep(0.01)
    waiting = asyncio.create_task(other.service.send(Inbound("alice", "m2", (TextPart("two"),), context_id="s1")))
    await (await waiting).answered()
    for task in list(dying.service._tasks):
        task.cancel()
    async with asyncio.timeout(20):
        while (await other.service.get(first.task.id, requester="alice")).state is not TaskState.FAILED:
            await asyncio.sleep(0.02)
    for task in list(other.service._tasks):
        task.cancel()


async def test_a_member_that_nobody_here_wrote_does_not_end_the_worker(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")), says("Done."))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], lease=0.5)
    paused = await replica.say("go")
    (open_key,) = [key for key in await redis.keys("sayso:*:open") if await redis.type(key) == "zset"]
    for key in (open_key, open_key.replace(":open", ":ready"), open_key.replace(":open", ":running")):
        await redis.zadd(key, {"junk": 0})
    worker = asyncio.create_task(Worker(replica.ledger, replica.service.go_on, "r", lease=0.5).run())
    (view,) = await replica.ledger.calls()
    choice = Choice(view.pause.pause_id, "c1", view.call.digest, Verdict.APPROVED)
    await replica.ledger.decide([choice], by="bob", via="cli", decision_id="d")
    try:
        async with asyncio.timeout(20):
            while not (await replica.service.get(paused.id, requester="alice")).state.terminal:
                await asyncio.sleep(0.02)
        assert not worker.done()
    finally:
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    assert seen.runs == [("refund", {"order": "A"})]
