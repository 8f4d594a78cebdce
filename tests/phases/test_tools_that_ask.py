"""Tools that ask something themselves, before, in the middle and for a value; gated and not."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from redis.asyncio import Redis

from sayso_approvals.records import Kind, Verdict
from sayso_runtime.messages import Answer, TaskState
from support.agents import Counter, Replica, agent, call, calls, reply, says, verdict


def _replica(redis: Redis, seen: Counter, tool: Any, gated: bool) -> Replica:
    model = seen.model(calls(call("wipe", "c1", disk="sda")), says("Done."))
    return Replica(redis, agent("desk", model, [tool]), ["wipe"] if gated else [])


@pytest.mark.parametrize("gated", [False, True])
async def test_a_function_that_requires_confirmation_asks_once(redis: Redis, gated: bool) -> None:
    seen = Counter()

    def wipe(disk: str) -> dict[str, str]:
        """Wipes a disk."""
        seen.ran("wipe", disk=disk)
        return {"wiped": disk}

    replica = _replica(redis, seen, FunctionTool(wipe, require_confirmation=True), gated)
    paused = await replica.say("go")
    assert [(i.id, i.kind) for i in paused.interruptions] == [("c1", Kind.TOOL_CALL if gated else Kind.CONFIRMATION)]
    assert seen.runs == []
    done = await replica.decide("approve")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert seen.runs == [("wipe", {"disk": "sda"})]


async def test_the_reason_of_a_refused_confirmation_reaches_the_model(redis: Redis) -> None:
    seen = Counter()

    def wipe(disk: str) -> dict[str, str]:
        """Wipes a disk."""
        seen.ran("wipe", disk=disk)
        return {"wiped": disk}

    model = seen.model(calls(call("wipe", "c1", disk="sda")))
    replica = Replica(redis, agent("desk", model, [FunctionTool(wipe, require_confirmation=True)]), [])
    await replica.say("go")
    done = await replica.decide({"c1": verdict("reject", "wrong disk")})
    assert "Rejected by alice: wrong disk" in reply(done)
    assert seen.runs == []


@pytest.mark.parametrize("gated", [False, True])
async def test_a_function_may_ask_in_its_middle_and_each_question_is_a_phase(redis: Redis, gated: bool) -> None:
    seen = Counter()

    def wipe(disk: str, tool_context: ToolContext) -> dict[str, Any]:
        """Wipes a disk."""
        answer = tool_context.tool_confirmation
        if answer is None or not isinstance(answer.payload, dict) or "token" not in answer.payload:
            seen.ran("asked", disk=disk)
            tool_context.request_confirmation(hint="Really?", payload={"token": 7})
            return {"status": "asked"}
        seen.ran("wipe", disk=disk)
        return {"wiped": disk, "token": answer.payload["token"]}

    replica = _replica(redis, seen, FunctionTool(wipe), gated)
    paused = await replica.say("go")
    if gated:
        assert seen.runs == []
        paused = await replica.decide("approve")
    assert [(i.id, i.kind, i.hint, i.payload) for i in paused.interruptions] == [
        ("c1", Kind.CONFIRMATION, "Really?", {"token": 7})
    ]
    assert seen.runs == [("asked", {"disk": "sda"})]
    done = await replica.decide("approve")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert seen.runs == [("asked", {"disk": "sda"}), ("wipe", {"disk": "sda"})]


@pytest.mark.parametrize("gated", [False, True])
async def test_a_long_running_function_waits_for_a_value(redis: Redis, gated: bool) -> None:
    seen = Counter()

    def wipe(disk: str) -> dict[str, str]:
        """Asks for a ticket to wipe a disk."""
        seen.ran("ticket", disk=disk)
        return {"status": "pending", "ticket": "T-1"}

    model = seen.model(calls(call("wipe", "c1", disk="sda")))
    replica = Replica(redis, agent("desk", model, [LongRunningFunctionTool(wipe)]), ["wipe"] if gated else [])
    paused = await replica.say("go")
    if gated:
        assert seen.runs == []
        paused = await replica.decide("approve")
    assert [(i.id, i.kind) for i in paused.interruptions] == [("c1", Kind.INPUT_REQUIRED)]
    assert seen.runs == [("ticket", {"disk": "sda"})]
    done = await replica.decide({"c1": Answer(Verdict.ANSWERED, "", {"approved": "by the board"}, True)})
    assert done.state is TaskState.COMPLETED
    assert "by the board" in reply(done)
    assert seen.runs == [("ticket", {"disk": "sda"})]
