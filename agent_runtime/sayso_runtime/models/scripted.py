"""A model that replies from a script: for demos and tests, where every run has to be the same.

Which turn it plays is decided by what it is shown and by nothing that it remembers, so it goes on rightly after a
restart and on another replica. The rule: **the turn is the number of model replies in the request's contents.** A
reply is

- a content of role `model` (one, whatever it is made of: text, several calls, both), or
- another agent's reply, which ADK shows as a quotation with the role `user`: "[name] said: …", "[name] called tool …".

Tool results, people's messages and ADK's own confirmation events (which ADK leaves out of requests) do not count, nor
does a failed reply, which is never stored. An agent that is shown only a part of the session (ADK's task mode) counts
within that part.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from google.adk.models import LlmCapabilities
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from sayso_api.runtimeconfig import ScriptedTurn
from sayso_runtime.models.errors import ModelError

_QUOTED_REPLY = re.compile(r"\[[^\]\n]+\] (?:said:|called tool `)")
_QUOTED_RESULT = re.compile(r"\[[^\]\n]+\] `[^`\n]*` tool returned result:")
_QUOTATION = "For context:"


class ScriptedModel(BaseLlm):
    """See the module's text. `fail` turns count their failures per process; nothing else is kept."""

    model: str = "scripted"
    turns: tuple[ScriptedTurn, ...] = ()
    _failures: dict[int, int] = PrivateAttr(default_factory=dict)

    @property
    def capabilities(self) -> LlmCapabilities:
        """Nothing special."""
        return LlmCapabilities()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One complete reply. Raises ModelError where the script says so."""
        index = count_replies(llm_request.contents)
        turn = self.turns[index] if index < len(self.turns) else ScriptedTurn()
        if turn.delay_seconds > 0:
            await asyncio.sleep(turn.delay_seconds)
        if turn.fail is not None and self._failures.get(index, 0) < turn.fail_times:
            self._failures[index] = self._failures.get(index, 0) + 1
            raise ModelError(turn.fail)
        yield LlmResponse(
            content=types.Content(role="model", parts=_parts(turn) or [types.Part(text=closing(llm_request.contents))]),
            partial=False,
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=0, candidates_token_count=0),
        )


def count_replies(contents: Iterable[types.Content]) -> int:
    """How many model replies a request shows; the module's text has the rule."""
    return sum(1 for content in contents if _is_reply(content))


def closing(contents: Iterable[types.Content]) -> str:
    """What is said past the script's end: the latest tool results in full, errors and refusals included."""
    results: list[str] = []
    for content in reversed(list(contents)):
        found = _results(content)
        if found:
            results = found + results
        elif _is_reply(content) or results:
            break
    return "\n".join(results) if results else "The script has no reply for this."


def _parts(turn: ScriptedTurn) -> list[types.Part]:
    parts = [types.Part(text=turn.text)] if turn.text else []
    for call in turn.calls:
        # Deeply copied: what runs may change its arguments, the script must not change with them.
        arguments: dict[str, Any] = json.loads(json.dumps(call.args))
        parts.append(types.Part(function_call=types.FunctionCall(id=call.id, name=call.name, args=arguments)))
    return parts


def _is_reply(content: types.Content) -> bool:
    if content.role == "model":
        return bool(content.parts)
    return any(_QUOTED_REPLY.match(text) for text in _quoted(content))


def _quoted(content: types.Content) -> list[str]:
    texts = [part.text for part in content.parts or () if part.text]
    return texts[1:] if texts and texts[0].startswith(_QUOTATION) else []


def _results(content: types.Content) -> list[str]:
    found = [
        f"{part.function_response.name}: {json.dumps(part.function_response.response, ensure_ascii=False)}"
        for part in content.parts or ()
        if part.function_response is not None
    ]
    return found or [text for text in _quoted(content) if _QUOTED_RESULT.match(text)]
