"""The model fails: before anything ran the task fails, after a tool ran it waits with the result kept."""

from __future__ import annotations

import pytest
from google.adk.agents.parallel_agent import ParallelAgent
from redis.asyncio import Redis

from sayso_runtime.messages import CONTINUE, TaskState
from support.agents import Counter, Replica, agent, call, calls, fails, reply, says


async def test_a_failure_before_any_tool_fails_the_task_and_the_next_message_works(redis: Redis) -> None:
    seen = Counter()
    replica = Replica(redis, agent("desk", seen.model(fails(text="Hello."))), [])
    failed = await replica.say("go")
    assert failed.state is TaskState.FAILED
    assert "503 overloaded" in failed.status.parts[0].text  # type: ignore[union-attr]
    done = await replica.say("again")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Hello.")


async def test_after_a_tool_ran_its_result_is_kept_and_going_on_does_not_run_it_again(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")), fails(times=2, text="Refunded after all."))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])

    await replica.say("go")
    waiting = await replica.decide("approve")
    assert waiting.state is TaskState.INPUT_REQUIRED
    assert [(i.name, i.arguments) for i in waiting.interruptions] == [
        (CONTINUE, {"reason": "Scripted model: 503 overloaded"})
    ]
    again = await replica.decide("approve")
    assert again.state is TaskState.INPUT_REQUIRED
    assert again.interruptions[0].id != waiting.interruptions[0].id
    done = await replica.decide("approve")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Refunded after all.")
    assert seen.runs == [("refund", {"order": "A"})]


async def test_the_same_decision_sent_again_goes_on_too(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")), fails(text="Refunded after all."))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])

    await replica.say("go")
    waiting = await replica.decide({"c1": "approve"}, message_id="same")
    assert waiting.state is TaskState.INPUT_REQUIRED
    done = await replica.decide({"c1": "approve"}, message_id="same")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Refunded after all.")
    assert seen.runs == [("refund", {"order": "A"})]


async def test_a_person_may_end_the_run_instead(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")), fails(times=9))
    replica = Replica(redis, agent("desk", model, [seen.tool("refund")]), ["refund"])

    await replica.say("go")
    await replica.decide("approve")
    models = seen.models
    ended = await replica.decide("reject")
    assert ended.state is TaskState.CANCELED
    assert seen.models == models
    assert (await replica.ledger.resolve("s1")).calls == []


async def test_it_goes_on_in_another_process_too(redis: Redis) -> None:
    seen = Counter()

    def replica(*turns: object) -> Replica:
        return Replica(redis, agent("desk", seen.model(*turns), [seen.tool("refund")]), ["refund"])  # type: ignore[arg-type]

    first = calls(call("refund", "c1", order="A"))
    one = replica(first, fails(times=9))
    await one.say("go")
    await one.decide("approve")
    done = await replica(first, says("Refunded.")).decide("approve")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Refunded.")
    assert seen.runs == [("refund", {"order": "A"})]


async def test_a_tool_that_raises_is_a_result_for_the_model_and_is_not_run_again(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("refund", "c1", order="A")))
    tool = seen.tool("refund", RuntimeError("the bank said no"))
    replica = Replica(redis, agent("desk", model, [tool]), ["refund"])

    await replica.say("go")
    done = await replica.decide({"c1": "approve"}, message_id="same")
    assert "the bank said no" in reply(done)
    assert reply(await replica.decide({"c1": "approve"}, message_id="same")) == reply(done)
    assert len(seen.runs) == 1


@pytest.mark.parametrize(
    "verdicts", [{"c1": "reject"}, {"c1": "approve", "c2": "approve"}, {"c1": "approve", "c2": "reject"}]
)
async def test_any_decision_sent_again_goes_on_however_often_the_model_fails(
    redis: Redis, verdicts: dict[str, str]
) -> None:
    seen = Counter()
    script = calls(*(call("refund", name, order=name) for name in verdicts))
    replica = Replica(
        redis, agent("desk", seen.model(script, fails(times=2, text="At last.")), [seen.tool("refund")]), ["refund"]
    )
    await replica.say("go")
    for _ in range(2):
        assert (await replica.decide(dict(verdicts))).state is TaskState.INPUT_REQUIRED
    done = await replica.decide(dict(verdicts))
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "At last.")
    assert len(seen.runs) == list(verdicts.values()).count("approve")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_branch_that_asks_is_not_lost_when_the_model_of_another_branch_fails(redis: Redis) -> None:
    seen = Counter()
    one = agent("one", seen.model(calls(call("look", "f1", order="A")), fails(text="One.")), [seen.tool("look")])
    two = agent("two", seen.model(calls(call("refund", "c2", order="B")), says("Two.")), [seen.tool("refund")])
    replica = Replica(redis, ParallelAgent(name="both", sub_agents=[one, two]), ["refund"])
    paused = await replica.say("go")
    assert {i.name for i in paused.interruptions} == {CONTINUE, "refund"}
    done = await replica.decide("approve")
    assert done.state is TaskState.COMPLETED
    assert [name for name, _ in seen.runs] == ["look", "refund"]
    assert (await replica.ledger.resolve("s1")).calls == []
