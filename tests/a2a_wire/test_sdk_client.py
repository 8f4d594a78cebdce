"""The A2A SDK's own client, 1.0 and 0.3, streaming and not: an independent reading of both wires."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.client import ClientConfig, create_client
from a2a.client.errors import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Part,
    Role,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError
from google.protobuf.json_format import MessageToDict

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Answer, CallPart, NamedDecision, ResultPart, UniformDecision
from support.scripted_service import Turn, ask
from support.sdk_client import all_of, client_of, data, request

REFUND = ask("c1", "refund", hint="A refund of 20", order_id="A-1", amount=20)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_stream_pauses_and_goes_on(door: Any, version: str) -> None:
    calls = (CallPart("g1", "get_order", {"id": "A-1"}),)
    results = (ResultPart("g1", "get_order", {"total": 20}),)
    door.service.on("refund", Turn(("I", " look"), calls, results, asks=(REFUND,), then=Turn(text="Refunded.")))
    client = await client_of(door, version, streaming=True)
    first, *working, last = await all_of(client, request(Part(text="refund")))
    assert first.HasField("task")
    assert first.task.status.state == TaskState.TASK_STATE_WORKING
    assert {event.status_update.status.state for event in working} == {TaskState.TASK_STATE_WORKING}
    assert len(working) == 4
    status = last.status_update.status
    assert status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    question = MessageToDict(status.message.parts[0])
    assert question["data"]["args"]["originalFunctionCall"] == {
        "name": "refund",
        "args": {"order_id": "A-1", "amount": 20.0},
        "id": "c1",
    }
    assert question["metadata"]["adk_is_long_running"] is True

    approval = request(data({"decision_type": "approve"}), Part(text="Approved"), task_id=first.task.id)
    resumed = await all_of(client, approval)
    assert [event.WhichOneof("payload") for event in resumed] == ["task", "artifact_update", "status_update"]
    assert resumed[1].artifact_update.artifact.parts[0].text == "Refunded."
    assert resumed[1].artifact_update.last_chunk
    assert resumed[2].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    assert not resumed[2].status_update.status.HasField("message")
    assert door.service.inbound[-1].decision == UniformDecision(Answer(Verdict.APPROVED))


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_without_streaming_the_task_says_the_same(door: Any, version: str) -> None:
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(text="Refunded.")))
    client = await client_of(door, version, streaming=False)
    (paused,) = await all_of(client, request(Part(text="refund"), context_id="mine"))
    assert paused.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert paused.task.context_id == "mine"
    native = data(
        {"id": "adk-c1", "name": "adk_request_confirmation", "response": {"confirmed": True}},
        {"adk_type": "function_response"},
    )
    (done,) = await all_of(client, request(native, task_id=paused.task.id, context_id="mine"))
    assert done.task.status.state == TaskState.TASK_STATE_COMPLETED
    assert done.task.artifacts[0].parts[0].text == "Refunded."
    assert [entry.role for entry in done.task.history] == [1, 2, 1, 2]
    assert door.service.inbound[-1].decision == NamedDecision({"adk-c1": Answer(Verdict.APPROVED)})
    stored: Task = await client.get_task(GetTaskRequest(id=done.task.id))
    assert stored == done.task


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_history_and_cancelling(door: Any, version: str) -> None:
    door.service.on("refund", Turn(asks=(REFUND,)))
    client = await client_of(door, version, streaming=False)
    (paused,) = await all_of(client, request(Part(text="refund")))
    newest = await client.get_task(GetTaskRequest(id=paused.task.id, history_length=1))
    assert [entry.role for entry in newest.history] == [Role.ROLE_AGENT]
    if version == "1.0":
        none = await client.get_task(GetTaskRequest(id=paused.task.id, history_length=0))
        assert not none.history
    cancelled = await client.cancel_task(CancelTaskRequest(id=paused.task.id))
    assert cancelled.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_1_0_user_sees_why_a_decision_was_refused(door: Any, streaming: bool) -> None:
    late = Refusal("already_decided", "ada approved it at 12:00", ("c1",))
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(refuses=late)))
    client = await client_of(door, "1.0", streaming=streaming)
    *_, last = await all_of(client, request(Part(text="refund")))
    task_id = last.task.id or last.status_update.task_id
    with pytest.raises(A2AClientError, match="ada approved it at 12:00"):
        await all_of(client, request(data({"decision_type": "approve"}), task_id=task_id))
    with pytest.raises(InvalidParamsError, match="decision_type is approve, reject or batch"):
        await all_of(client, request(data({"decision_type": "yes"}), task_id=task_id))


async def test_a_1_0_user_sees_why_a_run_failed_halfway(door: Any) -> None:
    door.service.on("hello", Turn(deltas=("Hi",), fails=Refusal("model_failed", "503 overloaded")))
    client = await client_of(door, "1.0", streaming=True)
    with pytest.raises(A2AClientError, match="503 overloaded"):
        await all_of(client, request(Part(text="hello")))


async def test_unknown_tasks_and_methods_that_are_not_offered_are_typed(door: Any) -> None:
    client = await client_of(door, "1.0", streaming=True)
    with pytest.raises(TaskNotFoundError):
        await client.get_task(GetTaskRequest(id="nope"))
    with pytest.raises(UnsupportedOperationError):
        async for _ in client.subscribe(SubscribeToTaskRequest(id="nope")):
            pass


async def test_polling_clients_get_the_task_at_once(door: Any) -> None:
    import asyncio

    hold = asyncio.Event()
    door.service.on("slow", Turn(hold=hold, text="late"))
    client = await create_client(door.url, ClientConfig(httpx_client=door.http, streaming=False, polling=True))
    (accepted,) = await all_of(client, request(Part(text="slow")))
    assert accepted.task.status.state == TaskState.TASK_STATE_WORKING
    hold.set()
    await door.service.ended.wait()
    assert (await client.get_task(GetTaskRequest(id=accepted.task.id))).artifacts[0].parts[0].text == "late"
