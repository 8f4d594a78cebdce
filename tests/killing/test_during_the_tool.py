"""kill -9 while a tool runs: at most one effect, and where nobody can know, a person is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sayso_approvals.records import execution_of
from sayso_approvals.refusals import Refusal
from support.a2a03 import APPROVE, Refused, asked, questions, reply, state
from support.agents import call, calls
from support.killing import Victims, heard, one_call
from support.processes import running, script

AGENT, BOTH = Victims(agent=True, redis=False), Victims(agent=True, redis=True)


@pytest.mark.parametrize(
    ("tool", "point", "victims", "action", "result", "told", "effects"),
    [
        pytest.param(
            "refund", "before", AGENT, "retry", None, "refund A-1: done", ["refund"], id="before-its-effect-agent-retry"
        ),
        pytest.param(
            "refund", "before", BOTH, "abandon", None, "bob abandoned it", [], id="before-its-effect-both-abandon"
        ),
        pytest.param(
            "charge",
            "after",
            AGENT,
            "result",
            {"charged": "A-1"},
            '{"charged": "A-1"}',
            ["charge"],
            id="after-its-effect-agent-result",
        ),
        pytest.param(
            "charge", "after", BOTH, "abandon", None, "bob abandoned it", ["charge"], id="after-its-effect-both-abandon"
        ),
    ],
)
async def test_a_call_cut_off_while_its_tool_ran_waits_as_outcome_unknown_and_goes_on_as_a_person_settles_it(
    tmp_path: Path,
    tool: str,
    point: str,
    victims: Victims,
    action: str,
    result: Any,
    told: str,
    effects: list[str],
) -> None:
    async with running(tmp_path, one_call(tool), mcp=tool == "charge", tool_seconds=0.5) as shop:
        paused = await shop.a.say("Go", "s1")
        shop.touch(f"hold-{point}")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there(f"at-{point}")
        before = shop.effects()
        assert before == ([tool] if point == "after" else [])

        await victims.die(shop)
        await heard(sent)
        shop.touch("go")
        await victims.come_back(shop)

        waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
        assert state(waiting) == "input-required"
        (question,) = questions(waiting)
        assert question["id"] == "c1:outcome:1"
        assert (question["args"]["tool"], question["args"]["arguments"]) == (tool, {"order": "A-1"})
        assert (question["args"]["approve"], question["args"]["reject"]) == ("run it again", "leave it")
        assert "outcome unknown" in question["hint"]
        assert execution_of(await shop.call("s1")) == "outcome_unknown"
        again = await shop.a.say("And now?", "s1")
        assert (again["id"], asked(again)) == (paused["id"], asked(waiting))
        assert shop.effects() == before

        await shop.settle("s1", action, result)
        done = await shop.a.becomes(paused["id"], "completed")
        assert told in reply(done)
        assert shop.effects() == effects
        assert execution_of(await shop.call("s1")) == ("failed" if action == "abandon" else "succeeded")


async def test_settling_is_refused_while_the_call_may_still_be_under_way(tmp_path: Path) -> None:
    async with running(tmp_path, one_call("slow")) as shop:
        paused = await shop.a.say("Go", "s1")
        shop.touch("hold-before")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("at-before")
        await shop.a.kill()
        await heard(sent)
        await shop.a.start()
        await shop.a.asks(paused["id"], "sayso_outcome_unknown")

        view = await shop.call("s1")
        for action, result in (("retry", None), ("result", "1"), ("abandon", None)):
            async with shop.ledger() as ledger:
                with pytest.raises(Refusal) as refused:
                    await ledger.settle(
                        view.pause.pause_id, "c1", action=action, result=result, by="bob", reason="", attempt=1
                    )
            assert refused.value.code == "paused"
            assert 0 < refused.value.extra["retryAfterSeconds"] <= 31
        assert execution_of(await shop.call("s1")) == "outcome_unknown"
        assert shop.effects() == []


async def test_redis_may_die_and_come_back_while_the_tool_runs(tmp_path: Path) -> None:
    async with running(tmp_path, one_call("refund")) as shop:
        paused = await shop.a.say("Go", "s1")
        shop.touch("hold-before")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("at-before")
        await shop.redis.kill()
        await shop.redis.start()
        await shop.a.ready()
        shop.touch("go")

        await heard(sent)
        done = await shop.a.becomes(paused["id"], "completed")
        assert "refund A-1: done" in reply(done)
        assert shop.effects() == ["refund"]


async def test_a_result_that_could_not_be_stored_because_redis_was_away_is_an_unknown_outcome(tmp_path: Path) -> None:
    async with running(tmp_path, one_call("refund")) as shop:
        paused = await shop.a.say("Go", "s1")
        shop.touch("hold-before")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("at-before")
        await shop.redis.kill()
        shop.touch("go")
        answer = await heard(sent)
        assert isinstance(answer, Refused)
        assert answer.code == "store_unreachable"
        assert shop.effects() == ["refund"]

        await shop.redis.start()
        await shop.a.ready()
        await shop.a.asks(paused["id"], "sayso_outcome_unknown")
        assert execution_of(await shop.call("s1")) == "outcome_unknown"
        await shop.settle("s1", "result", {"found": "it was paid back"})
        done = await shop.a.becomes(paused["id"], "completed")
        assert "it was paid back" in reply(done)
        assert shop.effects() == ["refund"]


async def test_an_idempotent_tool_is_run_again_without_asking(tmp_path: Path) -> None:
    async with running(tmp_path, one_call("again")) as shop:
        paused = await shop.a.say("Go", "s1")
        shop.touch("hold-after")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("at-after")
        await shop.a.kill()
        await heard(sent)
        shop.touch("go")

        await shop.a.start()
        done = await shop.a.becomes(paused["id"], "completed")
        assert "again A-1: done" in reply(done)
        assert shop.effects() == ["again", "again"]
        assert execution_of(await shop.call("s1")) == "succeeded"


async def test_only_the_call_that_was_cut_off_is_in_doubt_and_its_finished_sibling_is_not_run_again(
    tmp_path: Path,
) -> None:
    both = script(calls(call("refund", "c1", order="A-1"), call("charge", "c2", order="A-2")))
    async with running(tmp_path, both, mcp=True, tool_seconds=0.5) as shop:
        paused = await shop.a.say("Both", "s1")
        assert [call_id for call_id, _ in asked(paused)] == ["c1", "c2"]
        partly = await shop.a.decide({"decision_type": "batch", "decisions": {"c1": "approve"}}, "s1")
        assert asked(partly) == [("c2", "charge")]
        shop.touch("hold-after")
        sent = asyncio.create_task(shop.a.decide(APPROVE, "s1"))
        await shop.there("at-after")
        await shop.a.kill()
        await heard(sent)
        await shop.a.start()

        waiting = await shop.a.asks(paused["id"], "sayso_outcome_unknown")
        assert asked(waiting) == [("c2:outcome:1", "sayso_outcome_unknown")]
        await shop.settle("s1", "result", {"seen": True}, call_id="c2")
        done = await shop.a.becomes(paused["id"], "completed")
        assert "refund A-1: done" in reply(done)
        assert '{"seen": true}' in reply(done)
        assert shop.effects() == ["refund", "charge"]
