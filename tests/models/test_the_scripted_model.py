"""A model that replies from a script: the same after a pause, a restart and on another replica."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sayso_api.runtimeconfig import ModelSettings, ScriptedCall, ScriptedTurn
from sayso_runtime.models.build import build_model
from sayso_runtime.models.errors import ModelFailed
from sayso_runtime.models.scripted import closing, count_replies

GET = ScriptedCall(name="get_order", args={"order_id": "A-1"})
REFUND = ScriptedCall(name="refund", args={"order_id": "A-1"})
TRANSFER = ScriptedCall(name="transfer_to_agent", args={"agent_name": "polite"})


def get_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order": order_id, "state": "paid"}


def refund(order_id: str) -> dict[str, str]:
    """Pay back."""
    return {"refunded": order_id}


class Talk:
    """A session; each call of `say` is another process' worth of agent, model and runner."""

    def __init__(self, *turns: ScriptedTurn, retries: int = 0) -> None:
        self.sessions = InMemorySessionService()
        self.settings = ModelSettings(provider="Scripted", turns=turns, retries=retries)
        self.model_calls = 0
        self.id = uuid.uuid4().hex
        self.confirmation: str | None = None

    def _count(self) -> None:
        self.model_calls += 1

    def _app(self) -> App:
        model = build_model(self.settings, {}, self._count)
        child = LlmAgent(name="polite", model=model, instruction="x", tools=[get_order])
        gated = FunctionTool(refund, require_confirmation=True)
        root = LlmAgent(name="desk", model=model, instruction="x", tools=[get_order, gated], sub_agents=[child])
        return App(name="t", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))

    async def say(self, part: types.Part) -> list[str]:
        """The texts of the replies to a message."""
        if await self.sessions.get_session(app_name="t", user_id="u", session_id=self.id) is None:
            await self.sessions.create_session(app_name="t", user_id="u", session_id=self.id)
        runner = Runner(app=self._app(), session_service=self.sessions)
        texts: list[str] = []
        message = types.Content(role="user", parts=[part])
        async for event in runner.run_async(user_id="u", session_id=self.id, new_message=message):
            for call in event.get_function_calls():
                if call.name == "adk_request_confirmation":
                    self.confirmation = call.id
            texts += [p.text for p in (event.content.parts if event.content else None) or [] if p.text]
        return texts

    async def text(self, words: str) -> list[str]:
        """Say something."""
        return await self.say(types.Part(text=words))

    async def answer(self, confirmed: bool) -> list[str]:
        """Answer the pending confirmation."""
        response = types.FunctionResponse(
            id=self.confirmation, name="adk_request_confirmation", response={"confirmed": confirmed}
        )
        return await self.say(types.Part(function_response=response))


def turn(*calls: ScriptedCall, **fields: Any) -> ScriptedTurn:
    """A turn of a script."""
    return ScriptedTurn(calls=calls, **fields)


async def test_each_reply_is_one_turn_over_several_messages() -> None:
    talk = Talk(turn(text="one"), turn(GET, text="looking"), turn(text="two"), turn(text="three"))

    assert await talk.text("a") == ["one"]
    assert await talk.text("b") == ["looking", "two"]
    assert await talk.text("c") == ["three"]


async def test_parallel_calls_are_one_turn() -> None:
    talk = Talk(turn(GET, GET, GET), turn(text="all seen"))

    assert await talk.text("a") == ["all seen"]
    assert talk.model_calls == 2


@pytest.mark.parametrize("confirmed", [True, False])
async def test_a_pause_and_its_resume_in_a_new_runner_do_not_shift_the_script(confirmed: bool) -> None:
    talk = Talk(turn(GET), turn(GET, REFUND), turn(text="done"), turn(text="more"))

    await talk.text("a")
    assert talk.model_calls == 2
    assert await talk.answer(confirmed) == ["done"]
    assert talk.model_calls == 3
    assert await talk.text("b") == ["more"]


async def test_past_the_last_turn_the_latest_results_are_quoted_in_full() -> None:
    talk = Talk(turn(GET, REFUND))

    await talk.text("a")
    (closing_words,) = await talk.answer(True)

    assert 'get_order: {"order": "A-1", "state": "paid"}' in closing_words
    assert 'refund: {"refunded": "A-1"}' in closing_words


async def test_past_the_last_turn_a_refusal_is_quoted() -> None:
    talk = Talk(turn(REFUND))

    await talk.text("a")

    assert "rejected" in (await talk.answer(False))[0]


async def test_an_agent_that_takes_over_plays_the_next_turn() -> None:
    talk = Talk(turn(GET), turn(TRANSFER), turn(GET), turn(text="from the other"), turn(text="still there"))

    assert await talk.text("a") == ["from the other"]
    assert await talk.text("b") == ["still there"]


async def test_a_failed_reply_does_not_count() -> None:
    talk = Talk(turn(text="one"), turn(text="two", fail="503 overloaded", fail_times=1))
    await talk.text("a")
    model = build_model(talk.settings, {})
    request = LlmRequest(contents=[types.Content(role="model", parts=[types.Part(text="one")])])

    with pytest.raises(ModelFailed, match="503 overloaded"):
        await anext(model.generate_content_async(request))

    reply = await anext(model.generate_content_async(request))
    assert reply.content.parts[0].text == "two"


async def test_a_scripted_failure_is_retried_like_any_other() -> None:
    talk = Talk(turn(text="recovered", fail="503 overloaded", fail_times=2), retries=2)

    assert await talk.text("a") == ["recovered"]
    assert talk.model_calls == 3


async def test_a_late_reply_is_given_up_on_after_the_time_out() -> None:
    settings = ModelSettings(
        provider="Scripted", turns=(turn(text="late", delay_seconds=600),), timeout_seconds=0.05, retries=0
    )

    with pytest.raises(ModelFailed, match=r"no reply within 0\.05 s"):
        await anext(build_model(settings, {}).generate_content_async(LlmRequest()))


async def test_what_runs_cannot_change_the_script() -> None:
    settings = ModelSettings(provider="Scripted", turns=(turn(ScriptedCall(name="x", args={"list": [1]})),))
    model = build_model(settings, {})

    first = await anext(model.generate_content_async(LlmRequest()))
    first.content.parts[0].function_call.args["list"].append(2)
    second = await anext(model.generate_content_async(LlmRequest()))

    assert second.content.parts[0].function_call.args == {"list": [1]}


@pytest.mark.parametrize(
    ("contents", "count"),
    [
        ([], 0),
        ([types.Content(role="user", parts=[types.Part(text="[desk] said:\nhi")])], 0),
        ([types.Content(role="model", parts=[types.Part(text="a"), types.Part(text="b")])], 1),
        ([types.Content(role="model", parts=[])], 0),
    ],
)
def test_only_replies_count(contents: list[types.Content], count: int) -> None:
    assert count_replies(contents) == count


def test_without_results_the_closing_says_that_the_script_is_over() -> None:
    assert closing([types.Content(role="user", parts=[types.Part(text="hi")])]) == "The script has no reply for this."
