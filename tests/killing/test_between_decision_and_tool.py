"""kill -9 after a decision was recorded and before its call was sent."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator

import pytest

from sayso_approvals.records import Verdict, execution_of
from support.a2a03 import APPROVE, asked, reply, state
from support.killing import REFUND, VICTIMS, Victims, heard
from support.processes import Shop, shared


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One replica, which can stop itself between the steps of a call."""
    with shared(tmp_path_factory.mktemp("shop") / "s", REFUND, stops=True) as shop:
        yield shop


async def test_a_decision_recorded_while_nothing_of_the_agent_runs_is_carried_out_at_its_next_start(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    paused = await shop.a.say("Refund A-1", session)
    await shop.a.kill()

    await shop.decide_aside(session, Verdict.APPROVED)
    await shop.redis.kill()
    await shop.redis.start()
    assert shop.effects() == []

    await shop.a.start()
    done = await shop.a.becomes(paused["id"], "completed")
    assert reply(done) == "Refunded."
    assert shop.effects() == ["refund"]


async def test_a_rejection_recorded_while_nothing_of_the_agent_runs_reaches_the_model_and_runs_nothing(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    paused = await shop.a.say("Refund A-1", session)
    await shop.a.kill()
    await shop.decide_aside(session, Verdict.REJECTED)

    await shop.a.start()
    await shop.a.becomes(paused["id"], "completed")
    assert "Rejected by bob" in await shop.told(session)
    assert shop.effects() == []


@pytest.mark.parametrize("victims", VICTIMS)
async def test_a_claimed_decision_outlives_the_death_of_its_replica_and_of_redis_and_is_carried_out_once(
    shop: Shop, session: str, victims: Victims
) -> None:
    await shop.whole()
    paused = await shop.a.say("Refund A-1", session)
    shop.touch("stop-at-claimed")
    sent = asyncio.create_task(shop.a.decide(APPROVE, session))
    await shop.there("stopped-at-claimed")
    assert execution_of(await shop.call(session)) == "not_started"

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


async def test_a_call_whose_start_is_on_record_is_of_unknown_outcome_though_it_was_never_sent(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    paused = await shop.a.say("Refund A-1", session)
    shop.touch("stop-at-begun")
    sent = asyncio.create_task(shop.a.decide(APPROVE, session))
    await shop.there("stopped-at-begun")
    await shop.a.kill()
    await heard(sent)

    await shop.a.start()
    waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
    assert (state(waiting), asked(waiting)) == ("input-required", [("c1:outcome:1", "sayso_outcome_unknown")])
    assert shop.effects() == []
    await shop.settle(session, "retry")
    done = await shop.a.becomes(paused["id"], "completed")
    assert reply(done) == "Refunded."
    assert shop.effects() == ["refund"]
