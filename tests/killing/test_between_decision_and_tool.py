"""kill -9 after a decision was recorded and before its call was started."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from sayso_approvals.records import Verdict, execution_of
from support.a2a03 import APPROVE, asked, reply, state
from support.killing import REFUND, VICTIMS, Victims, heard, one_call
from support.processes import running


async def test_a_decision_recorded_while_nothing_of_the_agent_runs_is_carried_out_at_its_next_start(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, REFUND) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        await shop.a.kill()

        await shop.decide_aside("s1", Verdict.APPROVED)
        await shop.redis.kill()
        await shop.redis.start()
        assert shop.effects() == []

        await shop.a.start()
        done = await shop.a.becomes(paused["id"], "completed")
        assert reply(done) == "Refunded."
        assert shop.effects() == ["refund"]


async def test_a_rejection_recorded_while_nothing_of_the_agent_runs_reaches_the_model_and_runs_nothing(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, one_call("refund")) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        await shop.a.kill()
        await shop.decide_aside("s1", Verdict.REJECTED)

        await shop.a.start()
        done = await shop.a.becomes(paused["id"], "completed")
        assert "Rejected by bob" in reply(done)
        assert shop.effects() == []


@pytest.mark.parametrize("victims", VICTIMS)
async def test_a_claimed_decision_outlives_the_death_of_its_replica_and_of_redis_and_is_carried_out_once(
    tmp_path: Path, victims: Victims
) -> None:
    async with running(tmp_path, REFUND, stops=True) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        shop.touch("stop-at-claimed")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("stopped-at-claimed")
        assert execution_of(await shop.call("s1")) == "not_started"

        await victims.die(shop)
        if victims.agent:
            await victims.come_back(shop)
        else:
            await shop.redis.start()
            shop.a.process.send(signal.SIGCONT)

        await heard(sent)
        done = await shop.a.becomes(paused["id"], "completed")
        assert reply(done) == "Refunded."
        assert shop.effects() == ["refund"]


async def test_a_call_whose_start_is_on_record_is_of_unknown_outcome_though_it_was_never_sent(tmp_path: Path) -> None:
    async with running(tmp_path, one_call("refund"), stops=True) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        shop.touch("stop-at-begun")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("stopped-at-begun")
        await shop.a.kill()
        await heard(sent)

        await shop.a.start()
        waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
        assert (state(waiting), asked(waiting)) == (
            "input-required",
            [("c1:outcome:1", "sayso_outcome_unknown")],
        )
        assert shop.effects() == []
        await shop.settle("s1", "retry")
        done = await shop.a.becomes(paused["id"], "completed")
        assert "refund A-1: done" in reply(done)
        assert shop.effects() == ["refund"]
