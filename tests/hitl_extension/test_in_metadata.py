"""kagent's extension of A2A 1.0: what waits and what was decided, in the metadata of messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from a2a.client import ClientConfig, create_client
from a2a.types import Message, Part, Role, SendMessageRequest, TaskState
from google.protobuf.json_format import MessageToDict, ParseDict
from redis.asyncio import Redis

from support import a2a03
from support.a2a03 import Json
from support.agents import call, calls, says
from support.family import Member, family

URI = "https://kagent.dev/extensions/hitl/v1"
DATABASE = {"question": "Which database?", "choices": ["PostgreSQL", "SQLite"], "multiple": False}
TWO = calls(call("refund", "c1", order="A-1"), call("wipe", "c2", order="A-2"))
MIXED = calls(call("ask_user", "q1", questions=[DATABASE]), call("refund", "c1", order="A-1"))


@asynccontextmanager
async def sdk(member: Member) -> AsyncIterator[Any]:
    """The SDK's client, asking for the extension."""
    async with httpx.AsyncClient(timeout=60, headers={"A2A-Extensions": f"urn:other, {URI}"}) as http:
        yield await create_client(member.url, ClientConfig(httpx_client=http, streaming=False))


async def send(client: Any, *parts: Part, payload: Json | None = None, **ids: str) -> Any:
    """One message; the task at the end of its run."""
    message = Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=parts or (Part(text="Decided"),), **ids)
    if payload is not None:
        ParseDict({URI: payload}, message.metadata)
        message.extensions.append(URI)
    events = [event async for event in client.send_message(SendMessageRequest(message=message))]
    return events[-1].task


def request_of(task: Any) -> Json:
    """The one request that a paused task's message carries."""
    message = MessageToDict(task.status.message)
    assert message["extensions"] == [URI]
    assert not [part for part in message["parts"] if "data" in part]
    found: Json = message["metadata"][URI]
    return found


async def post(member: Member, message: Json, *, extension: bool = True) -> httpx.Response:
    """One 1.0 message as plain JSON."""
    sent = {"role": "ROLE_USER", "messageId": uuid.uuid4().hex, "contextId": "s1", "parts": [{"text": "x"}], **message}
    headers = {"A2A-Version": "1.0"} | ({"A2A-Extensions": URI} if extension else {})
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": sent}}
    async with httpx.AsyncClient(timeout=60) as http:
        return await http.post(member.url, json=body, headers=headers)


def told(payload: Any, extensions: Any = (URI,)) -> Json:
    """A message that decides."""
    return {"metadata": {URI: payload}, "extensions": list(extensions)}


def approvals(*entries: Json) -> Json:
    return {"type": "tool_approval_response", "approvals": list(entries)}


