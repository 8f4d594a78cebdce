"""`ask_user`: an agent puts questions to a person, and the answers are the call's result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_approvals.records import Kind, Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Answer, TaskState
from sayso_runtime.tools.ask_user import AskUserTool
from support.agents import Counter, Replica, agent, call, calls, fails, reply, says, verdict

DATABASE = {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"]}
EXTRAS = {"question": "What else?", "choices": ["backups", "replicas"], "multiple": True}


def answers(*given: list[str]) -> Answer:
    """Answers in the order of the questions, as wire A carries them."""
    payload = {"ask_user_answers": [{"answer": texts} for texts in given]}
    return Answer(Verdict.APPROVED, payload=payload, has_payload=True)


def asks(call_id: str, *questions: Any) -> Any:
    """A scripted call of `ask_user`."""
    return call("ask_user", call_id, questions=list(questions))


def replica(redis: Redis, seen: Counter, *turns: Any, **more: Any) -> Replica:
    """An agent with two gated tools that may ask."""
    tools = [seen.tool("refund"), seen.tool("cancel"), AskUserTool()]
    return Replica(redis, agent("desk", seen.model(*turns), tools), ["refund", "cancel"], **more)


def told(text: str) -> Any:
    """What the model was told of its questions, as the scripted model quotes it."""
    return json.loads(text.removeprefix("ask_user: "))["result"]


async def test_questions_pause_and_the_answers_are_what_the_model_is_told(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE, EXTRAS)))
    paused = await desk.say("set it up")
    (asked,) = paused.interruptions
    assert (asked.id, asked.kind, asked.name) == ("q1", Kind.QUESTION, "ask_user")
    assert asked.arguments == {"questions": [DATABASE, EXTRAS]}
    assert "Which database?" in asked.hint
    done = await desk.decide({"q1": answers(["PostgreSQL"], ["backups", "replicas", "and a monitor"])})
    assert done.state is TaskState.COMPLETED
    assert told(reply(done)) == [
        {"question": "Which database?", "answer": ["PostgreSQL"]},
        {"question": "What else?", "answer": ["backups", "replicas", "and a monitor"]},
    ]


async def test_a_text_of_ones_own_is_an_answer_instead_of_a_choice_or_beside_one(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE, DATABASE)))
    await desk.say("go")
    done = await desk.decide({"q1": answers(["MariaDB"], ["SQLite", "but in memory"])})
    assert [one["answer"] for one in told(reply(done))] == [["MariaDB"], ["SQLite", "but in memory"]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answers(["SQLite"]), "2 questions"),
        (answers(["SQLite"], ["backups"], ["more"]), "2 questions"),
        (answers(["PostgreSQL", "SQLite"], ["backups"]), "Which database?"),
        (answers([], ["backups"]), "Which database?"),
        (answers(["SQLite"], [" "]), "What else?"),
        (Answer(Verdict.APPROVED, payload={"ask_user_answers": "SQLite"}, has_payload=True), "2 questions"),
        (Answer(Verdict.APPROVED, payload={"ask_user_answers": [["SQLite"], 3]}, has_payload=True), "What else?"),
        (Answer(Verdict.APPROVED, payload=True, has_payload=True), "2 questions"),
        (Answer(Verdict.APPROVED), "ask_user_answers"),
        (Answer(Verdict.REJECTED, payload={"ask_user_answers": [["a"], ["b"]]}, has_payload=True), "not both"),
    ],
)
async def test_what_is_no_answer_is_refused_naming_the_question(redis: Redis, given: Answer, words: str) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE, EXTRAS)))
    await desk.say("go")
    with pytest.raises(Refusal) as refused:
        await desk.decide({"q1": given})
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ("q1",))
    assert words in refused.value.detail
    assert (await desk.ledger.calls())[0].open


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "questions"),
        ({"questions": []}, "at least one"),
        ({"questions": "Which?"}, "list"),
        ({"questions": ["Which?"]}, "questions[0]"),
        ({"questions": [DATABASE, {"question": " \n"}]}, "questions[1].question"),
        ({"questions": [{"question": 7}]}, "questions[0].question"),
        ({"questions": [{"question": "Which?", "choices": "A"}]}, "questions[0].choices"),
        ({"questions": [{"question": "Which?", "choices": ["A", ""]}]}, "questions[0].choices[1]"),
        ({"questions": [{"question": "Which?", "choices": ["A", "A"]}]}, "twice"),
        ({"questions": [{"question": "Which?", "multiple": "yes"}]}, "questions[0].multiple"),
        ({"questions": [{"question": "Which?", "default": "A"}]}, "default"),
        ({"questions": [DATABASE] * 21}, "20"),
        ({"questions": [{"question": "Which?", "choices": [str(n) for n in range(51)]}]}, "50"),
        ({"questions": [{"question": "ä" * 2049}]}, "4096"),
        ({"questions": [DATABASE], "to": "bob"}, "one argument"),
    ],
)
async def test_questions_that_are_none_are_an_error_for_the_model_and_no_pause(
    redis: Redis, arguments: dict[str, Any], words: str
) -> None:
    desk = replica(redis, Counter(), calls(call("ask_user", "q1", **arguments)))
    done = await desk.say("go")
    assert done.state is TaskState.COMPLETED
    assert words in json.loads(reply(done).removeprefix("ask_user: "))["error"]


async def test_the_model_corrects_its_questions_and_then_somebody_is_asked(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1")), calls(asks("q2", DATABASE)))
    paused = await desk.say("go")
    assert [one.id for one in paused.interruptions] == ["q2"]


@pytest.mark.parametrize("first", ["q1", "c1", "c2"])
@pytest.mark.parametrize("together", [True, False])
async def test_a_question_beside_gated_calls_is_answered_in_any_order(redis: Redis, first: str, together: bool) -> None:
    seen = Counter()
    made = calls(call("refund", "c1", order="A"), asks("q1", DATABASE), call("cancel", "c2", order="B"))
    desk = replica(redis, seen, made, says("Done."))
    await desk.say("go")
    every = {"c1": verdict("approve"), "q1": answers(["SQLite"]), "c2": verdict("reject", "no")}
    rest = {name: answer for name, answer in every.items() if name != first}
    if together:
        done = await desk.decide(every)
    else:
        paused = await desk.decide({first: every[first]})
        assert {one.id for one in paused.interruptions} == set(rest)
        assert seen.models == 1
        for name, answer in rest.items():
            done = await desk.decide({name: answer})
    assert (done.state, reply(done), seen.models) == (TaskState.COMPLETED, "Done.", 2)
    assert seen.runs == [("refund", {"order": "A"})]


async def test_answers_without_an_id_decide_no_call_beside_the_question(redis: Redis) -> None:
    seen = Counter()
    desk = replica(redis, seen, calls(call("refund", "c1", order="A"), asks("q1", DATABASE)), says("Done."))
    await desk.say("go")
    paused = await desk.uniform(answers(["SQLite"]))
    assert [one.id for one in paused.interruptions] == ["c1"]
    assert seen.runs == []
    with pytest.raises(Refusal) as refused:
        await desk.uniform(answers(["SQLite"]))
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ("c1",))
    assert seen.runs == []


async def test_a_yes_without_ids_approves_the_calls_and_leaves_the_question(redis: Redis) -> None:
    seen = Counter()
    desk = replica(redis, seen, calls(call("refund", "c1", order="A"), asks("q1", DATABASE)), says("Done."))
    await desk.say("go")
    paused = await desk.decide("approve")
    assert [one.id for one in paused.interruptions] == ["q1"]
    assert seen.runs == [("refund", {"order": "A"})]
    with pytest.raises(Refusal) as refused:
        await desk.decide("approve")
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ("q1",))
    assert "answers" in refused.value.detail


async def test_answers_without_an_id_are_refused_where_several_sets_of_questions_wait(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE), asks("q2", DATABASE)), says("Done."))
    await desk.say("go")
    with pytest.raises(Refusal) as refused:
        await desk.uniform(answers(["SQLite"]))
    assert (refused.value.code, refused.value.ids) == ("malformed_decision", ("q1", "q2"))
    assert all(word in refused.value.detail for word in ("q1", "q2", "batch"))
    assert reply(await desk.decide({"q1": answers(["SQLite"]), "q2": answers(["none"])})) == "Done."


async def test_a_person_declines_and_the_reason_reaches_the_model(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE)))
    await desk.say("go")
    done = await desk.decide({"q1": verdict("reject", "ask the team")})
    assert "Rejected by alice: ask the team" in reply(done)


async def test_a_cancelled_question_was_decided_by_nobody(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE)))
    paused = await desk.say("go")
    done = await desk.service.cancel(paused.id, requester="alice")
    assert done.state is TaskState.CANCELED
    assert "Nobody decided: cancelled by alice" in reply(done)


async def test_a_question_that_nobody_answers_expires(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE)), timeout=0.01)
    paused = await desk.say("go")
    while not await desk.ledger.expire_due():
        pass
    await desk.service.go_on("s1")
    done = await desk.service.get(paused.id, requester="alice")
    assert "Nobody decided before" in reply(done)
    with pytest.raises(Refusal) as late:
        await desk.decide({"q1": answers(["SQLite"])})
    assert late.value.code == "expired"


async def test_another_replica_takes_the_answer_after_a_restart(redis: Redis) -> None:
    script = calls(asks("q1", DATABASE))
    await replica(redis, Counter(), script).say("go")
    done = await replica(redis, Counter(), script).decide({"q1": answers(["SQLite"])})
    assert told(reply(done)) == [{"question": "Which database?", "answer": ["SQLite"]}]


async def test_after_the_model_failed_the_same_answers_go_on(redis: Redis) -> None:
    desk = replica(redis, Counter(), calls(asks("q1", DATABASE)), fails(times=2, text="Recovered."))
    await desk.say("go")
    paused = await desk.uniform(answers(["SQLite"]))
    assert paused.interruptions[0].name == "sayso_continue"
    paused = await desk.decide({"q1": answers(["SQLite"])})
    assert paused.interruptions[0].name == "sayso_continue"
    assert reply(await desk.uniform(answers(["SQLite"]))) == "Recovered."


async def test_an_answer_that_somebody_changed_in_redis_is_not_told(redis: Redis) -> None:
    seen = Counter()
    desk = replica(redis, seen, calls(asks("q1", DATABASE)))
    await desk.say("go")
    (view,) = await desk.ledger.calls()
    async for key in redis.scan_iter("*:live:*"):
        for name, value in (await redis.hgetall(key)).items():
            if "PostgreSQL" in value:
                await redis.hset(key, name, value.replace("PostgreSQL", "PostgreSQK"))
    with pytest.raises(Refusal) as refused:
        await replica(redis, seen, calls(asks("q1", DATABASE))).decide({view.call.call_id: answers(["SQLite"])})
    assert refused.value.code == "integrity"
