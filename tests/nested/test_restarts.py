"""Agents that stop and come back while one waits for the other."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from sayso_api.runtimeconfig import AgentBinding
from support.a2a03 import APPROVE, batch, reply, state
from support.agents import call, calls, says
from support.family import Family, Member, family, inner


async def _pair(home: Family) -> tuple[Member, Member]:
    child = await home.add("child", calls(call("refund", "k1", order="A-1")), says("All done."))
    root = await home.add("root", calls(call("shop__NS__child", "p1", request="go")), children=["child"])
    return root, child


async def test_the_caller_is_restarted_while_the_called_agent_waits(redis: Redis) -> None:
    async with family(redis) as home:
        root, _ = await _pair(home)
        await root.say()
        await root.stop()
        await root.start()
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])
        assert "All done." in reply(done)


async def test_the_called_agent_is_restarted_while_it_waits(redis: Redis) -> None:
    async with family(redis) as home:
        root, child = await _pair(home)
        await root.say()
        await child.stop()
        await child.start()
        done = await root.decide(APPROVE)
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])


async def test_a_decision_for_an_agent_that_is_down_stays_with_the_caller(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sayso_runtime.tools.agent_talk.COMES_BACK", 0.0)
    async with family(redis) as home:
        root, child = await _pair(home)
        await root.say()
        await child.stop()
        again = await root.decide(batch(k1="approve"))
        assert (state(again), inner(again), home.ran) == ("input-required", [("k1", "refund")], [])
        assert "shop/child" in again["status"]["message"]["parts"][0]["data"]["args"]["toolConfirmation"]["hint"]
        await child.start()
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])


async def test_cancelling_what_waits_for_an_agent_that_is_gone_says_so(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sayso_runtime.tools.agent_talk.COMES_BACK", 0.0)
    async with family(redis) as home:
        root, child = await _pair(home)
        paused = await root.say()
        await child.stop()
        ended = await root.post({"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {"id": paused["id"]}})
        assert state(ended) == "canceled"
        assert "The agent shop/child could not be told" in reply(ended)
        assert state(await root.say("again")) in ("completed", "input-required")


async def test_another_replica_of_the_called_agent_answers_where_one_is_down(redis: Redis) -> None:
    async with family(redis) as home:
        child = await home.add("child", calls(call("refund", "k1", order="A-1")))
        down = AgentBinding(name="child", namespace="shop", url="http://127.0.0.1:9/", more_urls=(child.url,))
        root = await home.add("root", calls(call("shop__NS__child", "p1", request="go")), more=[down])
        await root.say()
        done = await root.decide(batch(k1="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1")])
