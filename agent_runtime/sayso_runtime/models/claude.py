"""ADK's Claude connector, for every version of the `anthropic` package.

Newer ones have no parameter for the temperature any more, because the newest models refuse one; ADK still passes it,
and the call fails before it is made. Models that take a temperature still take it in the request's body, so it goes
there. It is the ModelConfig's author who knows whether the model does.
"""

from __future__ import annotations

import inspect
from typing import Any

from anthropic.resources.messages import AsyncMessages
from google.adk.models.anthropic_llm import AnthropicLlm

_NAMED = frozenset(inspect.signature(AsyncMessages.create).parameters)
_SAMPLING = ("temperature", "top_p", "top_k")


class Claude(AnthropicLlm):
    """See the module's text."""

    def _build_anthropic_kwargs(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        fields: dict[str, Any] = super()._build_anthropic_kwargs(*args, **kwargs)
        unnamed = {name: fields.pop(name) for name in _SAMPLING if name in fields and name not in _NAMED}
        if unnamed:
            fields["extra_body"] = {**(fields.get("extra_body") or {}), **unnamed}
        return fields
