"""A pause that goes on in another process than the one that made it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from sayso_approvals.records import execution_of
from support.a2a03 import APPROVE, Refused, reply, state
from support.killing import REFUND, heard, one_call
from support.processes import running, until


async def test_a_resume_in_another_process_runs_the_tool_once_and_calls_no_model_before_it(tmp_path: Path) -> None:
    async with running(tmp_path, REFUND, replicas=2) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        assert state(paused) == "input-required"
        assert (await shop.a.model_calls(), await shop.b.model_calls()) == (1, 0)
        await shop.a.kill()

        shop.touch("hold-refund-before")
        sent = asyncio.create_task(shop.b.decide(APPROVE, "s1"))
        await shop.there("at-refund-before")
        assert await shop.b.model_calls() == 0
        shop.touch("go")
        done = await sent

        assert (done["id"], state(done), reply(done)) == (paused["id"], "completed", "Refunded.")
        assert await shop.b.model_calls() == 1
        assert shop.effects() == ["refund"]


@pytest.mark.parametrize("tool", ["refund", "charge"])
async def test_a_replica_that_was_stopped_before_it_sent_a_call_does_not_send_it_after_the_call_was_settled(
    tmp_path: Path, tool: str
) -> None:
    options = {"mcp": tool == "charge", "tool_seconds": 0.5, "replicas": 2, "stops": True}
    async with running(tmp_path, one_call(tool), **options) as shop:
        paused = await shop.a.say("Go", "s1")
        shop.touch("stop-at-begun")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("stopped-at-begun")

        async def doubtful() -> bool:
            return execution_of(await shop.call("s1")) == "outcome_unknown"

        await until(doubtful, "the other replica takes over")
        await shop.settle("s1", "abandon")
        done = await shop.b.becomes(paused["id"], "completed")
        assert "bob abandoned it" in await shop.told("s1")

        shop.a.process.send(signal.SIGCONT)
        answer = await heard(sent)
        assert isinstance(answer, Refused)
        assert answer.code == "busy"
        assert shop.effects() == []
        assert await shop.b.task(paused["id"]) == done
