"""The same gated agent on ADK alone: what the two systems that Sayso is measured against run.

The gate is a `before_tool_callback` that asks for a confirmation, with resumability on and summarisation skipped: the
only combination in which ADK 2.13 calls no model while it waits.
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
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from benchmarks import scenario
from benchmarks.tools import refund


class ScriptedLlm(BaseLlm):
    """Replies as `scenario.reply` says, by the number of model replies in the request."""

    async def generate_content_async(
        self,
        llm_request: LlmRequest,
        stream: bool = False,
    ) -> AsyncGenerator[LlmResponse, None]:
        replies = sum(1 for content in llm_request.contents if content.role == "model")
        turn = scenario.reply(replies)
        parts = [types.Part(text=turn.text)] if turn.text else []
        parts += [types.Part(function_call=types.FunctionCall(name=call.name, args=call.args)) for call in turn.calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def ask_first(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any] | None:
    """Asks before the tool runs; None lets it run once the confirmation says so."""
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(hint=f"May {tool.name} run?")
        tool_context.actions.skip_summarization = True
        return {"status": "confirmation_requested"}
    return None if confirmation.confirmed else {"error": "Rejected."}


def agent() -> LlmAgent:
    """The agent, gated."""
    return LlmAgent(
        name=scenario.AGENT,
        description=scenario.DESCRIPTION,
        instruction=scenario.INSTRUCTION,
        model=ScriptedLlm(model="scripted"),
        tools=[refund],
        before_tool_callback=ask_first,
    )


def runner(root: LlmAgent) -> Runner:
    """A runner with ADK's own in-memory sessions, resumable."""
    app = App(
        name=scenario.AGENT,
        root_agent=root,
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    return Runner(app=app, session_service=InMemorySessionService())
