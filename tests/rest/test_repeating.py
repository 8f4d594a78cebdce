"""The Idempotency-Key: a request sent again does nothing twice and gets its first answer."""

from __future__ import annotations

import asyncio

from redis.asyncio import Redis

from support.agents import call, calls, fails, says
from support.desks import Desk, approved, denied, events, serving


async def test_a_repeated_message_gets_its_first_answer_also_without_a_session(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello."), says("Again.")])) as desk:
        body = {"prompt": "hi"}
        first = await desk.post("api/v1/chat", body, Idempotency_Key="k1")
        again = await desk.post("api/v1/chat", body, Idempotency_Key="k1")
        assert (again.status_code, again.json()) == (200, first.json())
        assert desk.seen.models == 1
        streamed = await desk.post("api/v1/chat", {**body, "stream": True}, Idempotency_Key="k1")
        assert events(streamed.text)[-1]["result"] == "Hello."
        other = await desk.post("api/v1/chat", body, Idempotency_Key="k2")
        assert other.json()["session_id"] != first.json()["session_id"]
        assert desk.seen.models == 2


async def test_a_repeated_message_that_paused_gets_the_pause_and_a_new_one_does_not(desk: Desk) -> None:
    body = {"prompt": "go", "session_id": "s1"}
    first = await desk.post("api/v1/chat", body, Idempotency_Key="k1")
    again = await desk.post("api/v1/chat", body, Idempotency_Key="k1")
    assert (first.status_code, again.status_code, again.json()) == (202, 202, first.json())
    assert (await desk.post("api/v1/chat", body, Idempotency_Key="k2")).status_code == 409
    assert desk.seen.models == 1


async def test_a_repeated_decision_runs_nothing_twice_and_gets_its_first_answer(desk: Desk) -> None:
    await desk.chat("go")
    body = {"session_id": "s1", "resume": {"decisions": [approved("c1"), denied("c2")]}}
    answers = await asyncio.gather(*(desk.post("api/v1/chat", body, Idempotency_Key="d1") for _ in range(5)))
    answers.append(await desk.post("api/v1/chat", body, Idempotency_Key="d1"))
    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json() == answers[0].json() for answer in answers)
    assert desk.ran() == ["look", "refund"]


async def test_another_request_under_the_same_key_is_422_and_does_nothing(desk: Desk) -> None:
    await desk.post("api/v1/chat", {"prompt": "go", "session_id": "s1"}, Idempotency_Key="k1")
    for body in (
        {"prompt": "something else", "session_id": "s1"},
        {"session_id": "s1", "resume": {"decisions": [approved("c1")]}},
    ):
        answer = await desk.post("api/v1/chat", body, Idempotency_Key="k1")
        assert (answer.status_code, answer.json()["ids"]) == (422, ["Idempotency-Key"])
    assert desk.ran() == ["look"]


async def test_a_resume_that_failed_is_not_answered_from_memory_but_goes_on(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), fails(text="Refunded.")])) as desk:
        await desk.chat("go")
        body = {"session_id": "s1", "resume": {"decisions": [approved("c1")]}}
        statuses = [(await desk.post("api/v1/chat", body, Idempotency_Key="d1")).status_code for _ in range(3)]
        assert statuses == [502, 200, 200]
        assert desk.ran() == ["refund"]


async def test_two_keys_or_one_that_is_no_name_are_refused(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        url, body = desk.door.url + "api/v1/chat", {"prompt": "hi"}
        for headers in ([("Idempotency-Key", "a"), ("Idempotency-Key", "b")], [("Idempotency-Key", "k" * 257)]):
            answer = await desk.door.http.post(url, json=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (422, "malformed_request")
        assert desk.seen.models == 0
