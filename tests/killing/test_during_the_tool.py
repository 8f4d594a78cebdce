"""kill -9 while a tool runs: at most one effect, and where nobody can know, a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sayso_approvals.records import execution_of
from sayso_approvals.refusals import Refusal
from support.a2a03 import APPROVE, asked, batch, questions, state
from support.killing import AGENT, BOTH, TWO_TOOLS, Victims, heard, one_call
from support.processes import Shop, running, shared, until


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One replica, with a tool in its own process (c1) and one in a server's (c2)."""
    with shared(tmp_path_factory.mktemp("shop") / "s", TWO_TOOLS, mcp=True, tool_seconds=0.5) as shop:
        yield shop


@pytest.mark.parametrize(
    ("victims", "settlements", "told", "effects"),
    [
        pytest.param(
            AGENT,
            {"c1": ("retry", None), "c2": ("result", {"charged": "A-2"})},
            {"c1": "refund A-1: done", "c2": '{"charged": "A-2"}'},
            ["charge", "refund"],
            id="agent",
        ),
        pytest.param(
            BOTH,
            {"c1": ("abandon", None), "c2": ("abandon", None)},
            {"c1": "bob abandoned it", "c2": "bob abandoned it"},
            ["charge"],
            id="both",
        ),
    ],
)
async def test_calls_cut_off_before_and_after_their_effect_wait_as_outcome_unknown_and_go_on_as_a_person_settles_them(
    shop: Shop,
    session: str,
    victims: Victims,
    settlements: dict[str, tuple[str, Any]],
    told: dict[str, str],
    effects: list[str],
) -> None:
    await shop.whole()
    paused = await shop.a.say("Go", session)
    shop.touch("hold-refund-before", "hold-charge-after")
    sent = asyncio.create_task(shop.a.decide(APPROVE, session))
    await shop.there("at-refund-before")
    await shop.there("at-charge-after")
    assert shop.effects() == ["charge"]

    await victims.die(shop)
    await heard(sent)
    shop.touch("go")
    await victims.come_back(shop)

    waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
    assert state(waiting) == "input-required"
    assert asked(waiting) == [(f"{n}:outcome:1", "sayso_outcome_unknown") for n in ("c1", "c2")]
    for question, tool, order in zip(questions(waiting), ("refund", "charge"), ("A-1", "A-2"), strict=True):
        assert (question["args"]["tool"], question["args"]["arguments"]) == (tool, {"order": order})
        assert (question["args"]["approve"], question["args"]["reject"]) == ("run it again", "leave it")
        assert "outcome unknown" in question["hint"]
    for call_id in ("c1", "c2"):
        assert execution_of(await shop.call(session, call_id)) == "outcome_unknown"
    again = await shop.a.say("And now?", session)
    assert (again["id"], asked(again)) == (paused["id"], asked(waiting))
    assert shop.effects() == ["charge"]

    for call_id, (action, result) in settlements.items():
        await shop.settle(session, action, result, call_id)
    await shop.a.becomes(paused["id"], "completed")
    for call_id, words in told.items():
        assert words in await shop.told(session, call_id)
        ended = "failed" if settlements[call_id][0] == "abandon" else "succeeded"
        assert execution_of(await shop.call(session, call_id)) == ended
    assert shop.effects() == effects


