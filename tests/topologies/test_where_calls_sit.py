"""The gate holds wherever ADK can put a call, and an answer that ADK drops is open again."""

from __future__ import annotations

import pytest
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.workflow import JoinNode, Workflow
from redis.asyncio import Redis

from sayso_runtime.messages import Task, TaskState
from support.agents import Counter, Replica, agent, call, calls, says

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # ADK's own, about its older agent classes


async def _approve_all(replica: Replica, task: Task, most: int = 6) -> Task:
    for _ in range(most):
        if task.state is not TaskState.INPUT_REQUIRED:
            return task
        task = await replica.decide({task.interruptions[0].id: "approve"})
    return task


async def test_a_sub_agent_reached_by_transfer(redis: Redis) -> None:
    seen = Counter()
    transfer = calls(call("transfer_to_agent", agent_name="polite"))
    model = seen.model(transfer, calls(call("refund", "c1", order="A")), says("Kindly done."))
    polite = agent("polite", model, [seen.tool("refund")], description="polite")
    root = agent("desk", model, sub_agents=[polite])
    replica = Replica(redis, root, ["refund"])

    paused = await replica.say("go")
    assert [i.id for i in paused.interruptions] == ["c1"]
    assert seen.runs == []
    done = await replica.decide("approve")
    assert done.state is TaskState.COMPLETED
    assert seen.runs == [("refund", {"order": "A"})]


@pytest.mark.parametrize("mode", ["task", "single_turn"])
async def test_a_sub_agent_that_is_called_as_a_task(redis: Redis, mode: str) -> None:
    seen = Counter()
    finish = calls(call("finish_task", result="done")) if mode == "task" else says("sub done")
    helper = agent(
        "helper",
        seen.model(calls(call("refund", "c1", order="A")), finish, says("sub done")),
        [seen.tool("refund")],
        mode=mode,
        description="helps",
    )
    root = agent("desk", seen.model(calls(call("helper", request="refund A")), says("Root done.")), sub_agents=[helper])
    replica = Replica(redis, root, ["refund"])

    paused = await replica.say("go")
    assert [i.id for i in paused.interruptions] == ["c1"]
    assert seen.runs == []
    done = await replica.decide("approve")
    assert done.state is TaskState.COMPLETED
    assert seen.runs == [("refund", {"order": "A"})]


def _worker(seen: Counter, n: int) -> object:
    model = seen.model(calls(call(f"refund{n}", f"c{n}", order=str(n))), says(f"w{n} done"))
    return agent(f"w{n}", model, [seen.tool(f"refund{n}")])


async def test_agents_in_sequence(redis: Redis) -> None:
    seen = Counter()
    script = [said for n in (1, 2) for said in (calls(call(f"refund{n}", f"c{n}", order=str(n))), says(f"w{n} done"))]
    workers = [agent(f"w{n}", seen.model(*script), [seen.tool(f"refund{n}")]) for n in (1, 2)]
    replica = Replica(redis, SequentialAgent(name="seq", sub_agents=workers), ["refund1", "refund2"])

    paused = await replica.say("go")
    assert [i.id for i in paused.interruptions] == ["c1"]
    paused = await replica.decide("approve")
    assert [i.id for i in paused.interruptions] == ["c2"]
    done = await replica.decide("approve")
    assert done.state is TaskState.COMPLETED
    assert [name for name, _ in seen.runs] == ["refund1", "refund2"]


async def test_agents_in_a_loop(redis: Redis) -> None:
    seen = Counter()
    replica = Replica(redis, LoopAgent(name="loop", sub_agents=[_worker(seen, 1)], max_iterations=1), ["refund1"])

    paused = await replica.say("go")
    assert [i.id for i in paused.interruptions] == ["c1"]
    done = await replica.decide("approve")
    assert done.state is TaskState.COMPLETED
    assert seen.runs == [("refund1", {"order": "1"})]


async def test_agents_in_parallel_answered_in_one_message(redis: Redis) -> None:
    seen = Counter()
    root = ParallelAgent(name="par", sub_agents=[_worker(seen, 1), _worker(seen, 2)])
    replica = Replica(redis, root, ["refund1", "refund2"])

    paused = await replica.say("go")
    assert sorted(i.id for i in paused.interruptions) == ["c1", "c2"]
    assert seen.runs == []
    done = await _approve_all(replica, await replica.decide({"c1": "approve", "c2": "approve"}))
    assert done.state is TaskState.COMPLETED
    assert sorted(name for name, _ in seen.runs) == ["refund1", "refund2"]


async def test_agents_in_parallel_answered_one_by_one(redis: Redis) -> None:
    seen = Counter()
    root = ParallelAgent(name="par", sub_agents=[_worker(seen, 1), _worker(seen, 2)])
    replica = Replica(redis, root, ["refund1", "refund2"])

    await replica.say("go")
    paused = await replica.decide({"c2": "approve"})
    assert [i.id for i in paused.interruptions] == ["c1"]
    assert [name for name, _ in seen.runs] == ["refund2"]
    done = await replica.decide({"c1": "reject"})
    assert done.state is TaskState.COMPLETED
    assert [name for name, _ in seen.runs] == ["refund2"]


async def test_a_workflow_that_fans_out(redis: Redis) -> None:
    seen = Counter()
    one, two = _worker(seen, 1), _worker(seen, 2)
    root = Workflow(name="flow", edges=[("START", (one, two), JoinNode(name="join"))])
    replica = Replica(redis, root, ["refund1", "refund2"])

    paused = await replica.say("go")
    assert sorted(i.id for i in paused.interruptions) == ["c1", "c2"]
    assert seen.runs == []
    done = await _approve_all(replica, await replica.decide({"c1": "approve", "c2": "approve"}))
    assert done.state is TaskState.COMPLETED
    assert sorted(name for name, _ in seen.runs) == ["refund1", "refund2"]


async def test_an_answer_that_adk_drops_is_open_again_and_can_be_cancelled(redis: Redis) -> None:
    """Of two single-turn agents called in one reply, ADK 2.13 resumes only the first."""
    seen = Counter()
    subs = [
        agent(
            f"w{n}",
            seen.model(calls(call(f"refund{n}", f"c{n}", order=str(n))), says(f"w{n} done")),
            [seen.tool(f"refund{n}")],
            mode="single_turn",
            description="w",
        )
        for n in (1, 2)
    ]
    both = calls(call("w1", request="a"), call("w2", request="b"))
    replica = Replica(redis, agent("desk", seen.model(both, says("Root.")), sub_agents=subs), ["refund1", "refund2"])

    paused = await replica.say("go")
    assert [i.id for i in paused.interruptions] == ["c1", "c2"]
    paused = await replica.decide({"c1": "approve", "c2": "approve"})
    assert seen.runs == [("refund1", {"order": "1"})]
    assert [i.id for i in paused.interruptions] == ["c2"]
    assert "decide again" in paused.interruptions[0].hint
    done = await replica.decide({"c2": "cancel"})
    assert done.state is TaskState.COMPLETED
    assert seen.runs == [("refund1", {"order": "1"})]
