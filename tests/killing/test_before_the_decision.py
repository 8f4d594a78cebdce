"""kill -9 while a call waits for a say-so."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.a2a03 import APPROVE, asked, reply, state
from support.killing import REFUND, VICTIMS, Victims
from support.processes import running


@pytest.mark.parametrize("victims", VICTIMS)
async def test_a_pause_outlives_the_death_of_what_held_it_and_is_then_decided(
    tmp_path: Path, victims: Victims
) -> None:
    async with running(tmp_path, REFUND) as shop:
        paused = await shop.a.say("Refund A-1", "s1")
        assert asked(paused) == [("c1", "refund")]

        await victims.die(shop)
        await victims.come_back(shop)

        again = await shop.a.task(paused["id"])
        assert (state(again), asked(again)) == ("input-required", [("c1", "refund")])
        assert again["history"] == paused["history"]
        assert shop.effects() == []
        done = await shop.a.decide(APPROVE, "s1")
        assert (state(done), reply(done)) == ("completed", "Refunded.")
        assert shop.effects() == ["refund"]