async def test_calls_are_asked_for_together_and_decided_by_the_ids_of_their_questions(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        async with sdk(desk) as client:
            paused = await send(client, Part(text="go"), context_id="s1")
            request = request_of(paused)
            assert request["type"] == "tool_approval_request"
            assert [(one["call_id"], one["name"], one["args"]) for one in request["tools"]] == [
                ("c1", "refund", {"order": "A-1"}),
                ("c2", "wipe", {"order": "A-2"}),
            ]
            assert "refund" in request["hint"]
            one, two = (tool["id"] for tool in request["tools"])
            said = approvals(
                {"id": one, "approved": True}, {"id": two, "approved": False, "rejection_reason": "keep it"}
            )
            done = await send(client, payload=said, task_id=paused.id, context_id="s1")
            assert done.status.state == TaskState.TASK_STATE_COMPLETED
            assert "Rejected by ada: keep it" in done.artifacts[-1].parts[0].text
            history = [MessageToDict(message) for message in done.history]
            assert [URI in message.get("extensions", ()) for message in history] == [False, True, True, False]
        assert home.ran == [("refund", "A-1")]


async def test_a_question_comes_after_the_calls_beside_it(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", MIXED)
        async with sdk(desk) as client:
            paused = await send(client, Part(text="go"), context_id="s1")
            (tool,) = request_of(paused)["tools"]
            assert tool["call_id"] == "c1"
            said = approvals({"id": tool["id"], "approved": True})
            paused = await send(client, payload=said, task_id=paused.id, context_id="s1")
            request = request_of(paused)
            assert (request["type"], request["questions"]) == ("ask_user_request", [DATABASE])
            answers = {"type": "ask_user_response", "id": request["id"], "answers": [{"answer": ["SQLite"]}]}
            done = await send(client, payload=answers, task_id=paused.id, context_id="s1")
            assert '"answer": ["SQLite"]' in done.artifacts[-1].parts[0].text
        assert home.ran == [("refund", "A-1")]


async def test_what_waits_at_agents_below_comes_agent_by_agent(redis: Redis) -> None:
    async with family(redis) as home:
        await home.add("one", TWO)
        await home.add("two", MIXED)
        both = calls(*(call(f"shop__NS__{name}", f"p-{name}", request="go") for name in ("one", "two")))
        root = await home.add("root", both, says("All is done."), children=["one", "two"])
        seen = []
        async with sdk(root) as client:
            task = await send(client, Part(text="go"), context_id="s1")
            while task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
                request = request_of(task)
                nested = request["nested"]
                assert nested["task_id"]
                assert nested["context_id"]
                seen.append((nested["subagent_name"], [tool["call_id"] for tool in nested["tools"]]))
                if request["type"] == "ask_user_request":
                    assert request["id"] == nested["tools"][0]["id"]
                    said = {"type": "ask_user_response", "id": request["id"], "answers": [{"answer": ["SQLite"]}]}
                else:
                    assert [tool["call_id"] for tool in request["tools"]] == [f"p-{nested['subagent_name']}"]
                    said = approvals(*({"id": tool["id"], "approved": True} for tool in nested["tools"]))
                task = await send(client, payload=said, task_id=task.id, context_id="s1")
            assert task.artifacts[-1].parts[0].text == "All is done."
        assert seen[0] == ("one", ["c1", "c2"])
        assert [name for name, _ in seen] == ["one", "two", "two"]
        assert sorted(home.ran) == [("refund", "A-1"), ("refund", "A-1"), ("wipe", "A-2")]


WRONG: dict[str, Callable[[str, str], Any]] = {
    "one is missing": lambda one, two: told(approvals({"id": one, "approved": True})),
    "one twice": lambda one, two: told(approvals(*[{"id": one, "approved": True}] * 2, {"id": two, "approved": True})),
    "unknown": lambda one, two: told(approvals(*({"id": i, "approved": True} for i in (one, two, "c9")))),
    "a yes that is a word": lambda one, two: told(approvals(*({"id": i, "approved": "true"} for i in (one, two)))),
    "a yes that is a number": lambda one, two: told(approvals(*({"id": i, "approved": 1} for i in (one, two)))),
    "no verdict": lambda one, two: told(approvals({"id": one}, {"id": two})),
    "a reason for a yes": lambda one, two: told(
        approvals(*({"id": i, "approved": True, "rejection_reason": "no"} for i in (one, two)))
    ),
    "more than is known": lambda one, two: told(approvals(*({"id": i, "approved": True, "x": 1} for i in (one, two)))),
    "none": lambda one, two: told(approvals()),
    "no list": lambda one, two: told({"type": "tool_approval_response", "approvals": {"id": one}}),
    "another type": lambda one, two: told({"type": "tool_approval", "approvals": []}),
    "text": lambda one, two: told("approved"),
    "nothing": lambda one, two: told(None),
    "answers to calls": lambda one, two: told(
        {"type": "ask_user_response", "id": one, "answers": [{"answer": ["yes"]}]}
    ),
    "not declared": lambda one, two: told(approvals(*({"id": i, "approved": True} for i in (one, two))), ()),
    "declared wrongly": lambda one, two: told(approvals(*({"id": i, "approved": True} for i in (one, two))), [7]),
    "two kinds of decision": lambda one, two: (
        told(approvals(*({"id": i, "approved": True} for i in (one, two))))
        | {"parts": [{"data": {"decision_type": "reject"}}]}
    ),
}


async def test_an_answer_that_is_not_whole_and_exact_decides_nothing(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        paused = (await post(desk, {})).json()["result"]["task"]
        one, two = (tool["id"] for tool in paused["status"]["message"]["metadata"][URI]["tools"])
        for what, message in WRONG.items():
            error = (await post(desk, message(one, two))).json().get("error")
            assert error, what
            assert error["code"] == -32602, what
        assert (home.ran, len(await desk.open())) == ([], 2)
        both = approvals(*({"id": i, "approved": True} for i in (one, two)))
        done = (await post(desk, told(both))).json()["result"]["task"]
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"
        late = (await post(desk, told(both))).json()["error"]
        assert (late["code"], late["data"]["code"]) == (-32050, "already_decided")


async def test_one_thing_said_twice_is_refused(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        paused = (await post(desk, {})).json()["result"]["task"]
        one, two = (tool["id"] for tool in paused["status"]["message"]["metadata"][URI]["tools"])
        said = approvals({"id": one, "approved": True}, {"id": two, "approved": False})
        message = {"role": "ROLE_USER", "messageId": "m", "contextId": "s1", "parts": [{"text": "x"}], **told(said)}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
        twice = body.replace('"approved": false', '"approved": false, "approved": true')
        async with httpx.AsyncClient() as http:
            answer = await http.post(desk.url, content=twice, headers={"content-type": "application/json"})
        assert answer.json()["error"]["code"] == -32602
        assert home.ran == []


async def test_clients_that_do_not_ask_for_it_still_get_parts(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        answer = await post(desk, {}, extension=False)
        message = answer.json()["result"]["task"]["status"]["message"]
        assert "a2a-extensions" not in answer.headers
        assert URI not in message.get("metadata", {})
        assert len([part for part in message["parts"] if "data" in part]) == 2
        async with httpx.AsyncClient(headers={"A2A-Extensions": URI}) as http:
            old = a2a03.result(a2a03.read(await http.post(desk.url, json=a2a03.message("x", "s1"))))
        assert a2a03.asked(old) == [("c1", "refund"), ("c2", "wipe")]


async def test_the_answer_says_that_it_speaks_the_extension_also_as_a_stream(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        assert (await post(desk, {})).headers["a2a-extensions"] == URI
        message = {"role": "ROLE_USER", "messageId": "m", "contextId": "s2", "parts": [{"text": "x"}]}
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
        async with httpx.AsyncClient(timeout=60, headers={"A2A-Extensions": URI}) as http:
            streamed = await http.post(desk.url, json=body)
        assert streamed.headers["a2a-extensions"] == URI
        last = json.loads(streamed.text.strip().split("\n\n")[-1].removeprefix("data: "))
        asked = last["result"]["statusUpdate"]["status"]["message"]["metadata"][URI]
        assert [tool["call_id"] for tool in asked["tools"]] == ["c1", "c2"]


async def test_the_card_offers_it(redis: Redis) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", TWO)
        async with sdk(desk) as client:
            (extension,) = client._card.capabilities.extensions
            assert (extension.uri, extension.required) == (URI, False)


@pytest.mark.parametrize("word", [True, False])
async def test_a_question_can_be_declined_and_a_yes_is_no_answer_to_it(redis: Redis, word: bool) -> None:
    async with family(redis) as home:
        desk = await home.add("desk", calls(call("ask_user", "q1", questions=[DATABASE])))
        paused = (await post(desk, {})).json()["result"]["task"]
        name = paused["status"]["message"]["metadata"][URI]["id"]
        answer = (await post(desk, told(approvals({"id": name, "approved": word})))).json()
        if word:
            assert answer["error"]["data"]["code"] == "malformed_decision"
        else:
            assert "Rejected by ada" in answer["result"]["task"]["artifacts"][-1]["parts"][0]["text"]
