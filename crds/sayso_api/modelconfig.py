"""`ModelConfig`: which model an agent speaks to, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from sayso_api.base import Part, Rule, Text, Violation, peek
from sayso_api.meta import HttpUrl, ObjectStatus, Resource, SecretKeyRef, ShortText

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Provider = Literal["Gemini", "OpenAI", "Anthropic", "LiteLLM", "Scripted"]


class ModelParameters(Part):
    """How the model is called."""

    temperature: Number | None = Field(
        None, ge=0, le=2, description="How freely it chooses its words, 0 to 2. Left out: the provider's default."
    )
    max_output_tokens: StrictInt | None = Field(
        None, ge=1, description="The longest reply, in tokens. Left out: the provider's default."
    )
    timeout_seconds: Number = Field(
        60.0, gt=0, le=3600, description="How long one call may take, in seconds. Left out: 60."
    )
    retries: StrictInt = Field(
        2, ge=0, le=10, description="How often a failed call is tried again. Left out: 2; 0 for never."
    )


class ScriptedCallSpec(Part):
    """A tool call in a scripted reply."""

    name: Annotated[str, Text(256, "a tool's name", shortest=1)] = Field(
        description="The tool's name, as the model sees it. Required."
    )
    args: dict[str, Any] = Field(
        default_factory=dict,
        description="Its arguments. Left out: none.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    id: Annotated[str, Text(256, "the call's id", shortest=1)] | None = Field(
        None, description="The call's id. Left out: the engine makes one."
    )


class ScriptedTurnSpec(Part):
    """One reply."""

    @staticmethod
    def _says_something(data: Mapping[str, Any]) -> Iterator[Violation]:
        if all(peek(data, name) is None for name in ("calls", "text", "fail")):
            yield Violation((), "an empty turn", "calls, text or fail", "say what the model replies")

    rules = (
        Rule(
            _says_something,
            "has(self.calls) || has(self.text) || has(self.fail)",
            "expected calls, text or fail",
        ),
    )

    calls: tuple[ScriptedCallSpec, ...] = Field(
        (), max_length=50, description="Tool calls, made at once. Left out: none."
    )
    text: Annotated[str, Text(16_384)] | None = Field(None, description="What it says. Left out: nothing.")
    fail: ShortText | None = Field(None, description="The error that is raised before the reply. Left out: none.")
    fail_times: StrictInt = Field(
        1, ge=1, le=1000, description="How often that error is raised in one process. Left out: once."
    )
    delay_seconds: Number = Field(
        0.0, ge=0, le=3600, description="How long the reply takes, in seconds. Left out: it comes at once."
    )


class Script(Part):
    """The replies of a scripted model."""

    turns: tuple[ScriptedTurnSpec, ...] = Field(
        (),
        max_length=200,
        description="One per model reply in a session, in order. Left out: it only quotes tool results.",
    )


class ModelConfigSpec(Part):
    """The model and how it is called."""

    @staticmethod
    def _needs_model(data: Mapping[str, Any]) -> Iterator[Violation]:
        provider = peek(data, "provider")
        if provider is not None and provider != "Scripted" and peek(data, "model") is None:
            expected = "a model's name: only provider Scripted does without"
            yield Violation(("model",), "nothing", expected, "add for instance model: gemini-2.5-flash")

    @staticmethod
    def _script_is_for_scripted(data: Mapping[str, Any]) -> Iterator[Violation]:
        provider = peek(data, "provider")
        if provider is not None and provider != "Scripted" and peek(data, "scripted") is not None:
            expected = "scripted only with provider Scripted"
            yield Violation(("scripted",), f"provider {provider}", expected, "remove scripted or change provider")

    rules = (
        Rule(
            _needs_model,
            "self.provider == 'Scripted' || has(self.model)",
            "expected model: only provider Scripted does without",
        ),
        Rule(
            _script_is_for_scripted,
            "self.provider == 'Scripted' || !has(self.scripted)",
            "expected scripted only with provider Scripted",
        ),
    )

    provider: Provider = Field(
        description="Whose interface the model speaks; Scripted replays the turns written here. Required."
    )
    model: Annotated[str, Text(256, "a model's name", shortest=1)] | None = Field(
        None, description="The model's name at the provider. Left out: only possible with Scripted, which has none."
    )
    base_url: HttpUrl | None = Field(
        None, description="The server to call, for compatible servers and proxies. Left out: the provider's own."
    )
    api_key_secret_ref: SecretKeyRef | None = Field(
        None, description="The Secret with the key. Left out: the provider's usual environment variable, if set."
    )
    parameters: ModelParameters = Field(
        default_factory=ModelParameters, description="How the model is called. Left out: each one's default."
    )
    scripted: Script | None = Field(
        None, description="The replies of a scripted model. Left out: with Scripted, it only quotes tool results."
    )


class ModelConfig(Resource):
    """A model that agents of the same namespace can use."""

    kind: Literal["ModelConfig"] = Field("ModelConfig", description="ModelConfig. Required in manifests.")
    spec: ModelConfigSpec = Field(description="The model and how it is called. Required.")
    status: ObjectStatus | None = Field(None, description="Written by the operator. Left out: not seen yet.")
