"""Tool servers that moved, or gave no answer: each call for itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.tools.function_tool import FunctionTool
from redis.asyncio import Redis

from sayso_approvals.ledger import Choice
from sayso_approvals.records import CallView, Verdict
from sayso_runtime.messages import TaskState
from sayso_runtime.process import check_reachable
from sayso_runtime.service import RunService
from sayso_runtime.tools.outcome import OutcomeUnknown
from support.agents import Counter, Replica, agent, call, calls, reply, says


class Servers:
    """Where two servers are now, as a toolbox says it."""

    def problems(self) -> list[Any]:
        return []

    def endpoint(self, server: str) -> str:
        return {"shop/a": "http://a", "shop/b": "http://new"}[server]


def _tool(seen: Counter, name: str, endpoint: str) -> FunctionTool:
    tool = seen.tool(name)
    for key, value in {"server": f"shop/{name}", "endpoint": endpoint, "tool": name}.items():
        setattr(tool, key, value)
    return tool


async def test_of_two_approved_calls_the_one_whose_server_moved_opens_again_and_the_other_runs(redis: Redis) -> None:
    seen = Counter()
    model = seen.model(calls(call("a", "c1", order="A"), call("b", "c2", order="B")), says("Done."))
    before = Replica(
        redis, agent("desk", model, [_tool(seen, "a", "http://a"), _tool(seen, "b", "http://old")]), ["a", "b"]
    )
    paused = await before.say("go")
    for view in await before.ledger.calls():
        choice = Choice(view.pause.pause_id, view.call.call_id, view.call.digest, Verdict.APPROVED)
        await before.ledger.decide([choice], by="bob", via="cli", decision_id="d")

    after = Replica(
        redis, agent("desk", model, [_tool(seen, "a", "http://a"), _tool(seen, "b", "http://new")]), ["a", "b"]
    )

    async def reachable(views: Sequence[CallView]) -> None:
        check_reachable(views, Servers())  # type: ignore[arg-type]

    after.service = RunService(after.ledger, after.turns, reachable=reachable)
    await after.service.go_on("s1")
    assert [name for name, _ in seen.runs] == ["a"]
    left = await after.service.get(paused.id, requester="alice")
    assert left.state is TaskState.INPUT_REQUIRED
    assert [i.id for i in left.interruptions] == ["c2"]
    assert "http://old" in left.interruptions[0].hint
    done = await after.decide("cancel")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert [name for name, _ in seen.runs] == ["a"]


async def test_an_idempotent_tool_that_gave_no_answer_is_called_again_without_asking(redis: Redis) -> None:
    seen = Counter()

    async def refund(order: str) -> dict[str, str]:
        """Refunds an order."""
        seen.ran("refund", order=order)
        if len(seen.runs) == 1:
            raise OutcomeUnknown("refund", "shop/a", "timed out")
        return {"refunded": order}

    tool = FunctionTool(refund)
    for key, value in {"server": "shop/a", "endpoint": "http://a", "tool": "refund", "idempotent": True}.items():
        setattr(tool, key, value)
    model = seen.model(calls(call("refund", "c1", order="A")), says("Done."))
    replica = Replica(redis, agent("desk", model, [tool]), ["refund"])
    await replica.say("go")
    done = await replica.decide("approve")
    assert (done.state, reply(done)) == (TaskState.COMPLETED, "Done.")
    assert len(seen.runs) == 2