async def test_only_the_call_that_was_cut_off_is_in_doubt_and_its_finished_sibling_is_not_run_again(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    paused = await shop.a.say("Both", session)
    partly = await shop.a.decide(batch(c1="approve"), session)
    assert asked(partly) == [("c2", "charge")]
    shop.touch("hold-charge-after")
    sent = asyncio.create_task(shop.a.decide(APPROVE, session))
    await shop.there("at-charge-after")
    await shop.a.kill()
    await heard(sent)
    await shop.a.start()

    waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
    assert asked(waiting) == [("c2:outcome:1", "sayso_outcome_unknown")]
    await shop.settle(session, "result", {"seen": True}, call_id="c2")
    await shop.a.becomes(paused["id"], "completed")
    assert "refund A-1: done" in await shop.told(session, "c1")
    assert '{"seen": true}' in await shop.told(session, "c2")
    assert shop.effects() == ["refund", "charge"]


async def test_redis_may_die_and_come_back_while_a_tool_runs(shop: Shop, session: str) -> None:
    await shop.whole()
    paused = await shop.a.say("Go", session)
    shop.touch("hold-refund-before")
    sent = asyncio.create_task(shop.a.decide(batch(c1="approve", c2="reject"), session))
    await shop.there("at-refund-before")
    await shop.redis.kill()
    await shop.redis.start()
    await shop.a.ready()
    shop.touch("go")

    await heard(sent)
    await shop.a.becomes(paused["id"], "completed")
    assert "refund A-1: done" in await shop.told(session, "c1")
    assert shop.effects() == ["refund"]


async def test_a_tool_that_ends_while_redis_is_away_has_its_result_stored_when_redis_is_back(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    paused = await shop.a.say("Go", session)
    shop.touch("hold-refund-before")
    sent = asyncio.create_task(shop.a.decide(batch(c1="approve", c2="reject"), session))
    await shop.there("at-refund-before")
    await shop.redis.kill()
    shop.touch("go")
    await until(lambda: shop.effects() == ["refund"], "the effect")

    await shop.redis.start()
    await heard(sent)
    await shop.a.becomes(paused["id"], "completed")
    assert "refund A-1: done" in await shop.told(session, "c1")
    assert shop.effects() == ["refund"]


async def test_a_result_that_died_with_its_replica_before_redis_was_back_is_an_unknown_outcome(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    paused = await shop.a.say("Go", session)
    shop.touch("hold-refund-before")
    sent = asyncio.create_task(shop.a.decide(batch(c1="approve", c2="reject"), session))
    await shop.there("at-refund-before")
    await shop.redis.kill()
    shop.touch("go")
    await until(lambda: shop.effects() == ["refund"], "the effect")
    await shop.a.kill()
    await heard(sent)

    await shop.redis.start()
    await shop.a.start()
    waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
    assert asked(waiting) == [("c1:outcome:1", "sayso_outcome_unknown")]
    await shop.settle(session, "result", {"found": "it was paid back"})
    await shop.a.becomes(paused["id"], "completed")
    assert "it was paid back" in await shop.told(session, "c1")
    assert shop.effects() == ["refund"]


async def test_settling_is_refused_while_the_call_may_still_be_under_way(tmp_path: Path, session: str) -> None:
    async with running(tmp_path / "s", one_call("slow")) as shop:
        paused = await shop.a.say("Go", session)
        shop.touch("hold-slow-before")
        sent = asyncio.create_task(shop.a.decide(APPROVE, session))
        await shop.there("at-slow-before")
        await shop.a.kill()
        await heard(sent)
        await shop.a.start()
        await shop.a.asks(paused["id"], "sayso_outcome_unknown")

        view = await shop.call(session)
        for action, result in (("retry", None), ("result", "1"), ("abandon", None)):
            async with shop.ledger() as ledger:
                with pytest.raises(Refusal) as refused:
                    await ledger.settle(
                        view.pause.pause_id, "c1", action=action, result=result, by="bob", reason="", attempt=1
                    )
            assert refused.value.code == "paused"
            assert refused.value.extra["retryAfterSeconds"] > 0
        assert execution_of(await shop.call(session)) == "outcome_unknown"
        assert shop.effects() == []


async def test_an_idempotent_tool_is_run_again_without_asking(tmp_path: Path, session: str) -> None:
    async with running(tmp_path / "s", one_call("again")) as shop:
        paused = await shop.a.say("Go", session)
        shop.touch("hold-again-after")
        sent = asyncio.create_task(shop.a.decide(APPROVE, session))
        await shop.there("at-again-after")
        await shop.a.kill()
        await heard(sent)
        shop.touch("go")

        await shop.a.start()
        await shop.a.becomes(paused["id"], "completed")
        assert "again A-1: done" in await shop.told(session)
        assert shop.effects() == ["again", "again"]
        assert execution_of(await shop.call(session)) == "succeeded"
