"""ADK's RemoteA2aAgent as a parent: it sees the pause as a long-running call and answers it natively."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Answer, CallPart, NamedDecision, ResultPart
from support.scripted_service import Turn, ask

# ADK calls its whole A2A package experimental, on every use.
pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")

REFUND = ask("c1", "refund", hint="A refund of 20", order_id="A-1", amount=20)


class Parent:
    """An ADK runner whose root agent is the remote one."""

    def __init__(self, door: Any, *, legacy: bool) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
            from google.adk.runners import InMemoryRunner

            card = f"{door.url}.well-known/agent-card.json"
            agent = RemoteA2aAgent("refund_desk", card, httpx_client=door.http, use_legacy=legacy)
            self.runner = InMemoryRunner(agent, app_name="parent")

    async def __aenter__(self) -> Parent:
        self.session = await self.runner.session_service.create_session(app_name="parent", user_id="eve")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.runner.close()

    async def say(self, *parts: Any) -> list[Any]:
        from google.genai import types

        content = types.Content(role="user", parts=list(parts))
        found = self.runner.run_async(user_id="eve", session_id=self.session.id, new_message=content)
        return [event async for event in found]


@pytest.fixture(params=[True, False], ids=["legacy", "new"])
async def parent(door: Any, request: pytest.FixtureRequest) -> AsyncIterator[Parent]:
    async with Parent(door, legacy=request.param) as made:
        yield made


def texts(events: list[Any]) -> list[str]:
    """What a user reads: text that is not thinking."""
    parts = [part for event in events if event.content for part in event.content.parts or [] if not event.partial]
    return [part.text for part in parts if part.text and not part.thought]


async def test_a_parent_hears_the_question_once_and_its_answer_runs_the_call(door: Any, parent: Parent) -> None:
    from google.genai import types

    calls = (CallPart("g1", "get_order", {"id": "A-1"}),)
    results = (ResultPart("g1", "get_order", {"total": 20}),)
    door.service.on("refund", Turn(("Let me see.",), calls, results, asks=(REFUND,), then=Turn(text="Refunded.")))
    events = await parent.say(types.Part(text="refund"))
    assert not [event.error_message for event in events if event.error_message]
    asked = [
        call
        for event in events
        for call in event.get_function_calls()
        if call.id in (event.long_running_tool_ids or ())
    ]
    assert [(call.name, call.id) for call in asked] == [("adk_request_confirmation", "adk-c1")]
    assert asked[0].args["originalFunctionCall"]["args"] == {"order_id": "A-1", "amount": 20}

    response = types.FunctionResponse(id="adk-c1", name="adk_request_confirmation", response={"confirmed": True})
    events = await parent.say(types.Part(function_response=response))
    assert texts(events) == ["Refunded."]
    inbound = door.service.inbound[-1]
    assert inbound.decision == NamedDecision({"adk-c1": Answer(Verdict.APPROVED)})
    (task_id,) = door.service.tasks
    assert (inbound.task_id, inbound.context_id) == (task_id, door.service.tasks[task_id].context_id)


async def test_a_parents_wrapped_no_is_a_no(door: Any, parent: Parent) -> None:
    from google.genai import types

    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(text="Then not.")))
    await parent.say(types.Part(text="refund"))
    wrapped = {"response": '{"confirmed": false}'}
    response = types.FunctionResponse(id="adk-c1", name="adk_request_confirmation", response=wrapped)
    assert texts(await parent.say(types.Part(function_response=response))) == ["Then not."]
    assert door.service.inbound[-1].decision == NamedDecision({"adk-c1": Answer(Verdict.REJECTED)})


async def test_a_parent_that_only_talks_gets_the_answer_once(door: Any, parent: Parent) -> None:
    from google.genai import types

    door.service.on("hello", Turn(deltas=("H", "i."), text="Hi."))
    assert texts(await parent.say(types.Part(text="hello"))) == ["Hi."]


async def test_a_parent_hears_why_its_answer_was_refused(door: Any, parent: Parent) -> None:
    from google.genai import types

    late = Refusal("already_decided", "bob rejected it", ("c1",))
    door.service.on("refund", Turn(asks=(REFUND,), then=Turn(refuses=late)))
    await parent.say(types.Part(text="refund"))
    response = types.FunctionResponse(id="adk-c1", name="adk_request_confirmation", response={"confirmed": True})
    events = await parent.say(types.Part(function_response=response))
    assert any("bob rejected it" in (event.error_message or "") for event in events)
