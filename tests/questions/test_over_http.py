"""Questions through the doors, as clients of each send answers to them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from sayso_approvals.records import Verdict
from support import a2a03
from support.a2a03 import APPROVE, Json, asked, reply
from support.agents import call, calls
from support.family import Member, family, inner

DATABASE = {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]}
ASK = calls(call("ask_user", "q1", questions=[DATABASE]))
BESIDE = calls(call("ask_user", "q1", questions=[DATABASE]), call("refund", "c1", order="A-1"))
TWO = calls(*(call("ask_user", name, questions=[DATABASE]) for name in ("q1", "q2")))
TOLD = '{"question": "Which database?", "answer": ["SQLite"]}'
POSITIONAL: Json = {"decision_type": "approve", "ask_user_answers": [{"answer": ["SQLite"]}]}


async def refused(work: Any) -> Json:
    """The problem document of a refusal."""
    with pytest.raises(a2a03.Refused) as caught:
        await work
    return caught.value.data


async def test_positional_answers_are_for_the_one_question_and_decide_nothing_beside_it(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", BESIDE)
        paused = await desk.say()
        assert asked(paused) == [("q1", "ask_user"), ("c1", "refund")]
        rest = await desk.decide(POSITIONAL)
        assert (asked(rest), home.ran) == ([("c1", "refund")], [])
        done = await desk.decide(APPROVE)
        assert (TOLD in reply(done), home.ran) == (True, [("refund", "A-1")])


async def test_a_yes_alone_is_no_answer(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        await desk.say()
        problem = await refused(desk.decide(APPROVE))
        assert (problem["code"], problem["ids"]) == ("malformed_decision", ["q1"])
        problem = await refused(desk.decide(a2a03.batch(q1="approve")))
        assert "ask_user_answers" in problem["detail"]
        assert TOLD in reply(await desk.decide(POSITIONAL))


async def test_several_sets_of_questions_are_answered_by_id(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        await desk.say()
        problem = await refused(desk.decide(POSITIONAL))
        assert problem["ids"] == ["q1", "q2"]
        answers = {"q1": [{"answer": ["SQLite"]}], "q2": [{"answer": ["neither"]}]}
        done = await desk.decide(a2a03.batch(q1="approve", q2="approve") | {"ask_user_answers": answers})
        assert TOLD in reply(done)
        assert '"neither"' in reply(done)


async def test_adks_own_form_of_an_answer_is_taken(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        paused = await desk.say()
        question = paused["status"]["message"]["parts"][0]["data"]["id"]
        payload = {"ask_user_answers": [{"answer": ["SQLite"]}]}
        assert TOLD in reply(await desk.post(a2a03.value(question, payload, "s1")))


async def test_a_question_is_declined(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        await desk.say()
        done = await desk.decide({"decision_type": "reject", "rejection_reason": "ask the team"})
        assert "Rejected by ada: ask the team" in reply(done)


async def test_an_agent_that_may_not_ask_has_no_such_tool(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK, ask_user=False)
        done = await desk.say()
        assert a2a03.state(done) == "completed"
        assert "no tool with that name" in reply(done)


async def test_a_question_that_waits_is_answered_though_the_agent_may_ask_no_more(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        await desk.say()
        await desk.stop()
        desk.config = desk.config.model_copy(update={"ask_user": False})
        await desk.start()
        assert TOLD in reply(await desk.decide(POSITIONAL))


@pytest.mark.parametrize(
    "decision",
    [
        {"id": "q1", "message": "SQLite"},
        {"id": "q1", "payload": "SQLite"},
        {"id": "q1", "status": "approved", "payload": [["SQLite"]]},
        {"id": "q1", "payload": {"ask_user_answers": [{"answer": ["SQLite"]}]}},
    ],
)
async def test_rest_answers_in_words_or_as_a_value(redis: Redis, decision: Json) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        paused = await chat(desk, prompt="go")
        (one,) = paused.json()["interruptions"]
        assert (one["kind"], one["tool_name"]) == ("input_required", "ask_user")
        assert json.loads(one["arguments"]) == {"questions": [DATABASE]}
        done = await chat(desk, resume={"decisions": [decision]})
        assert (done.status_code, TOLD in done.json()["result"]) == (200, True)


async def test_a_no_over_rest_is_never_an_answer(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        await chat(desk, prompt="go")
        no = {"id": "q1", "status": "denied", "message": "SQLite"}
        done = await chat(desk, resume={"decisions": [no]})
        assert "Rejected by ada: SQLite" in done.json()["result"]


async def test_a_question_of_another_agent_passes_up_and_its_answers_down(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("child", BESIDE)
        root = await home.add("root", calls(call("shop__NS__child", "p1", request="go")), children=["child"])
        paused = await root.say()
        assert inner(paused) == [("q1", "ask_user"), ("c1", "refund")]
        wrong = {"decision_type": "approve", "ask_user_answers": [{"answer": ["PostgreSQL", "SQLite"]}]}
        problem = await refused(root.decide(wrong))
        assert (problem["code"], "Which database?" in problem["detail"]) == ("malformed_decision", True)
        rest = await root.decide(POSITIONAL)
        assert (inner(rest), home.ran) == ([("c1", "refund")], [])
        done = await root.decide(APPROVE)
        assert ("SQLite" in reply(done), home.ran) == (True, [("refund", "A-1")])


async def test_a_question_is_answered_on_the_command_line_and_the_run_goes_on_by_itself(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", ASK)
        paused = await desk.say()
        await desk.decide_aside(Verdict.ANSWERED, payload='{"ask_user_answers": [{"answer": ["SQLite"]}]}')
        assert TOLD in reply(await desk.becomes(paused, "completed"))


async def chat(desk: Member, **body: Any) -> httpx.Response:
    """One request to the REST door."""
    async with httpx.AsyncClient(timeout=60) as http:
        return await http.post(f"{desk.url}api/v1/chat", json={"session_id": "s1", **body})
