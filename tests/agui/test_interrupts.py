"""A pause ends the run with interrupts, and the run that answers them brings the results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from redis.asyncio import Redis

from support.agents import call, calls, fails, says
from support.agui_client import Client, kinds, no, yes
from support.desks import Desk, serving


async def test_a_run_without_a_pause_starts_tells_and_finishes(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        found = await Client(desk.door).say("hi")
        text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
        assert kinds(found) == ["RUN_STARTED", *text, "RUN_FINISHED"]
        assert (found[0].thread_id, found[0].run_id, found[2].delta) == ("t1", "r1", "Hello.")
        assert found[-1].outcome is None


async def test_a_pause_tells_its_calls_once_and_holds_them_in_the_snapshot(desk: Desk, client: Client) -> None:
    found = await client.say("go")
    assert [e.tool_call_id for e in found if e.type == "TOOL_CALL_START"] == ["c0", "c1", "c2"]
    assert [e.tool_call_id for e in found if e.type == "TOOL_CALL_RESULT"] == ["c0"]
    args = {e.tool_call_id: json.loads(e.delta) for e in found if e.type == "TOOL_CALL_ARGS"}
    assert args == {"c0": {"order": "A"}, "c1": {"order": "A"}, "c2": {"order": "B"}}
    assert kinds(found)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]

    made = {call["id"]: call["function"] for m in client.messages for call in m.get("toolCalls") or ()}
    assert [made[name]["name"] for name in ("c0", "c1", "c2")] == ["look", "refund", "cancel"]
    assert client.messages[0]["content"] == "go"
    assert [m["toolCallId"] for m in client.messages if m["role"] == "tool"] == ["c0"]
    assert "Let me see." in [m.get("content") for m in client.messages]
    starts = {e.tool_call_id: e.parent_message_id for e in found if e.type == "TOOL_CALL_START"}
    parents = {call["id"]: m["id"] for m in client.messages for call in m.get("toolCalls") or ()}
    assert starts == parents

    first = client.interrupts[0]
    assert [(i.id, i.reason, i.tool_call_id) for i in client.interrupts] == [
        ("c1", "tool_call", "c1"),
        ("c2", "tool_call", "c2"),
    ]
    assert first.message
    assert first.expires_at.endswith("Z")
    assert first.response_schema["required"] == ["approved"]
    assert desk.ran() == ["look"]


async def test_answers_bring_results_on_the_old_ids_and_start_no_call_again(desk: Desk, client: Client) -> None:
    await client.say("go")
    found = await client.answer(yes("c1"), no("c2", reason="keep it"))
    assert "TOOL_CALL_START" not in kinds(found)
    results = {e.tool_call_id: e.content for e in found if e.type == "TOOL_CALL_RESULT"}
    assert json.loads(results["c1"]) == {"done": "refund A"}
    assert "Rejected by ada: keep it" in results["c2"]
    assert [e.delta for e in found if e.type == "TEXT_MESSAGE_CONTENT"] == ["All done."]
    assert client.interrupts == []
    assert desk.ran() == ["look", "refund"]
    assert desk.seen.order == ["model", "look", "refund", "model"]


async def test_cancelled_is_told_as_nobody_decided(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1")), says("Fine.")])) as desk:
        client = Client(desk.door)
        await client.say("go")
        found = await client.answer({"interruptId": "c1", "status": "cancelled"})
        (result,) = [e.content for e in found if e.type == "TOOL_CALL_RESULT"]
        assert "Nobody decided" in result
        assert "Rejected" not in result
        assert desk.ran() == []


async def test_it_pauses_again_and_a_client_that_sent_no_messages_still_gets_the_call(redis: Redis) -> None:
    script = [calls(call("refund", "c1", order="A")), calls(call("cancel", "c2", order="B")), says("Done.")]
    async with serving(Desk(redis, script)) as desk:
        client = Client(desk.door)
        await client.say("go")
        client.messages = []
        found = await client.answer(yes("c1"))
        assert [e.tool_call_id for e in found if e.type == "TOOL_CALL_START"] == ["c2"]
        assert [i.id for i in client.interrupts] == ["c2"]
        assert [call["id"] for m in client.messages for call in m.get("toolCalls") or ()] == ["c2"]
        assert kinds(await client.answer(yes("c2")))[-1] == "RUN_FINISHED"
        assert desk.ran() == ["refund", "cancel"]


async def test_a_value_that_is_wanted_is_the_payload_whatever_it_looks_like(redis: Redis) -> None:
    def colour() -> None:
        """Asks for a colour."""

    for value in ({"colour": "red"}, ["red"], "red", {"approved": False, "reason": "red"}):
        await redis.flushall()
        tools = [LongRunningFunctionTool(colour)]
        async with serving(Desk(redis, [calls(call("colour", "q1"))], tools=tools)) as desk:
            client = Client(desk.door)
            await client.say("go")
            assert [(i.id, i.reason, i.tool_call_id) for i in client.interrupts] == [("q1", "input_required", "q1")]
            found = await client.answer({"interruptId": "q1", "status": "resolved", "payload": value})
            assert kinds(found)[-1] == "RUN_FINISHED"
            (result,) = [e.content for e in found if e.type == "TOOL_CALL_RESULT"]
            assert "red" in result


async def test_a_model_that_fails_after_the_tool_is_an_interrupt_and_the_same_answer_goes_on(redis: Redis) -> None:
    two = calls(call("refund", "c1"), call("cancel", "c2"))
    async with serving(Desk(redis, [two, fails(times=2, text="Refunded.")])) as desk:
        client = Client(desk.door)
        await client.say("go")
        await client.answer(yes("c1"), no("c2"))
        (question,) = client.interrupts
        assert (question.reason, question.tool_call_id) == ("confirmation", None)
        assert "503 overloaded" in question.message
        await client.answer(yes("c1"), no("c2"))
        found = await client.answer(yes(client.interrupts[0].id))
        assert [e.delta for e in found if e.type == "TEXT_MESSAGE_CONTENT"] == ["Refunded."]
        assert desk.ran() == ["refund"]


async def test_a_model_that_fails_before_any_tool_is_run_error_and_the_thread_goes_on(redis: Redis) -> None:
    async with serving(Desk(redis, [fails(text="Hello.")])) as desk:
        client = Client(desk.door)
        failed = (await client.say("go"))[-1]
        assert (failed.type, failed.code) == ("RUN_ERROR", "model_failed")
        assert kinds(await client.say("again"))[-1] == "RUN_FINISHED"


async def test_a_run_that_is_sent_again_does_nothing_twice(desk: Desk, client: Client) -> None:
    await client.say("go", run_id="first")
    again = Client(desk.door)
    await again.say("go", run_id="first")
    assert again.interrupts == client.interrupts
    for _ in range(3):
        found = await client.answer(yes("c1"), yes("c2"), run_id="second")
        assert [e.delta for e in found if e.type == "TEXT_MESSAGE_CONTENT"] == ["All done."]
    assert desk.ran() == ["look", "refund", "cancel"]
    other = (await client.say("something else", run_id="second"))[-1]
    assert (other.type, other.code) == ("RUN_ERROR", "malformed_request")


@pytest.mark.parametrize("content", ["hi", [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]])
async def test_a_message_is_text_in_one_piece_or_several(redis: Redis, content: Any) -> None:
    async with serving(Desk(redis, [says("Hello.")])) as desk:
        client = Client(desk.door)
        client.messages = [{"id": "u", "role": "user", "content": content}]
        assert kinds(await client.run())[-1] == "RUN_FINISHED"
