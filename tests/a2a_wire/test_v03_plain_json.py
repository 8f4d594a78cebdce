"""A 0.3 client that knows nothing but JSON: what it sends, what it hears, byte by byte where clients are touchy."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Answer, CallPart, NamedDecision, ResultPart, TextPart, UniformDecision
from support.scripted_service import Turn, ask

REFUND = ask("c1", "refund", hint="A refund of 20", order_id="A-1", amount=20)
CANCEL = ask("c2", "cancel_order", order_id="A-2")


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"message": message([{"kind": "text", "text": words}], **more)}


def decision(data: Any, label: str = "Approved", **more: Any) -> dict[str, Any]:
    parts = [{"kind": "data", "data": data, "metadata": {}}, {"kind": "text", "text": label}]
    return {"message": message(parts, **more)}


def message(parts: list[Any], **more: Any) -> dict[str, Any]:
    return {"kind": "message", "role": "user", "messageId": uuid.uuid4().hex, "parts": parts, **more}


def events(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream"
    blocks = response.text.split("\n\n")
    assert blocks.pop() == ""
    found = [json.loads(block.removeprefix("data: ")) for block in blocks if not block.startswith(":")]
    assert all(event["id"] == 1 for event in found)
    return [event.get("result", event.get("error")) for event in found]


async def test_a_pause_is_a_final_status_update_with_one_confirmation_part_per_call_and_a_sentence(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND, CANCEL)))
    first, last = events(await door.rpc("message/stream", text("refund")))
    assert first["kind"] == "task"
    assert first["status"]["state"] == "working"
    assert (last["kind"], last["final"]) == ("status-update", True)
    assert last["status"]["state"] == "input-required"
    assert (last["taskId"], last["contextId"]) == (first["id"], first["contextId"])
    *questions, sentence = last["status"]["message"]["parts"]
    assert questions[0] == {
        "kind": "data",
        "data": {
            "name": "adk_request_confirmation",
            "id": "adk-c1",
            "args": {
                "originalFunctionCall": {"name": "refund", "args": {"order_id": "A-1", "amount": 20}, "id": "c1"},
                "toolConfirmation": {"hint": "A refund of 20", "confirmed": False, "payload": None},
            },
        },
        "metadata": {
            "adk_type": "function_call",
            "kagent_type": "function_call",
            "adk_is_long_running": True,
            "kagent_is_long_running": True,
        },
    }
    assert [part["data"]["id"] for part in questions] == ["adk-c1", "adk-c2"]
    assert sentence["kind"] == "text"
    assert last["status"]["message"]["role"] == "agent"


async def test_an_answer_is_one_artifact_then_completed_without_a_message(door: Any) -> None:
    door.service.on("hello", Turn(deltas=("Hi", "."), text="Hi."))
    _, one, two, artifact, end = events(await door.rpc("message/stream", text("hello")))
    assert [one["status"]["message"]["parts"][0]["text"], two["status"]["message"]["parts"][0]["text"]] == ["Hi", "."]
    assert one["status"]["state"] == "working"
    assert one["final"] is False
    assert one["status"]["message"]["parts"][0]["metadata"] == {"adk_partial": True, "kagent_adk_partial": True}
    assert artifact["kind"] == "artifact-update"
    assert artifact["lastChunk"] is True
    assert artifact["artifact"]["parts"] == [{"kind": "text", "text": "Hi."}]
    assert (end["kind"], end["final"], end["status"]["state"]) == ("status-update", True, "completed")
    assert "message" not in end["status"]


async def test_ungated_calls_are_working_updates_with_matching_ids(door: Any) -> None:
    results = (ResultPart("g1", "get_order", {"total": 20}), ResultPart("g2", "get_order", "no such order", True))
    door.service.on("look", Turn(calls=(CallPart("g1", "get_order", {"id": "A-1"}),), results=results, text="20"))
    _, called, returned, *_ = events(await door.rpc("message/stream", text("look")))
    call = called["status"]["message"]["parts"][0]
    assert call["data"] == {"id": "g1", "name": "get_order", "args": {"id": "A-1"}}
    assert call["metadata"] == {"adk_type": "function_call", "kagent_type": "function_call"}
    one, two = returned["status"]["message"]["parts"]
    assert one["data"] == {"id": "g1", "name": "get_order", "response": {"result": {"total": 20}}}
    assert one["metadata"] == {"adk_type": "function_response", "kagent_type": "function_response"}
    assert two["data"]["response"] == {"result": "no such order", "isError": True}


async def test_a_decision_goes_on_with_the_same_task_and_history_keeps_question_decision_and_answer(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(text="Refunded.")))
    paused = events(await door.rpc("message/stream", text("refund")))[-1]
    said = decision({"decision_type": "approve"}, taskId=paused["taskId"], metadata={"timestamp": 12})
    answer = events(await door.rpc("message/stream", said))
    assert [event["kind"] for event in answer] == ["task", "artifact-update", "status-update"]
    assert {event.get("taskId", event.get("id")) for event in answer} == {paused["taskId"]}
    assert door.service.inbound[-1].decision == UniformDecision(Answer(Verdict.APPROVED))

    task = (await door.rpc("tasks/get", {"id": paused["taskId"]})).json()["result"]
    assert task["kind"] == "task"
    assert [entry["role"] for entry in task["history"]] == ["user", "agent", "user", "agent"]
    assert all(entry["kind"] == "message" for entry in task["history"])
    assert len({entry["messageId"] for entry in task["history"]}) == 4
    question, verdict, words = task["history"][1:]
    assert question["parts"][0]["data"]["name"] == "adk_request_confirmation"
    assert verdict["parts"][0] == {"kind": "data", "data": {"decision_type": "approve"}}
    assert verdict["metadata"] == {"timestamp": 12}
    assert words["parts"] == [{"kind": "text", "text": "Refunded."}]


async def test_a_batch_reaches_the_service_by_id_with_its_reasons(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND, CANCEL), then=Turn(text="Done.")))
    task = (await door.rpc("message/send", text("refund"))).json()["result"]
    data = {
        "decision_type": "batch",
        "decisions": {"c1": "approve", "c2": "reject"},
        "rejection_reasons": {"c2": "too late"},
    }
    result = (await door.rpc("message/send", decision(data, taskId=task["id"]))).json()["result"]
    assert result["status"]["state"] == "completed"
    assert door.service.inbound[-1].decision == NamedDecision(
        {"c1": Answer(Verdict.APPROVED), "c2": Answer(Verdict.REJECTED, "too late")}
    )


async def test_a_message_that_waits_gets_the_paused_task_with_its_questions(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND,)))
    body = (await door.rpc("message/send", text("refund"))).json()
    assert body["result"]["kind"] == "task"
    assert body["result"]["status"]["state"] == "input-required"
    assert body["result"]["status"]["message"]["parts"][0]["data"]["id"] == "adk-c1"


async def test_without_blocking_the_task_comes_at_once_and_the_run_goes_on(door: Any) -> None:
    import asyncio

    hold = asyncio.Event()
    door.service.on("slow", Turn(hold=hold, text="late"))
    params = text("slow") | {"configuration": {"blocking": False}}
    task = (await door.rpc("message/send", params)).json()["result"]
    assert task["status"]["state"] == "working"
    await door.service.heard.wait()
    hold.set()
    await door.service.ended.wait()
    later = (await door.rpc("tasks/get", {"id": task["id"]})).json()["result"]
    assert later["status"]["state"] == "completed"
    assert later["artifacts"][0]["parts"] == [{"kind": "text", "text": "late"}]


async def test_history_length_takes_the_newest_messages_and_zero_means_all(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND,)))
    task = (await door.rpc("message/send", text("refund"))).json()["result"]

    async def history(length: int) -> list[dict[str, Any]]:
        response = await door.rpc("tasks/get", {"id": task["id"], "historyLength": length})
        found: list[dict[str, Any]] = response.json()["result"]["history"]
        return found

    assert [entry["role"] for entry in await history(1)] == ["agent"]
    assert len(await history(0)) == 2
    assert len(await history(99)) == 2
    wrong = (await door.rpc("tasks/get", {"id": task["id"], "historyLength": -1})).json()["error"]
    assert wrong["code"] == -32602
    assert "historyLength" in wrong["message"]


@pytest.mark.parametrize("given", [{}, {"contextId": "mine"}, {"contextId": ""}, {"contextId": None, "taskId": ""}])
async def test_ids_are_passed_on_as_given_and_empty_ones_as_left_out(door: Any, given: dict[str, Any]) -> None:
    door.service.on("hello", Turn(text="Hi."))
    task = (await door.rpc("message/send", text("hello", **given))).json()["result"]
    inbound = door.service.inbound[-1]
    assert (inbound.context_id, inbound.task_id) == (given.get("contextId") or None, None)
    assert inbound.requester == "ada"
    assert inbound.parts == (TextPart("hello"),)
    if inbound.context_id:
        assert task["contextId"] == "mine"


async def test_a_decision_for_a_context_alone_is_passed_on(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(text="Refunded.")))
    task = (await door.rpc("message/send", text("refund"))).json()["result"]
    said = decision({"decision_type": "reject"}, contextId=task["contextId"])
    assert (await door.rpc("message/send", said)).json()["result"]["id"] == task["id"]
    assert door.service.inbound[-1].task_id is None


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (Refusal("already_decided", "ada approved it", ("c1",), decided_by="ada", decided_at=1.5), 409, -32050),
        (Refusal("expired", "nobody decided in time", ("c1",)), 410, -32050),
        (Refusal("unknown_call", "no call 'c9' is pending", ("c9",)), 422, -32602),
        (Refusal("not_found", "nothing is pending"), 404, -32050),
        (Refusal("store_unreachable", "Redis is away"), 503, -32050),
    ],
)
@pytest.mark.parametrize("when", ["refuses", "late"])
async def test_a_refusal_on_a_stream_is_an_http_error_with_the_rpc_error_as_body(
    door: Any, refusal: Refusal, status: int, code: int, when: str
) -> None:
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(**{when: refusal})))
    task = (await door.rpc("message/send", text("refund"))).json()["result"]
    said = decision({"decision_type": "approve"}, taskId=task["id"])
    response = await door.rpc("message/stream", said)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert (error["code"], error["message"]) == (code, refusal.detail)
    assert error["data"] == refusal.problem()
    assert f'sayso_refusals_total{{code="{refusal.code}"}} 1.0' in door.metrics.render().decode()


async def test_the_same_refusal_without_a_stream_is_an_rpc_error_at_200(door: Any) -> None:
    door.service.on("no", Turn(refuses=Refusal("paused", "it waits", ("c1",), extra={"interruptions": (REFUND,)})))
    response = await door.rpc("message/send", text("no"))
    assert response.status_code == 200
    data = response.json()["error"]["data"]
    assert data["code"] == "paused"
    (waiting,) = data["interruptions"]
    assert (waiting["id"], waiting["name"], waiting["arguments"]) == ("c1", "refund", {"order_id": "A-1", "amount": 20})


async def test_a_refusal_after_the_beginning_is_the_last_event(door: Any) -> None:
    door.service.on("hello", Turn(deltas=("Hi",), fails=Refusal("model_failed", "503 overloaded")))
    *_, last = events(await door.rpc("message/stream", text("hello")))
    assert (last["code"], last["message"]) == (-32050, "503 overloaded")
    assert last["data"]["code"] == "model_failed"


async def test_a_fault_of_ours_says_nothing_of_its_inside(door: Any, caplog: pytest.LogCaptureFixture) -> None:
    door.service.on("hello", Turn(fails=ZeroDivisionError("secret detail")))
    response = await door.rpc("message/send", text("hello"))
    assert response.json()["error"]["code"] == -32603
    assert "secret" not in response.text
    assert "secret detail" in caplog.text


async def test_a_malformed_decision_is_refused_before_the_service_hears_of_it(door: Any) -> None:
    response = await door.rpc("message/stream", decision({"decision_type": "Approve"}, taskId="t"))
    assert response.status_code == 422
    error = response.json()["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "malformed_decision")
    assert door.service.inbound == []


@pytest.mark.parametrize(
    "body",
    [
        '{"decision_type":"reject","decision_type":"approve"}',
        '{"decision_type":"batch","decisions":{"c1":"reject","c1":"approve"}}',
    ],
)
async def test_a_key_said_twice_in_a_decision_is_refused(door: Any, body: str) -> None:
    parts = '[{"kind":"data","data":' + body + "}]"
    raw = f"""{{"jsonrpc":"2.0","id":1,"method":"message/send",
        "params":{{"message":{{"role":"user","messageId":"m","parts":{parts}}}}}}}"""
    response = await door.http.post(door.url, content=raw, headers={"content-type": "application/json"})
    error = response.json()["error"]
    assert (error["code"], error["data"]["code"]) == (-32602, "malformed_decision")
    assert door.service.inbound == []


async def test_a_key_said_twice_anywhere_else_is_refused_as_well(door: Any) -> None:
    one = '{"role":"user","messageId":"m","parts":[{"kind":"text","text":"a"}]}'
    raw = f'{{"jsonrpc":"2.0","id":1,"method":"message/send","params":{{"message":{one},"message":{one}}}}}'
    response = await door.http.post(door.url, content=raw, headers={"content-type": "application/json"})
    assert response.json()["error"]["code"] == -32602
    assert door.service.inbound == []


async def test_an_unknown_task_is_task_not_found_for_get_and_cancel(door: Any) -> None:
    for method in ("tasks/get", "tasks/cancel"):
        error = (await door.rpc(method, {"id": "nope"})).json()["error"]
        assert error["code"] == -32001
        assert "nope" in error["message"]


async def test_a_task_can_be_cancelled(door: Any) -> None:
    door.service.on("refund", Turn(asks=(REFUND,)))
    task = (await door.rpc("message/send", text("refund"))).json()["result"]
    assert (await door.rpc("tasks/cancel", {"id": task["id"]})).json()["result"]["status"]["state"] == "canceled"
