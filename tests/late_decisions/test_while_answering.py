"""While an answer is on its way, a verdict without ids cannot mean what came after it."""

from __future__ import annotations

import asyncio

import pytest
from google.adk.tools.function_tool import FunctionTool
from redis.asyncio import Redis

from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Inbound, NamedDecision, TaskState, TextPart, UniformDecision
from sayso_runtime.tools.outcome import OutcomeUnknown
from support.agents import Counter, Replica, agent, call, calls, reply, says, verdict


async def test_a_settlement_is_being_answered_like_any_decision(redis: Redis) -> None:
    seen = Counter()

    async def refund(order: str) -> dict[str, str]:
        """Refunds an order."""
        seen.ran("refund", order=order)
        if len(seen.runs) == 1:
            raise OutcomeUnknown("refund", "shop/a", "timed out")
        return {"refunded": order}

    tool = FunctionTool(refund)
    for key, value in {"server": "shop/a", "endpoint": "a", "tool": "refund", "timeout_seconds": 0.1}.items():
        setattr(tool, key, value)
    model = seen.model(calls(call("refund", "c1", order="A")), calls(call("refund", "c2", order="B")), says("Done."))
    replica = Replica(redis, agent("desk", model, [tool]), ["refund"], lease=0.5)
    await replica.say("go")
    await replica.decide("approve")

    settling = Inbound(
        "alice", "d1", (TextPart("x"),), context_id="s1", decision=NamedDecision({"c1:outcome:1": verdict("approve")})
    )
    run = None
    async with asyncio.timeout(10):
        while run is None:
            try:
                run = await replica.service.send(settling)
            except Refusal as refusal:
                if refusal.code != "paused":  # it may not be settled while it could still be sent
                    raise
                await asyncio.sleep(0.05)
    paused = await run.result()
    assert [i.id for i in paused.interruptions] == ["c2"]
    uniform = Inbound("alice", "d2", (TextPart("x"),), context_id="s1", decision=UniformDecision(verdict("approve")))
    with pytest.raises(Refusal) as caught:
        await replica.service.send(uniform)
    assert caught.value.code == "already_decided"
    assert [i["id"] for i in caught.value.extra["interruptions"]] == ["c2"]
    await run.answered()
    assert (await replica.decide("approve")).state is TaskState.COMPLETED


async def test_one_message_on_two_replicas_at_once_gets_one_answer_twice(redis: Redis) -> None:
    seen = Counter()

    def replica() -> Replica:
        model = seen.model(calls(call("refund", "c1", order="A")), says("Done."))
        return Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])

    one, other = replica(), replica()
    await one.say("go")
    answers = await asyncio.gather(one.decide("approve", message_id="same"), other.decide("approve", message_id="same"))
    assert [reply(task) for task in answers] == ["Done.", "Done."]
    assert len(seen.runs) == 1


async def test_a_superseded_pause_leaves_nothing_being_answered(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(
        calls(call("refund", "c1", order="A")), says("Gave up."), calls(call("refund", "c2", order="B")), says("Done.")
    )
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], while_paused="CancelPause")
    await replica.say("A")
    paused = await replica.say("no, B")
    assert [i.id for i in paused.interruptions] == ["c2"]
    assert (await replica.decide("approve")).state is TaskState.COMPLETED
    assert seen.runs == [("refund", {"order": "B"})]


async def test_a_message_beside_a_forged_verdict_costs_no_model_call(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])
    await replica.say("go")
    for key in await redis.keys("sayso:*:live*"):
        for name in await redis.hkeys(key):
            if name.endswith(":call"):
                at = name.removesuffix(":call")
                await redis.hset(key, mapping={f"{at}:word": "approved", f"{at}:verdict": "{}", f"{at}:vmac": "0" * 64})
    again = await replica.say("hello?")
    assert again.state is TaskState.INPUT_REQUIRED
    assert (seen.models, seen.runs) == (1, [])
