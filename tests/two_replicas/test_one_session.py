"""One session, whatever replica its messages and decisions come to."""

from __future__ import annotations

import asyncio

from support.a2a03 import APPROVE, Refused, asked, batch, reply, state
from support.deciders import decide_at_once, outcome
from support.processes import Shop


async def test_a_pause_made_on_one_replica_is_decided_on_the_other(shop: Shop, session: str) -> None:
    await shop.whole()
    assert reply(await shop.a.say("Look", session)) == "first"
    paused = await shop.b.say("Refund", session)
    assert asked(paused) == [("c1", "refund")]
    done = await shop.a.decide(APPROVE, session, taskId=paused["id"])
    assert (done["id"], state(done), reply(done)) == (paused["id"], "completed", "last")
    assert await shop.b.task(paused["id"]) == done
    assert shop.effects() == ["look", "refund"]


async def test_two_messages_at_once_on_two_replicas_are_taken_in_turn(shop: Shop, session: str) -> None:
    await shop.whole()
    answers = await asyncio.gather(shop.a.say("Hello", session), shop.b.say("Hello", session))
    looked, paused = sorted(answers, key=state)
    assert (state(looked), reply(looked)) == ("completed", "first")
    assert (state(paused), asked(paused)) == ("input-required", [("c1", "refund")])
    history = [event["author"] for event in await shop.events(session) if event.get("content")]
    # a message, the call of look, its result and the answer; and only then the other message, its call, its question
    assert history[:5] == ["user", "desk", "desk", "desk", "user"]
    assert history.count("user") == 2
    assert shop.effects() == ["look"]


async def test_messages_beyond_the_eight_that_wait_hear_that_the_session_is_busy(shop: Shop, session: str) -> None:
    await shop.whole()
    shop.touch("hold-look-before")
    first = asyncio.create_task(shop.a.say("Look", session))
    await shop.there("at-look-before")
    waiting = [asyncio.create_task(shop.replicas[n % 2].say(f"And {n}", session)) for n in range(9)]

    (busy,), rest = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    error = busy.exception()
    assert isinstance(error, Refused)
    assert error.code == "busy"
    assert not first.done()
    shop.touch("go")

    assert reply(await first) == "first"
    answers = await asyncio.gather(*rest)
    assert {state(task) for task in answers} == {"input-required"}
    assert len({task["id"] for task in answers}) == 1  # one of them was paused, and the others hear of its pause
    done = await shop.b.decide(APPROVE, session)
    assert reply(done) == "last"
    assert shop.effects() == ["look", "refund"]


async def test_after_the_holder_of_an_ungated_turn_was_killed_the_next_message_works_and_the_model_hears_of_the_doubt(
    shop: Shop, session: str
) -> None:
    await shop.whole()
    shop.touch("hold-look-before")
    left = await shop.a.say("Look", session, blocking=False)
    assert state(left) == "working"
    await shop.there("at-look-before")
    await shop.a.kill()

    done = await shop.b.say("Are you there?", session)
    assert (state(done), reply(done)) == ("completed", "first")
    assert "Outcome unknown" in await shop.told(session, "l1")
    failed = await shop.b.becomes(left["id"], "failed")
    assert failed["contextId"] == session
    assert shop.effects() == []


async def test_a_task_whose_holder_was_killed_ends_though_nobody_sends_anything(shop: Shop, session: str) -> None:
    await shop.whole()
    shop.touch("hold-look-after")
    left = await shop.b.say("Look", session, blocking=False)
    await shop.there("at-look-after")
    await shop.b.kill()

    await shop.a.becomes(left["id"], "failed")
    done = await shop.a.say("Are you there?", session)
    assert (state(done), reply(done)) == ("completed", "first")
    assert "Outcome unknown" in await shop.told(session, "l1")
    assert shop.effects() == ["look"]


async def test_an_approval_on_each_of_two_replicas_runs_the_call_once(shop: Shop, session: str) -> None:
    await shop.whole()
    await shop.a.say("Look", session)
    await shop.a.say("Refund", session)
    accepted, refused = await outcome(await decide_at_once(shop, session, [APPROVE, batch(c1="approve")]))
    assert [reply(task) for task in accepted] == ["last"]
    assert [error.code for error in refused] == ["already_decided"]
    assert shop.effects() == ["look", "refund"]


async def test_two_sessions_pause_on_two_replicas_and_neither_is_lost(shop: Shop, session: str) -> None:
    await shop.whole()
    sessions = [f"{session}-{n}" for n in range(2)]
    await asyncio.gather(*(r.say("Look", s) for r, s in zip(shop.replicas, sessions, strict=True)))
    await asyncio.gather(*(r.say("Refund", s) for r, s in zip(shop.replicas, sessions, strict=True)))
    other = list(reversed(shop.replicas))
    done = await asyncio.gather(*(r.decide(APPROVE, s) for r, s in zip(other, sessions, strict=True)))
    assert [reply(task) for task in done] == ["last", "last"]
    assert sorted(shop.effects()) == ["look", "look", "refund", "refund"]
