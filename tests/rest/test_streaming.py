"""`stream: true`: typed events, everything closed before the end, and a pause is a normal end."""

from __future__ import annotations

import json
from typing import Any

from redis.asyncio import Redis

from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import CallPart, ResultPart
from support.agents import call, calls, fails
from support.desks import Desk, approved, events, serving
from support.scripted_service import ScriptedService, Turn, ask
from support.serving import running


def check_closed(found: list[dict[str, Any]]) -> None:
    """Nothing is open at the end, and nothing grows that is not open."""
    open_now: set[str] = set()
    for event in found:
        name = event.get("message_id") or event.get("tool_call_id")
        match event["type"]:
            case "message_start" | "tool_call_start":
                assert not open_now
                open_now.add(name)
            case "text_delta" | "tool_call_args":
                assert name in open_now
            case "message_end" | "tool_call_end":
                open_now.remove(name)
            case _:
                assert not open_now


async def test_a_pause_streams_its_calls_closes_them_and_ends_normally(desk: Desk) -> None:
    answer = await desk.chat("go", stream=True)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
    found = events(answer.text)
    check_closed(found)
    assert found[0]["type"] == "run_started"
    assert found[0]["session_id"] == "s1"
    started = [e["tool_call_id"] for e in found if e["type"] == "tool_call_start"]
    assert started == ["c0", "c1", "c2"]
    assert [e["tool_call_id"] for e in found if e["type"] == "tool_call_result"] == ["c0"]
    assert [json.loads(e["delta"]) for e in found if e["type"] == "tool_call_args"][1] == {"order": "A"}
    assert "".join(e["content"] for e in found if e["type"] == "text_delta") == "Let me see."
    last = found[-1]
    assert (last["type"], last["status"]) == ("run_paused", "PAUSED")
    assert [i["id"] for i in last["interruptions"]] == ["c1", "c2"]

    resumed = events((await desk.resume(approved("c1"), approved("c2"), run_id=last["run_id"], stream=True)).text)
    check_closed(resumed)
    assert [e["tool_call_id"] for e in resumed if e["type"] == "tool_call_result"] == ["c1", "c2"]
    assert not [e for e in resumed if e["type"] == "tool_call_start"]
    assert (resumed[-1]["type"], resumed[-1]["result"]) == ("run_completed", "All done.")
    assert [e["content"] for e in resumed if e["type"] == "text_delta"] == ["All done."]


async def test_a_text_that_came_in_pieces_is_closed_before_a_call_and_not_told_again() -> None:
    service = ScriptedService()
    done = Turn(deltas=("Do", "ne."), text="Done.")
    look, seen = CallPart("c0", "look", {"a": 1}), ResultPart("c0", "look", {"b": 2})
    service.on(
        "go", Turn(deltas=("I ", "look"), calls=(look,), results=(seen,), asks=(ask("c1", "refund"),), then=done)
    )
    async with running(service) as door:
        url = door.url + "api/v1/chat"
        body = {"session_id": "s", "stream": True}
        found = events((await door.http.post(url, json={**body, "prompt": "go"})).text)
        check_closed(found)
        assert [e["type"] for e in found] == [
            "run_started",
            *("message_start", "text_delta", "text_delta", "message_end"),
            *("tool_call_start", "tool_call_args", "tool_call_end", "tool_call_result"),
            *("tool_call_start", "tool_call_args", "tool_call_end"),
            "run_paused",
        ]
        resumed = events((await door.http.post(url, json={**body, "resume": {"decisions": [approved("c1")]}})).text)
        assert [e["type"] for e in resumed] == [
            *("run_started", "message_start", "text_delta", "text_delta", "message_end", "run_completed")
        ]
    await service.close()


async def test_a_refusal_before_anything_was_said_is_a_status_and_later_it_is_the_last_event() -> None:
    service = ScriptedService()
    lost = Refusal("store_unreachable", "Redis is away")
    service.on("refused", Turn(refuses=lost))
    service.on("late", Turn(late=lost))
    service.on("cut", Turn(deltas=("I ",), fails=lost))
    service.on("broken", Turn(deltas=("I ",), fails=RuntimeError("a secret")))
    async with running(service) as door:
        for prompt in ("refused", "late"):
            answer = await door.http.post(door.url + "api/v1/chat", json={"prompt": prompt, "stream": True})
            assert (answer.status_code, answer.json()["code"]) == (503, "store_unreachable")
            assert answer.headers["retry-after"] == "1"
        for prompt, code in (("cut", "store_unreachable"), ("broken", "internal_error")):
            answer = await door.http.post(door.url + "api/v1/chat", json={"prompt": prompt, "stream": True})
            last = events(answer.text)[-1]
            assert (last["type"], last["problem"]["code"]) == ("problem", code)
            assert "secret" not in answer.text
            assert [e["type"] for e in events(answer.text)][-2:] == ["message_end", "problem"]
    await service.close()


async def test_a_model_that_fails_ends_a_stream_with_what_can_be_decided_or_with_the_problem(redis: Redis) -> None:
    script = [fails(), calls(call("refund", "c1")), fails(text="Refunded.")]
    async with serving(Desk(redis, script[1:])) as desk:
        await desk.chat("go")
        found = events((await desk.resume(approved("c1"), stream=True)).text)
        assert found[-1]["type"] == "run_paused"
        assert [i["tool_name"] for i in found[-1]["interruptions"]] == ["sayso_continue"]
    await redis.flushall()
    async with serving(Desk(redis, script[:1])) as desk:
        found = events((await desk.chat("go", stream=True)).text)
        assert (found[-1]["type"], found[-1]["problem"]["code"]) == ("problem", "model_failed")
