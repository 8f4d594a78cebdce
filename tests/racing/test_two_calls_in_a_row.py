"""An approval without ids means what was open when it arrived, and never the call that comes next."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

import pytest

from support.a2a03 import APPROVE, Refused, asked, reply, state
from support.deciders import decide_at_once, outcome
from support.processes import Shop

ROUNDS = 3


async def test_of_fifty_approvals_without_ids_that_arrive_before_the_first_answer_none_means_the_second_call(
    shop: Shop, new_session: Callable[[], str]
) -> None:
    for _ in range(ROUNDS):
        await shop.whole()
        session = new_session()
        paused = await shop.a.say("Refund", session)
        shop.touch("hold-refund-before")

        sent = set(await decide_at_once(shop, session, [APPROVE] * 50))
        lost: set[asyncio.Task[object]] = set()
        while len(lost) < 49:  # the winner's run waits in the tool until everybody else has been answered
            done, _ = await asyncio.wait(sent - lost, return_when=asyncio.FIRST_COMPLETED)
            lost |= done
        shop.touch("go")
        accepted, refused = await outcome(list(sent))

        assert [(state(task), asked(task)) for task in accepted] == [("input-required", [("c2", "refund")])]
        assert len(refused) == 49
        assert {error.code for error in refused} == {"already_decided"}
        assert {error.data["decidedBy"] for error in refused} == {"alice"}
        assert asked(await shop.b.task(paused["id"])) == [("c2", "refund")]
        assert (await shop.call(session, "c2")).open
        assert shop.effects() == ["refund"]


async def test_an_approval_without_ids_that_arrives_before_the_second_question_was_heard_does_not_mean_the_second_call(
    shop: Shop, new_session: Callable[[], str]
) -> None:
    await shop.whole()
    session = new_session()
    paused = await shop.a.say("Refund", session)
    shop.touch("stop-at-paused")
    first = asyncio.create_task(shop.a.decide(APPROVE, session))
    await shop.there("stopped-at-paused")

    assert asked(await shop.b.task(paused["id"])) == [("c2", "refund")]
    with pytest.raises(Refused) as refused:
        await shop.b.decide(APPROVE, session)
    assert (refused.value.code, refused.value.data["decidedBy"]) == ("already_decided", "alice")
    assert [one["id"] for one in refused.value.data["interruptions"]] == ["c2"]
    assert (await shop.call(session, "c2")).open

    shop.a.process.send(signal.SIGCONT)
    assert asked(await first) == [("c2", "refund")]
    assert shop.effects() == ["refund"]
    assert reply(await shop.b.decide(APPROVE, session)) == "Both."
    assert shop.effects() == ["refund", "refund"]


async def test_every_approval_that_counted_ran_one_call_however_they_fell(
    shop: Shop, new_session: Callable[[], str]
) -> None:
    for _ in range(ROUNDS):
        await shop.whole()
        session = new_session()
        paused = await shop.a.say("Refund", session)

        accepted, refused = await outcome(await decide_at_once(shop, session, [APPROVE] * 50))

        assert len(accepted) + len(refused) == 50
        assert {error.code for error in refused} == {"already_decided"}
        assert len(shop.effects()) == len(accepted)
        assert shop.effects("first") == ["refund"]
        second = "input-required" if len(accepted) == 1 else "completed"
        assert state(await shop.a.task(paused["id"])) == second


async def test_a_client_that_approves_the_first_and_at_once_what_it_hears_of_next_is_not_refused(
    shop: Shop, new_session: Callable[[], str]
) -> None:
    for number in range(10):
        await shop.whole()
        session = new_session()
        first, second = (shop.a, shop.b) if number % 2 else (shop.b, shop.a)
        await first.say("Refund", session)

        assert asked(await first.decide(APPROVE, session)) == [("c2", "refund")]
        done = await second.decide(APPROVE, session)

        assert (state(done), reply(done)) == ("completed", "Both.")
        assert shop.effects() == ["refund", "refund"]
