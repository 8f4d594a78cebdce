"""SIGTERM: what runs is finished, what waits goes on waiting, and nothing new is begun."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from sayso_approvals.records import Verdict, execution_of
from support.a2a03 import APPROVE, asked, reply, state
from support.killing import heard, one_call
from support.processes import Shop, running, until

TERM = signal.SIGTERM


async def stopping(shop: Shop) -> None:
    """Asks replica a to stop, and waits until it has understood."""
    shop.a.process.send(TERM)
    await until(lambda: shop.a.process.said("SIGTERM: finishing what runs"), "the log says that it stops")


async def without_requests(shop: Shop) -> None:
    """Waits until replica a, which stops, has answered its clients and waits only for what runs without one."""
    await until(lambda: shop.a.process.said("no request is left"), "the log says that no request is left")


@pytest.mark.parametrize("tool", ["refund", "charge"])
async def test_a_tool_that_runs_at_sigterm_is_finished_its_result_stored_and_the_client_answered(
    tmp_path: Path, session: str, tool: str
) -> None:
    async with running(tmp_path / "s", one_call(tool), mcp=tool == "charge", replicas=2) as shop:
        paused = await shop.a.say("Go", session)
        shop.touch(f"hold-{tool}-before")
        sent = asyncio.create_task(shop.a.decide(APPROVE, session))
        await shop.there(f"at-{tool}-before")

        await stopping(shop)
        shop.touch("go")
        done = await sent
        assert (done["id"], state(done), reply(done)) == (paused["id"], "completed", "Done.")
        assert await shop.a.process.ended() == 0
        assert await shop.b.task(paused["id"]) == done
        assert execution_of(await shop.call(session)) == "succeeded"
        assert shop.effects() == [tool]


async def test_a_tool_that_runs_unasked_at_sigterm_is_finished_and_its_result_stored(
    tmp_path: Path, session: str
) -> None:
    async with running(tmp_path / "s", one_call("refund")) as shop:
        paused = await shop.a.say("Go", session)
        shop.touch("hold-refund-before")
        await shop.decide_aside(session, Verdict.APPROVED)
        await shop.there("at-refund-before")

        await stopping(shop)
        await without_requests(shop)
        shop.touch("go")
        assert await shop.a.process.ended() == 0
        assert execution_of(await shop.call(session)) == "succeeded"
        assert shop.effects() == ["refund"]

        await shop.a.start()
        assert reply(await shop.a.becomes(paused["id"], "completed")) == "Done."
        assert shop.effects() == ["refund"]


async def test_a_tool_whose_client_has_left_is_finished_at_sigterm(tmp_path: Path, session: str) -> None:
    async with running(tmp_path / "s", one_call("refund")) as shop:
        await shop.a.say("Go", session)
        shop.touch("hold-refund-before")
        await shop.a.decide(APPROVE, session, blocking=False)
        await shop.there("at-refund-before")
        await stopping(shop)
        await without_requests(shop)
        shop.touch("go")
        assert await shop.a.process.ended() == 0
        assert (await shop.call(session)).state.done
        assert shop.effects() == ["refund"]


async def test_a_pause_stays_as_it_was_and_a_verdict_that_comes_meanwhile_is_not_begun(
    tmp_path: Path, session: str
) -> None:
    async with running(tmp_path / "s", one_call("refund")) as shop:
        paused = await shop.a.say("Go", session)
        shop.a.process.send(TERM)
        assert await shop.a.process.ended() == 0
        assert (await shop.call(session)).open
        await shop.decide_aside(session, Verdict.APPROVED)
        assert shop.effects() == []

        await shop.a.start()
        done = await shop.a.becomes(paused["id"], "completed")
        assert reply(done) == "Done."
        assert shop.effects() == ["refund"]


async def test_a_call_that_outlives_the_grace_period_is_of_unknown_outcome(tmp_path: Path, session: str) -> None:
    async with running(tmp_path / "s", one_call("refund"), replicas=2, options=["--grace-seconds", "0.5"]) as shop:
        paused = await shop.a.say("Go", session)
        shop.touch("hold-refund-after")
        sent = asyncio.create_task(shop.a.decide(APPROVE, session))
        await shop.there("at-refund-after")

        shop.a.process.send(TERM)
        await shop.a.process.ended()
        await heard(sent)
        waiting = await shop.b.asks(paused["id"], "sayso_outcome_unknown")
        assert asked(waiting) == [("c1:outcome:1", "sayso_outcome_unknown")]
        assert execution_of(await shop.call(session)) == "outcome_unknown"
        await shop.settle(session, "result", {"seen": True})
        await shop.b.becomes(paused["id"], "completed")
        assert shop.effects() == ["refund"]
