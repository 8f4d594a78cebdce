"""ADK's RemoteA2aAgent as a parent: it sees the pause as a long-running call and answers it natively."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sayso_approvals.records import Verdict
from sayso_approvals.refusals import Refusal
from sayso_runtime.messages import Answer, CallPart, NamedDecision, ResultPart
from support.adk_parent import Parent, texts
from support.scripted_service import Turn, ask

# ADK calls its whole A2A package experimental, on every use.
pytestmark = pytest.mark.filterwarnings("ignore:.*EXPERIMENTAL.*:UserWarning")

REFUND = ask("c1", "refund", hint="A refund of 20", order_id="A-1", amount=20)


@pytest.fixture(params=[True, False], ids=["legacy", "new"])
async def parent(door: Any, request: pytest.FixtureRequest) -> AsyncIterator[Parent]:
    async with Parent(door, legacy=request.param) as made:
        yield made


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
