"""What is wrong, late, partial or foreign is RUN_ERROR (or a status, where it is no run at all) and changes nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from redis.asyncio import Redis

from sayso_runtime.interfaces import asgi
from sayso_runtime.interfaces.identity import loopback_user
from support.agents import call, calls, says
from support.agui_client import Client, kinds, no, yes
from support.desks import Desk, events, serving
from support.serving import running

JSON = {"content-type": "application/json"}
STRANGE = "\u0000\u001b[31m\r\n\n: data\u2028 </script> \U0001f600 \u202e"


def end(found: list[Any]) -> tuple[str, str]:
    """The one event of a run that was refused: its code and message."""
    (error,) = found
    assert error.type == "RUN_ERROR"
    return error.code, error.message


async def test_a_message_while_paused_is_run_error_that_names_what_is_open(desk: Desk, client: Client) -> None:
    await client.say("go")
    for text in ("Approved", "c1: yes"):
        code, message = end(await client.say(text))
        assert code == "paused"
        assert all(word in message for word in ("c1", "refund", "c2", "cancel"))
    assert (desk.seen.models, desk.ran()) == (1, ["look"])
    assert kinds(await client.answer(yes("c1"), yes("c2")))[-1] == "RUN_FINISHED"


async def test_a_partial_answer_is_run_error_that_names_the_rest_and_decides_nothing(
    desk: Desk, client: Client
) -> None:
    await client.say("go")
    code, message = end(await client.answer(yes("c1")))
    assert code == "malformed_decision"
    assert "c2 (cancel)" in message
    assert desk.ran() == ["look"]
    await client.answer(no("c1"), yes("c2"))
    assert desk.ran() == ["look", "cancel"]


ODD: dict[str, tuple[Any, str]] = {
    "a text": ("approve", "malformed_decision"),
    "true": (True, "malformed_decision"),
    "nothing": (None, "malformed_decision"),
    "no word": ({}, "malformed_decision"),
    "a text for a boolean": ({"approved": "true"}, "malformed_decision"),
    "one": ({"approved": 1}, "malformed_decision"),
    "null": ({"approved": None}, "malformed_decision"),
    "a member more": ({"approved": True, "also": "c2"}, "malformed_decision"),
    "a reason that is no text": ({"approved": True, "reason": 5}, "malformed_decision"),
    "edited arguments": ({"approved": True, "editedArgs": {"order": "B"}}, "malformed_decision"),
    "a result": ({"approved": True, "result": "done"}, "malformed_decision"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
async def test_what_is_not_exactly_a_verdict_decides_nothing(desk: Desk, client: Client, odd: Any) -> None:
    payload, expected = odd
    await client.say("go")
    found = await client.answer(no("c2"), {"interruptId": "c1", "status": "resolved", "payload": payload})
    assert end(found)[0] == expected
    assert desk.ran() == ["look"]
    assert [i["id"] for i in (await desk.get("api/v1/pauses")).json()["pauses"][0]["interruptions"]] == ["c1", "c2"]


@pytest.mark.parametrize(
    "entries",
    [
        [yes("c1"), yes("c2"), no("c1")],
        [yes("c1"), {"interruptId": "c2", "status": "cancelled", "payload": {"approved": True}}],
        [yes("c1"), {**yes("c2"), "interrupt_id": "c1"}],
        [yes("c1"), {**yes("c2"), "verdict": "no"}],
        [yes("c1"), yes("")],
    ],
    ids=["twice", "cancelled and approved", "two spellings", "a member more", "an empty id"],
)
async def test_a_malformed_answer_decides_nothing(desk: Desk, client: Client, entries: list[Any]) -> None:
    await client.say("go")
    assert end(await client.run(resume=entries))[0] == "malformed_decision"
    assert desk.ran() == ["look"]


async def test_an_unknown_interrupt_a_late_one_and_an_unknown_thread_are_refused(desk: Desk, client: Client) -> None:
    code, message = end(await client.answer(yes("c1")))
    assert (code, "t1" in message) == ("not_found", True)
    await client.say("go")
    assert end(await client.answer(yes("c1"), yes("c2"), yes("c9")))[0] == "unknown_call"
    await client.answer(no("c1", reason="no"), no("c2"))
    code, message = end(await client.answer(yes("c1")))
    assert code == "already_decided"
    assert all(word in message for word in ("rejected", "ada", "no", "(at 20"))
    assert desk.ran() == ["look"]


async def test_a_late_answer_hears_that_nobody_decided_in_time(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Over.")], timeout=0.001)) as desk:
        client = Client(desk.door)
        await client.say("go")
        assert end(await client.answer(yes("c1")))[0] == "expired"
        assert desk.ran() == []


async def test_another_callers_thread_does_not_exist(desk: Desk, client: Client) -> None:
    await client.say("go")
    async with running(desk.replica.service, identify=loopback_user("mallory")) as door:
        other = Client(door)
        assert end(await other.answer(yes("c1"), yes("c2")))[0] == "not_found"
        assert end(await other.say("hello"))[0] == "not_found"
    assert desk.ran() == ["look"]


def given(**more: Any) -> dict[str, Any]:
    """A run's input with something about it."""
    return {"threadId": "t1", "runId": "r1", "messages": [{"id": "u", "role": "user", "content": "hi"}], **more}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_request"),
        (b'{"threadId": NaN}', 400, "malformed_request"),
        (b'{"state": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "malformed_request"),
        (b" " * (asgi.MAX_BODY + 1), 413, "too_large"),
        ([], 422, "malformed_request"),
        ({}, 422, "malformed_request"),
        (given(threadId=5), 422, "malformed_request"),
        (given(threadId=""), 422, "malformed_request"),
        (given(runId="r" * 257), 422, "malformed_request"),
        (given(runId="a\nb"), 422, "malformed_request"),
        (given(messages=[]), 422, "malformed_request"),
        (given(messages=[{"id": "u", "role": "user", "content": " "}]), 422, "malformed_request"),
        (given(messages=[{"id": "a", "role": "assistant", "content": "hi"}]), 422, "malformed_request"),
        (given(messages=[{"id": "a", "role": "sayso", "content": "hi"}]), 422, "malformed_request"),
        (given(resume=[{"interruptId": "c1", "status": "approved"}]), 422, "malformed_request"),
        (json.dumps(given())[:-1].encode() + b', "runId": "r2"}', 422, "malformed_request"),
    ],
)
async def test_what_is_no_runs_input_is_a_problem_with_a_status(
    redis: Redis, body: Any, status: int, code: str
) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await desk.door.http.post(desk.door.url + "agui", content=content, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
        assert desk.seen.models == 0
        assert kinds(await Client(desk.door).say("hi"))[-1] == "RUN_FINISHED"


async def test_an_image_is_refused_in_words(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        image = {"type": "image", "source": {"type": "url", "value": "http://x/y.png"}}
        body = given(messages=[{"id": "u", "role": "user", "content": [image]}])
        answer = await desk.post("agui", body)
        assert (answer.status_code, "only text" in answer.json()["detail"]) == (422, True)


async def test_a_decision_that_says_one_thing_twice_is_refused(desk: Desk, client: Client) -> None:
    await client.say("go")
    entry = '{"interruptId":"c1","status":"resolved","payload":{"approved":false,"approved":true}}'
    raw = json.dumps(given(runId="r9"))[:-1] + f', "resume": [{entry}]}}'
    answer = await desk.door.http.post(desk.door.url + "agui", content=raw, headers=JSON)
    assert [event["code"] for event in events(answer.text)] == ["malformed_decision"]
    assert desk.ran() == ["look"]


async def test_a_foreign_page_is_refused(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        answer = await desk.post("agui", given(), origin="https://evil.example")
        assert (answer.status_code, answer.json()["code"]) == (403, "not_identified")
        assert desk.seen.models == 0


async def test_many_calls_and_a_mebibyte_of_strange_arguments_arrive_whole(redis: Redis) -> None:
    order = STRANGE + "ü" * (1024 * 1024)
    many = calls(call("refund", "big", order=order), *(call("cancel", f"c{n}", order=str(n)) for n in range(63)))
    async with serving(Desk(redis, [many, says(STRANGE)])) as desk:
        client = Client(desk.door)
        await client.say("go")
        assert len(client.interrupts) == 64
        held = {call["id"]: call["function"] for m in client.messages for call in m.get("toolCalls") or ()}
        assert json.loads(held["big"]["arguments"]) == {"order": order}
        found = await client.answer(*(yes(one.id) for one in client.interrupts))
        assert [e.delta for e in found if e.type == "TEXT_MESSAGE_CONTENT"] == [STRANGE]
        assert sorted(desk.ran()) == ["cancel"] * 63 + ["refund"]


async def test_a_client_that_leaves_loses_nothing(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Done.")])) as desk:
        client = Client(desk.door)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await client.say("go", run_id="r0")
        await client.run(run_id="r0")
        assert [i.id for i in client.interrupts] == ["c1"]
        assert kinds(await client.answer(yes("c1")))[-1] == "RUN_FINISHED"
        assert desk.ran() == ["refund"]
