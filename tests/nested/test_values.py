"""Values that a called agent wants, and questions that changed after they were shown."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from sayso_api.runtimeconfig import FunctionBinding
from sayso_approvals.records import Verdict
from support import a2a03
from support.a2a03 import APPROVE, Refused, batch, reply, state
from support.agents import call, calls
from support.family import Family, Member, family, inner, payloads
from support.processes import until

TICKET = FunctionBinding(ref="support.shop_tools:slow_wipe")


async def _three(home: Family) -> Member:
    await home.add("leaf", calls(call("wipe", "k1", customer="C-1")), more=[TICKET], tools=())
    await home.add("middle", calls(call("shop__NS__leaf", "m1", request="go")), children=["leaf"])
    return await home.add("root", calls(call("shop__NS__middle", "p1", request="go")), children=["middle"])


async def test_a_value_is_asked_for_at_the_top_and_reaches_the_one_that_wants_it(redis: Redis) -> None:
    async with family(redis) as home:
        root = await _three(home)
        paused = await root.say()
        assert inner(paused) == [("k1", "wipe")]
        for said in (APPROVE, batch(k1="approve")):
            with pytest.raises(Refused) as refused:
                await root.decide(said)
            assert refused.value.code == "malformed_decision"
        (payload,) = payloads(paused)
        question = payload["hitl_parts"][0]["id"]
        done = await root.post(a2a03.value(question, {"board": "agrees"}, "s1"))
        assert state(done) == "completed"
        assert "agrees" in reply(done)


async def test_an_approval_of_one_question_is_not_one_of_the_next(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(self: object, view: object) -> bool:
        return False

    monkeypatch.setattr("sayso_runtime.tools.remote_agent.RemoteAgentTool.has_moved", never)
    async with family(redis) as home:
        child = await home.add("child", calls(call("careful", "k1", order="A-1")))
        root = await home.add("root", calls(call("shop__NS__child", "p1", request="go")), children=["child"])
        await root.say()
        await child.decide_aside(Verdict.APPROVED)

        async def asks_again() -> bool:
            return [view.call.phase for view in await child.open()] == [2]

        await until(asks_again, "the second question of the child")
        again = await root.decide(batch(k1="approve"))  # what was seen was the first question
        assert (state(again), inner(again), home.ran) == ("input-required", [("k1", "careful")], [])
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("careful", "A-1")])


async def test_a_new_message_that_cancels_the_pause_cancels_it_below(redis: Redis) -> None:
    async with family(redis) as home:
        child = await home.add("child", calls(call("refund", "k1", order="A-1")))
        root = await home.add(
            "root",
            calls(call("shop__NS__child", "p1", request="go")),
            children=["child"],
            while_paused="CancelPause",
        )
        paused = await root.say()
        await root.say("never mind")
        assert (await child.open(), home.ran) == ([], [])
        assert state(await root.post(a2a03.get_task(paused["id"]))) == "canceled"
