"""kill -9 while a call waits for a say-so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.a2a03 import APPROVE, asked, reply, state
from support.killing import REFUND, VICTIMS, Victims
from support.processes import Shop, shared


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One replica."""
    with shared(tmp_path_factory.mktemp("shop") / "s", REFUND) as shop:
        yield shop


@pytest.mark.parametrize("victims", VICTIMS)
async def test_a_pause_outlives_the_death_of_what_held_it_and_is_then_decided(
    shop: Shop, session: str, victims: Victims
) -> None:
    await shop.whole()
    paused = await shop.a.say("Refund A-1", session)
    assert asked(paused) == [("c1", "refund")]

    await victims.die(shop)
    await victims.come_back(shop)

    again = await shop.a.task(paused["id"])
    assert (state(again), asked(again)) == ("input-required", [("c1", "refund")])
    assert again["history"] == paused["history"]
    assert shop.effects() == []
    done = await shop.a.decide(APPROVE, session)
    assert (state(done), reply(done)) == ("completed", "Refunded.")
    assert shop.effects() == ["refund"]
