"""Clients that others wrote, against a real agent: the A2A SDK's, ADK's remote agent, and plain JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from a2a.types import GetTaskRequest, Part, TaskState
from google.genai import types
from google.protobuf.json_format import MessageToDict
from redis.asyncio import Redis

from support.adk_parent import Parent, texts
from support.agents import Counter, Replica, agent, call, calls, says
from support.sdk_client import all_of, client_of, data, request
from support.serving import Door, running

pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")


class Desk:
    """A served agent whose one reply makes two gated calls and a free one, and then says that it is done."""

    def __init__(self, redis: Redis) -> None:
        self.seen = Counter()
        script = calls(call("look", "c0", order="A"), call("refund", "c1", order="A"), call("cancel", "c2", order="B"))
        tools = [self.seen.tool(name) for name in ("look", "refund", "cancel")]
        model = self.seen.model(script, says("All done."), script, says("All done."))
        self.replica = Replica(redis, agent("desk", model, tools), ["refund", "cancel"])
        self.door: Door

    def ran(self) -> list[str]:
        return [name for name, _ in self.seen.runs]


@pytest.fixture
async def desk(redis: Redis) -> AsyncIterator[Desk]:
    made = Desk(redis)
    async with running(made.replica.service) as door:
        made.door = door
        yield made


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize("streaming", [True, False])
async def test_the_sdks_client_pauses_decides_each_call_and_reads_the_answer(
    desk: Desk, version: str, streaming: bool
) -> None:
    client = await client_of(desk.door, version, streaming=streaming)
    events = await all_of(client, request(Part(text="go")))
    task_id = events[0].task.id
    paused = await client.get_task(GetTaskRequest(id=task_id))
    assert paused.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    asked = [MessageToDict(part)["data"]["args"] for part in paused.status.message.parts if part.HasField("data")]
    assert [one["originalFunctionCall"]["id"] for one in asked] == ["c1", "c2"]
    assert desk.ran() == ["look"]

    batch = {
        "decision_type": "batch",
        "decisions": {"c1": "approve", "c2": "reject"},
        "rejection_reasons": {"c2": "no"},
    }
    await all_of(client, request(data(batch), Part(text="Decided"), task_id=task_id, context_id=paused.context_id))
    done = await client.get_task(GetTaskRequest(id=task_id))
    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert done.artifacts[-1].parts[0].text == "All done."
    assert desk.ran() == ["look", "refund"]
    assert desk.seen.order == ["model", "look", "refund", "model"]


@pytest.mark.parametrize("legacy", [True, False], ids=["legacy", "new"])
async def test_adks_remote_agent_as_the_parent_answers_natively(desk: Desk, legacy: bool) -> None:
    async with Parent(desk.door, legacy=legacy) as parent:
        events = await parent.say(types.Part(text="go"))
        asked = {
            call.args["originalFunctionCall"]["id"]: call.id
            for event in events
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation" and call.args
        }
        assert set(asked) == {"c1", "c2"}
        answers = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=asked[name], name="adk_request_confirmation", response={"confirmed": name == "c1"}
                )
            )
            for name in asked
        ]
        assert texts(await parent.say(*answers)) == ["All done."]
    assert desk.ran() == ["look", "refund"]


async def test_plain_0_3_json_as_a_chat_window_sends_it(desk: Desk) -> None:
    async def say(*parts: Any, **ids: str) -> Any:
        message = {"kind": "message", "role": "user", "messageId": f"m{len(sent)}", "parts": list(parts), **ids}
        sent.append(message)
        return (await desk.door.rpc("message/send", {"message": message})).json()

    sent: list[Any] = []
    paused = (await say({"kind": "text", "text": "go"}, contextId="chat"))["result"]
    assert paused["status"]["state"] == "input-required"
    once = {"kind": "data", "data": {"decision_type": "batch", "decisions": {"c2": "approve"}}, "metadata": {}}
    label = {"kind": "text", "text": "Approved"}
    again = (await say(once, label, taskId=paused["id"]))["result"]
    assert (again["id"], again["status"]["state"]) == (paused["id"], "input-required")
    left = [p["data"]["args"]["originalFunctionCall"]["id"] for p in again["status"]["message"]["parts"] if "data" in p]
    assert left == ["c1"]
    late = (await say(once, label, taskId=paused["id"]))["error"]
    assert late["data"]["code"] == "already_decided"
    everything = {"kind": "data", "data": {"decision_type": "approve"}, "metadata": {}}
    done = (await say(everything, label, contextId="chat"))["result"]
    assert done["status"]["state"] == "completed"
    assert desk.ran() == ["look", "cancel", "refund"]
    nothing = (await say(everything, label, contextId="chat"))["error"]
    assert nothing["code"] == -32050
    assert nothing["data"]["code"] == "already_decided"
    assert desk.seen.models == 2
