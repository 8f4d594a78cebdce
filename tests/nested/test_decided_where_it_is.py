"""The pause of a called agent is decided there, or cancelled here, and whoever waits goes on."""

from __future__ import annotations

import contextlib

import pytest
from redis.asyncio import Redis

from sayso_approvals.records import NEVER, Verdict
from support import a2a03
from support.a2a03 import Refused, batch, reply, state
from support.agents import call, calls
from support.family import Family, Member, family, inner
from support.processes import until


async def _pair(home: Family, *more: str) -> tuple[Member, Member]:
    again = [calls(call("wipe", name, order=name)) for name in more]
    child = await home.add("child", calls(call("refund", "k1", order="A-1")), *again)
    root = await home.add("root", calls(call("shop__NS__child", "p1", request="go")), children=["child"])
    return root, child


@pytest.mark.parametrize(("verdict", "ran"), [(Verdict.APPROVED, [("refund", "A-1")]), (Verdict.REJECTED, [])])
async def test_the_caller_goes_on_by_itself(redis: Redis, verdict: Verdict, ran: list[tuple[str, str]]) -> None:
    async with family(redis) as home:
        root, child = await _pair(home)
        paused = await root.say()
        await child.decide_aside(verdict, "as bob says")
        done = await root.becomes(paused, "completed")
        assert home.ran == ran
        assert ("Rejected by bob: as bob says" in reply(done)) is (verdict is Verdict.REJECTED)


async def test_the_caller_shows_what_waits_next(redis: Redis) -> None:
    async with family(redis) as home:
        root, child = await _pair(home, "k2")
        paused = await root.say()
        await child.decide_aside(Verdict.APPROVED)

        async def next_one() -> bool:
            return inner(await root.post(a2a03.get_task(paused["id"]))) == [("k2", "wipe")]

        await until(next_one, "the second pause of the child at its caller")
        done = await root.decide(batch(k2="approve"))
        assert (state(done), home.ran) == ("completed", [("refund", "A-1"), ("wipe", "k2")])


async def test_a_decision_that_comes_second_changes_nothing_and_the_caller_goes_on(redis: Redis) -> None:
    async with family(redis) as home:
        root, child = await _pair(home)
        paused = await root.say()
        await child.decide_aside(Verdict.REJECTED, "no")
        with contextlib.suppress(Refused):  # where the look at the child came first
            await root.decide(batch(k1="approve"))
        done = await root.becomes(paused, "completed")
        assert "Rejected by bob: no" in reply(done)
        assert home.ran == []


async def test_what_was_decided_while_the_caller_was_down_is_seen_when_it_is_back(redis: Redis) -> None:
    async with family(redis) as home:
        root, child = await _pair(home)
        paused = await root.say()
        await root.stop()
        await child.decide_aside(Verdict.APPROVED)
        await until(lambda: home.ran, "the child's tool")
        await root.start()
        await root.becomes(paused, "completed")
        assert home.ran == [("refund", "A-1")]


async def test_it_waits_as_long_as_the_called_agent_does(redis: Redis) -> None:
    async with family(redis) as home:
        root, _ = await _pair(home)
        await root.say()
        (view,) = await root.open()
        assert (view.call.kind, view.expires_at) == ("forward", NEVER)
        assert root.ledger is not None
        assert await root.ledger.expire_due() == 0


async def test_cancelling_here_cancels_there_first(redis: Redis) -> None:
    async with family(redis) as home:
        root, child = await _pair(home)
        paused = await root.say()
        (below,) = await child.open()
        ended = await root.post({"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {"id": paused["id"]}})
        assert (state(ended), home.ran, await child.open()) == ("canceled", [], [])
        assert child.ledger is not None
        (view,) = await child.ledger.view(below.pause.pause_id)
        assert view.state.verdict is not None
        assert view.state.verdict.verdict is Verdict.CANCELLED
