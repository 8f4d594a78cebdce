"""From `ModelSettings` to a model. Only the provider that is used is imported: each costs hundreds of milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.adk.models.base_llm import BaseLlm

from sayso_api.runtimeconfig import ModelSettings
from sayso_runtime.models.retrying import Retrying
from sayso_runtime.tools.outcome import ConfigProblem

#: The variables that providers' own tools read.
USUAL_KEYS = {
    "Gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "OpenAI": ("OPENAI_API_KEY",),
    "Anthropic": ("ANTHROPIC_API_KEY",),
}
# The wrapper's time-out comes first and is the one that is reported; this one only closes the connection behind it.
BEHIND_SECONDS = 5.0


def build_model(settings: ModelSettings, env: Mapping[str, str], on_call: Callable[[], None] = lambda: None) -> BaseLlm:
    """The model, under its time-out and retries. `on_call` hears of every attempt to call it.

    Raises ConfigProblem: no model name, no key, or a provider that is not installed.
    """
    if settings.provider != "Scripted" and not settings.model:
        raise ConfigProblem(f"ModelConfig: provider {settings.provider} needs spec.model")
    key = api_key(settings, env)
    return Retrying(_PROVIDERS[settings.provider](settings, key), settings, on_call, secrets=(key or "",))


def api_key(settings: ModelSettings, env: Mapping[str, str]) -> str | None:
    """The key: from the ModelConfig's secret, else the provider's usual variable.

    None where none is needed: scripted models, LiteLLM (which reads its own variables), and OpenAI-compatible servers
    at a `baseUrl` without a secret. Raises ConfigProblem naming secret and variables.
    """
    usual = USUAL_KEYS.get(settings.provider, ())
    for name in (settings.api_key_env, *usual):
        if name and env.get(name):
            return env[name]
    if settings.api_key_env is None and (not usual or (settings.provider == "OpenAI" and settings.base_url)):
        return None
    names = " or ".join(name for name in (settings.api_key_env, *usual) if name)
    secret = (
        "the Secret that its apiKeySecretRef names did not reach this process"
        if settings.api_key_env
        else "it names no apiKeySecretRef"
    )
    raise ConfigProblem(
        f"ModelConfig for {settings.provider} model {settings.model}: there is no key: {secret}. "
        f"Locally, set the variable {names}"
    )


def _gemini(settings: ModelSettings, key: str | None) -> BaseLlm:
    import httpx2
    from google.adk.models.google_llm import Gemini
    from google.genai import types

    options = types.HttpOptions(
        base_url=settings.base_url,
        httpx_async_client=httpx2.AsyncClient(),  # as the MCP sessions use, instead of a second HTTP library
        timeout=round((settings.timeout_seconds + BEHIND_SECONDS) * 1000),
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    return Gemini(
        model=settings.model,
        base_url=settings.base_url,
        retry_options=options.retry_options,
        client_kwargs={"api_key": key, "vertexai": False, "http_options": options},
    )


def _openai(settings: ModelSettings, key: str | None) -> BaseLlm:
    from google.adk.integrations.openai import OpenAILlm
    from openai import AsyncOpenAI

    client = AsyncOpenAI(
        api_key=key or "none",  # servers without keys do not look at it; the library insists on one
        base_url=settings.base_url,
        max_retries=0,
        timeout=settings.timeout_seconds + BEHIND_SECONDS,
    )
    model: BaseLlm = OpenAILlm(model=settings.model, base_url=settings.base_url, client=client)
    return model


def _anthropic(settings: ModelSettings, key: str | None) -> BaseLlm:
    from anthropic import AsyncAnthropic

    from sayso_runtime.models.claude import Claude

    client = AsyncAnthropic(
        api_key=key,
        base_url=settings.base_url,
        max_retries=0,
        timeout=settings.timeout_seconds + BEHIND_SECONDS,
    )
    return Claude(model=settings.model, client=client)


def _litellm(settings: ModelSettings, key: str | None) -> BaseLlm:
    try:
        from google.adk.models.lite_llm import LiteLlm
    except ImportError as error:
        raise ConfigProblem(
            f"ModelConfig: provider LiteLLM is not installed ({error}). Run: pip install 'sayso[litellm]'"
        ) from error
    extra: dict[str, Any] = {"num_retries": 0, "timeout": settings.timeout_seconds + BEHIND_SECONDS}
    if key is not None:
        extra["api_key"] = key
    if settings.base_url is not None:
        extra["api_base"] = settings.base_url
    return LiteLlm(model=settings.model, **extra)


def _scripted(settings: ModelSettings, _: str | None) -> BaseLlm:
    from sayso_runtime.models.scripted import ScriptedModel

    return ScriptedModel(model=settings.model or "scripted", turns=settings.turns)


_PROVIDERS: dict[str, Callable[[ModelSettings, str | None], BaseLlm]] = {
    "Gemini": _gemini,
    "OpenAI": _openai,
    "Anthropic": _anthropic,
    "LiteLLM": _litellm,
    "Scripted": _scripted,
}
