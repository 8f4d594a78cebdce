"""The chat resource: what waits comes whole, and what is decided reaches the call."""

from __future__ import annotations

import json

from redis.asyncio import Redis

from support.agents import call, calls, fails, says
from support.desks import Desk, approved, denied, serving


async def test_an_answer_without_a_pause_is_200_with_the_session_that_it_began(redis: Redis) -> None:
    async with serving(Desk(redis, [says("Hello."), says("Again.")])) as desk:
        first = await desk.chat("hi", session_id=None)
        assert first.status_code == 200
        assert first.headers["content-type"] == "application/json"
        body = first.json()
        assert (body["result"], body["status"], body["agent"]) == ("Hello.", "COMPLETED", "refund-desk")
        second = await desk.chat("hi", session_id=body["session_id"])
        assert (second.json()["result"], second.json()["session_id"]) == ("Again.", body["session_id"])


async def test_a_pause_is_202_with_every_call_the_text_so_far_and_real_names(desk: Desk) -> None:
    paused = await desk.chat("go", agent="refund-desk")
    assert paused.status_code == 202
    body = paused.json()
    assert (body["status"], body["agent"], body["session_id"]) == ("PAUSED", "refund-desk", "s1")
    assert body["result"] == "Let me see."
    assert [(i["id"], i["kind"], i["tool_name"]) for i in body["interruptions"]] == [
        ("c1", "tool_call", "refund"),
        ("c2", "tool_call", "cancel"),
    ]
    assert [json.loads(i["arguments"]) for i in body["interruptions"]] == [{"order": "A"}, {"order": "B"}]
    assert all({"message", "payload", "expires_at"} <= i.keys() for i in body["interruptions"])
    assert desk.ran() == ["look"]


async def test_decided_calls_go_on_with_the_reason_word_for_word_and_no_model_call_in_between(redis: Redis) -> None:
    both = calls(call("refund", "c1", order="A"), call("cancel", "c2", order="B"))
    async with serving(Desk(redis, [both])) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        done = await desk.resume(approved("c1"), denied("c2", message="the customer called: keep it"), run_id=run_id)
        assert done.status_code == 200
        assert "Rejected by ada: the customer called: keep it" in done.json()["result"]
        assert desk.seen.order == ["model", "refund", "model"]


async def test_cancelled_reaches_the_model_as_nobody_decided(redis: Redis) -> None:
    async with serving(Desk(redis, [calls(call("refund", "c1"))])) as desk:
        await desk.chat("go")
        done = await desk.resume({"id": "c1", "status": "cancelled"})
        assert done.status_code == 200
        assert "Nobody decided" in done.json()["result"]
        assert "Rejected" not in done.json()["result"]
        assert desk.ran() == []


async def test_partial_answers_leave_the_rest_under_a_fresh_run_id_and_older_ones_hold_for_it(desk: Desk) -> None:
    first = (await desk.chat("go")).json()
    second = await desk.resume(approved("c2"), run_id=first["run_id"])
    assert second.status_code == 202
    assert [i["id"] for i in second.json()["interruptions"]] == ["c1"]
    assert second.json()["run_id"] != first["run_id"]
    assert second.json()["result"] == "Let me see."
    done = await desk.resume(approved("c1"), run_id=first["run_id"])
    assert (done.status_code, done.json()["result"]) == (200, "All done.")
    assert desk.ran() == ["look", "cancel", "refund"]


async def test_an_older_run_id_means_none_of_the_calls_of_a_later_pause(redis: Redis) -> None:
    script = [calls(call("refund", "c1", order="A")), calls(call("refund", "c1", order="EVERYTHING")), says("Done.")]
    async with serving(Desk(redis, script)) as desk:
        first = (await desk.chat("go")).json()
        second = (await desk.resume(approved("c1"), run_id=first["run_id"])).json()
        (later,) = second["interruptions"]
        assert json.loads(later["arguments"]) == {"order": "EVERYTHING"}
        late = await desk.resume(approved("c1"), run_id=first["run_id"])
        assert (late.status_code, late.json()["code"]) == (409, "already_decided")
        mixed = await desk.resume(approved(later["id"]), run_id=first["run_id"])
        assert (mixed.status_code, mixed.json()["code"], mixed.json()["ids"]) == (422, "unknown_call", [later["id"]])
        assert desk.seen.runs == [("refund", {"order": "A"})]
        assert (await desk.resume(approved(later["id"]), run_id=second["run_id"])).status_code == 200


async def test_the_model_failing_after_the_tool_is_502_and_the_same_resume_goes_on(redis: Redis) -> None:
    two = calls(call("refund", "c1"), call("cancel", "c2"))
    async with serving(Desk(redis, [two, fails(text="Refunded after all.")])) as desk:
        run_id = (await desk.chat("go")).json()["run_id"]
        failed = await desk.resume(approved("c1"), denied("c2"), run_id=run_id)
        assert failed.status_code == 502
        assert failed.headers["content-type"] == "application/problem+json"
        body = failed.json()
        assert body["code"] == "model_failed"
        assert [(i["kind"], i["tool_name"]) for i in body["interruptions"]] == [("confirmation", "sayso_continue")]
        done = await desk.resume(approved("c1"), denied("c2"), run_id=run_id)
        assert (done.status_code, done.json()["result"]) == (200, "Refunded after all.")
        assert desk.ran() == ["refund"]


async def test_the_model_failing_before_any_tool_is_502_and_the_session_goes_on(redis: Redis) -> None:
    async with serving(Desk(redis, [fails(text="Hello.")])) as desk:
        failed = await desk.chat("go")
        assert (failed.status_code, failed.json()["code"]) == (502, "model_failed")
        assert "503 overloaded" in failed.json()["detail"]
        assert (await desk.chat("go")).json()["result"] == "Hello."


async def test_a_value_that_is_wanted_comes_with_or_without_a_status(redis: Redis) -> None:
    from google.adk.tools.long_running_tool import LongRunningFunctionTool

    for answer in ({"payload": {"colour": "red"}}, {"status": "denied", "payload": {"colour": "red"}}):
        await redis.flushall()

        def colour() -> None:
            """Asks for a colour."""

        tools = [LongRunningFunctionTool(colour)]
        async with serving(Desk(redis, [calls(call("colour", "q1"))], tools=tools)) as desk:
            paused = await desk.chat("go")
            assert [(i["id"], i["kind"]) for i in paused.json()["interruptions"]] == [("q1", "input_required")]
            nothing = await desk.resume({"id": "q1", "status": "approved"})
            assert (nothing.status_code, nothing.json()["ids"]) == (422, ["q1"])
            done = await desk.resume({"id": "q1", **answer})
            assert done.status_code == 200
            assert "red" in done.json()["result"]
