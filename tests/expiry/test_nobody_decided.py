"""A pause ends by itself, and the model hears that nobody decided."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from redis.asyncio import Redis

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Task, TaskState
from sayso_runtime.worker import Worker
from support.agents import Counter, Replica, agent, call, calls, reply, says


async def _ended(replica: Replica, task: Task) -> Task:
    """Waits until the worker has taken the task to an end."""
    worker = asyncio.create_task(Worker(replica.ledger, replica.service.go_on, "r1", lease=2.0).run())
    try:
        async with asyncio.timeout(30):
            while not (current := await replica.service.get(task.id, requester=task.requester)).state.terminal:
                await asyncio.sleep(0.02)
            return current
    finally:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker


async def test_an_expired_pause_reaches_the_model_as_nobody_decided(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], timeout=0.3)
    paused = await replica.say("go")
    done = await _ended(replica, paused)
    assert done.state is TaskState.COMPLETED
    assert "Nobody decided before 2" in reply(done)
    assert "reject" not in reply(done).lower()
    assert seen.runs == []


async def test_a_decision_after_the_end_is_refused_as_expired_even_before_anybody_swept(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], timeout=0.05)
    paused = await replica.say("go")
    async with asyncio.timeout(10):
        while True:  # Redis' clock decides, so ask it
            seconds, micros = await redis.time()
            if seconds + micros / 1e6 > paused.interruptions[0].expires_at:
                break
    with pytest.raises(Refusal) as caught:
        await replica.decide({"c1": "approve"})
    assert caught.value.code == "expired"
    assert seen.runs == []


async def test_on_timeout_reject_says_rejected_and_still_that_nobody_decided(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], timeout=0.2, on_timeout="Reject")
    done = await _ended(replica, await replica.say("go"))
    assert "Rejected" in reply(done)
    assert "nobody decided" in reply(done)
    assert seen.runs == []


async def test_a_decision_made_elsewhere_is_carried_out_without_anybody_sending_anything(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")), says("Done."))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])
    paused = await replica.say("go")
    await _decide_elsewhere(replica)
    done = await _ended(replica, paused)
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert seen.runs == [("refund", {"order": "A"})]


async def _decide_elsewhere(replica: Replica) -> None:
    from sayso_approvals.ledger import Choice

    (view,) = await replica.ledger.calls()
    choice = Choice(view.pause.pause_id, view.call.call_id, view.call.digest, Verdict.APPROVED)
    await replica.ledger.decide([choice], by="bob", via="cli", decision_id="d1")
