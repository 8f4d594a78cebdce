"""A rehearsal before the agent reports ready: ADK imports much of itself only when a call is first made and resumed.

Without it the first request of a process takes about a second longer. Nothing leaves the process: a model of two lines
calls a tool that does nothing, which asks, is answered and ends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from sayso_runtime.engine.adk.sessions import CONFIRMATION


class _TwoLines(BaseLlm):
    model: str = "rehearsal"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        del stream
        first = not any(content.role == "model" for content in llm_request.contents)
        call = types.Part(function_call=types.FunctionCall(name="_nothing", args={}))
        part = call if first else types.Part(text="ready")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _nothing() -> dict[str, str]:
    """Does nothing."""
    return {}


async def rehearse() -> None:
    """Runs a pause and its resume from beginning to end, in memory."""
    agent = LlmAgent(
        name="rehearsal",
        model=_TwoLines(),
        tools=[FunctionTool(_nothing, require_confirmation=True)],
    )
    sessions = InMemorySessionService()
    runner = Runner(
        app=App(name="rehearsal", root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True)),
        session_service=sessions,
    )
    await sessions.create_session(app_name="rehearsal", user_id="sayso", session_id="rehearsal")

    async def run(part: types.Part) -> str:
        question = ""
        message = types.Content(role="user", parts=[part])
        events: Any = runner.run_async(user_id="sayso", session_id="rehearsal", new_message=message)
        async for event in events:
            event.model_dump_json(exclude_none=True, by_alias=True)
            for call in event.get_function_calls():
                if call.name == CONFIRMATION and call.id:
                    question = call.id
        return question

    question = await run(types.Part(text="rehearse"))
    answer = types.FunctionResponse(id=question, name=CONFIRMATION, response={"confirmed": True})
    await run(types.Part(function_response=answer))
