"""kill -9 after a tool's result was stored, while the model is called with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sayso_api.runtimeconfig import ScriptedTurn
from sayso_approvals.records import execution_of
from support.a2a03 import APPROVE, reply
from support.agents import call, calls
from support.held_agent import config_of, script
from support.killing import REFUND, VICTIMS, Victims, heard
from support.processes import running, until, write_config


@pytest.mark.parametrize("victims", VICTIMS)
async def test_a_stored_result_goes_to_the_model_and_the_tool_does_not_run_again(
    tmp_path: Path, victims: Victims
) -> None:
    # A replica that is killed would never have had its reply; one that lives on goes on after a while.
    waits = ScriptedTurn(text="Refunded.", delay_seconds=600.0 if victims.agent else 2.0)
    async with running(tmp_path, script(calls(call("refund", "c1", order="A-1")), waits)) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))

        async def stored() -> bool:
            return execution_of(await shop.call("s1")) == "succeeded"

        await until(stored, "the result is stored")
        await victims.die(shop)
        write_config(shop, config_of(REFUND, None))
        await victims.come_back(shop)

        await heard(sent)
        done = await shop.a.becomes(paused["id"], "completed")
        assert reply(done) == "Refunded."
        assert shop.effects() == ["refund"]
        assert await shop.a.model_calls() == (1 if victims.agent else 2)
