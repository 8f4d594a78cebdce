"""A gated call of one agent: it pauses, and goes on as decided."""

from __future__ import annotations

from redis.asyncio import Redis

from sayso_runtime.messages import TaskState
from support.agents import Counter, Replica, agent, call, calls, reply, says


async def test_a_gated_call_runs_once_after_it_was_approved_and_no_model_call_comes_before_it(redis: Redis) -> None:
    seen = Counter()

    def replica() -> Replica:
        model = seen.model(calls(call("refund", "c1", order="A-1")), says("Refunded."))
        return Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])

    paused = await replica().say("Refund A-1")
    assert paused.state is TaskState.INPUT_REQUIRED
    assert [(i.id, i.name, i.arguments) for i in paused.interruptions] == [("c1", "refund", {"order": "A-1"})]
    assert (seen.models, seen.runs) == (1, [])

    done = await replica().decide("approve")
    assert done.state is TaskState.COMPLETED
    assert reply(done) == "Refunded."
    assert seen.order == ["model", "refund", "model"]
    assert seen.runs == [("refund", {"order": "A-1"})]
