"""Decisions that are late, partial, wrong or meant for somebody else change nothing and never become a prompt."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import TaskState
from support.agents import Counter, Replica, agent, call, calls, reply, says


def _replica(redis: Redis, seen: Counter) -> Replica:
    both = calls(call("refund", "c1", order="A"), call("refund", "c2", order="B"))
    return Replica(redis, agent("desk", seen.model(both, says("Done.")), [seen.tool("refund")]), ["refund"])


async def _refused(replica: Replica, *args: object, **more: object) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await replica.decide(*args, **more)  # type: ignore[arg-type]
    return caught.value


async def test_an_unknown_id_refuses_the_whole_message_and_names_it(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")
    refusal = await _refused(replica, {"c1": "approve", "c9": "approve"})
    assert (refusal.code, refusal.ids) == ("unknown_call", ("c9",))
    assert [v.open for v in (await replica.ledger.resolve("s1")).calls] == [True, True]
    assert (seen.models, seen.runs) == (1, [])


async def test_one_call_named_in_two_ways_is_two_verdicts(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    paused = await replica.say("go")
    refusal = await _refused(replica, {"c1": "approve", paused.interruptions[0].confirmation_id: "reject"})
    assert refusal.code == "malformed_decision"
    assert seen.runs == []


async def test_with_nothing_pending_a_decision_hears_what_became_of_it_and_costs_no_model_call(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")
    await replica.decide("approve")
    models = seen.models
    refusal = await _refused(replica, "approve")
    assert (refusal.code, refusal.decided_by, refusal.verdict) == ("already_decided", "alice", "approved")
    assert refusal.decided_at is not None
    refusal = await _refused(replica, {"c1": "reject"})
    assert (refusal.code, refusal.decided_by) == ("already_decided", "alice")
    assert seen.models == models


async def test_a_decision_for_a_session_that_does_not_exist_leaves_nothing_behind(redis: Redis) -> None:
    replica = _replica(redis, Counter())
    refusal = await _refused(replica, "approve", session="nowhere")
    assert refusal.code == "not_found"
    assert await redis.keys("*nowhere*") == []
    assert (await replica.ledger.resolve("nowhere")).requester is None


async def test_a_message_while_paused_gets_the_same_task_with_its_parts_and_no_model_call(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    paused = await replica.say("go")
    again = await replica.say("Approved!")
    assert (again.id, again.state) == (paused.id, TaskState.INPUT_REQUIRED)
    assert again.interruptions == paused.interruptions
    assert (seen.models, seen.runs) == (1, [])


async def test_somebody_else_neither_sees_nor_decides_the_session(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    paused = await replica.say("go")
    assert (await _refused(replica, "approve", who="mallory")).code == "not_found"
    assert (await _refused(replica, {"c1": "approve"}, who="mallory")).code == "not_found"
    assert [view.open for view in (await replica.ledger.resolve("s1")).calls] == [True, True]
    with pytest.raises(Refusal) as caught:
        await replica.service.get(paused.id, requester="mallory")
    assert caught.value.code == "not_found"
    assert seen.runs == []


async def test_a_context_that_is_not_the_tasks_is_refused(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    paused = await replica.say("go")
    refusal = await _refused(replica, "approve", session="s2", task_id=paused.id)
    assert refusal.code == "malformed_decision"
    assert seen.runs == []


async def test_the_same_message_again_gets_the_first_answer_again(redis: Redis) -> None:
    seen = Counter()
    replica = _replica(redis, seen)
    await replica.say("go")
    first = await replica.decide({"c1": "approve", "c2": "reject"}, message_id="m-same")
    second = await replica.decide({"c1": "approve", "c2": "reject"}, message_id="m-same")
    assert reply(second) == reply(first) == "Done."
    assert len(seen.runs) == 1


async def test_a_pause_can_be_superseded_where_the_agent_says_so(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")), says("Gave up."), says("Next."))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"], while_paused="CancelPause")
    await replica.say("go")
    done = await replica.say("forget it")
    assert reply(done) == "Next."
    assert seen.runs == []
    assert (await _refused(replica, {"c1": "approve"})).code == "superseded"


async def test_cancelling_a_paused_task_tells_the_model_that_nobody_decided(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])
    paused = await replica.say("go")
    cancelled = await replica.service.cancel(paused.id, requester="alice")
    assert cancelled.state is TaskState.CANCELED
    assert "Nobody decided: cancelled by alice" in reply(cancelled)
    assert (await _refused(replica, {"c1": "approve"})).code == "cancelled"
