"""Each provider's own wire format: text, tool calls, keys, retries, and errors without secrets."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from sayso_api.runtimeconfig import ModelSettings
from sayso_runtime.engine import api
from sayso_runtime.models.build import build_model
from sayso_runtime.models.errors import ModelFailed
from sayso_runtime.tools.outcome import ConfigProblem


def settings(wire: str, url: str, **changes: Any) -> ModelSettings:
    """A ModelConfig as it reaches the agent's process."""
    fields = {"provider": wire, "model": "gpt-4o" if wire == "OpenAI" else "m", "base_url": url, "api_key_env": "KEY"}
    return ModelSettings.model_validate(fields | changes)


def request() -> LlmRequest:
    """A question to a model that has one tool."""
    declaration = types.FunctionDeclaration(
        name="get_order",
        description="Look up.",
        parameters_json_schema={"type": "object", "properties": {"order_id": {"type": "string"}}},
    )
    return LlmRequest(
        model="m",
        contents=[types.Content(role="user", parts=[types.Part(text="Where is A-1?")])],
        config=types.GenerateContentConfig(
            system_instruction="Help.", tools=[types.Tool(function_declarations=[declaration])]
        ),
    )


async def ask(model: Any) -> list[types.Part]:
    """The parts of the model's one reply."""
    (response,) = [response async for response in model.generate_content_async(request())]
    assert response.error_code is None
    return list(response.content.parts)


async def test_text_comes_back_and_the_key_goes_in_its_header_only(
    provider: Any, wire: str, reply: Any, key: str, key_headers: set[str]
) -> None:
    provider.answers = [(200, reply("On its way.", None))]
    model = build_model(settings(wire, provider.url, temperature=0.25, max_output_tokens=77), {"KEY": key})

    (part,) = await ask(model)

    assert part.text == "On its way."
    (path, headers, body) = provider.requests[0]
    (holder,) = [name for name, value in headers.items() if key in value]
    assert holder in key_headers
    assert key not in path
    assert key not in str(body)
    assert "0.25" in str(body)
    assert "77" in str(body)


async def test_a_tool_call_comes_back_with_its_arguments(provider: Any, wire: str, reply: Any, key: str) -> None:
    provider.answers = [(200, reply(None, ("get_order", {"order_id": "A-1"})))]
    model = build_model(settings(wire, provider.url), {"KEY": key})

    (part,) = await ask(model)

    assert part.function_call.name == "get_order"
    assert part.function_call.args == {"order_id": "A-1"}
    assert "get_order" in str(provider.requests[0][2])
    assert "order_id" in str(provider.requests[0][2])


@pytest.mark.parametrize(
    "failure", [(500, {"error": {"message": "boom"}}), (429, {"error": {"message": "slow"}}), None]
)
async def test_a_passing_failure_is_tried_again_and_every_attempt_is_counted(
    provider: Any, wire: str, reply: Any, key: str, failure: Any
) -> None:
    calls: list[int] = []
    provider.answers = [failure, (200, reply("Fine.", None))]
    model = build_model(settings(wire, provider.url), {"KEY": key}, lambda: calls.append(1))

    (part,) = await ask(model)

    assert part.text == "Fine."
    assert len(provider.requests) == len(calls) == 2


async def test_no_retries_means_one_attempt(provider: Any, wire: str, reply: Any, key: str) -> None:
    provider.answers = [(503, {"error": {"message": "overloaded"}}), (200, reply("never asked", None))]
    model = build_model(settings(wire, provider.url, retries=0), {"KEY": key})

    with pytest.raises(ModelFailed, match="503"):
        await ask(model)

    assert len(provider.requests) == 1


async def test_retries_end_and_say_how_many_there_were(provider: Any, wire: str, key: str) -> None:
    provider.answers = [(500, {"error": {"message": "boom"}})] * 3
    model = build_model(settings(wire, provider.url), {"KEY": key})

    with pytest.raises(ModelFailed, match=rf"{wire} model .*500.*3 attempts"):
        await ask(model)

    assert len(provider.requests) == 3


@pytest.mark.parametrize("status", [400, 404])
async def test_a_refusal_is_not_tried_again(provider: Any, wire: str, key: str, status: int) -> None:
    provider.answers = [(status, {"error": {"message": f"no such model, {key} says"}})]
    model = build_model(settings(wire, provider.url), {"KEY": key})

    with pytest.raises(ModelFailed, match=str(status)) as failed:
        await ask(model)

    assert len(provider.requests) == 1
    assert key not in str(failed.value)


async def test_a_refused_key_is_said_without_the_providers_words(provider: Any, wire: str, key: str) -> None:
    provider.answers = [(401, {"error": {"message": f"Incorrect API key provided: {key[:8]}***"}})]
    model = build_model(settings(wire, provider.url), {"KEY": key})

    with pytest.raises(ModelFailed, match="HTTP 401: the key was refused") as failed:
        await ask(model)

    assert key[:8] not in str(failed.value)
    assert isinstance(failed.value, api.ModelFailed)


async def test_a_provider_that_is_not_there_is_a_failed_model(provider: Any, wire: str, key: str) -> None:
    await provider.stop()
    model = build_model(settings(wire, provider.url, retries=1), {"KEY": key})

    with pytest.raises(ModelFailed, match="2 attempts"):
        await ask(model)


def test_a_missing_key_names_the_variables(wire: str) -> None:
    with pytest.raises(ConfigProblem, match=r"apiKeySecretRef.*SAYSO_SECRET_MODEL_KEYS_A or \w+_API_KEY"):
        build_model(settings(wire, "http://localhost", api_key_env="SAYSO_SECRET_MODEL_KEYS_A"), {})


def test_the_providers_usual_variable_will_do() -> None:
    build_model(settings("OpenAI", "http://localhost", api_key_env=None), {"OPENAI_API_KEY": "k"})
    build_model(settings("Anthropic", "http://localhost"), {"ANTHROPIC_API_KEY": "k"})


def test_a_server_without_keys_needs_none() -> None:
    build_model(settings("OpenAI", "http://localhost", api_key_env=None), {})


def test_a_provider_needs_a_model(wire: str) -> None:
    with pytest.raises(ConfigProblem, match=r"needs spec\.model"):
        build_model(settings(wire, "http://localhost", model=""), {"KEY": "k"})
