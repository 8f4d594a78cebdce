"""How secrets are named, and which a process needs. Their values are nowhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso_api.compile import compile_agent, missing_env, required_env
from sayso_api.faults import CompileError
from sayso_api.manifests import Manifests
from sayso_api.runtimeconfig import RuntimeConfig
from sayso_api.secretenv import variable

Read = Callable[[str], Manifests]

MANIFESTS = """
kind: Agent
metadata: {{name: desk}}
spec: {{instruction: Help., modelConfig: default, tools: [{{mcpServer: {{name: one}}}}, {{mcpServer: {{name: two}}}}]}}
kind: ModelConfig
metadata: {{name: default}}
spec: {{provider: {provider}, model: m, apiKeySecretRef: {{name: keys, key: model}}}}
kind: MCPServer
metadata: {{name: one}}
spec:
  url: https://one.test
  headers: [{{name: A, valueFrom: {{secretKeyRef: {{name: {one}}}}}}}, {{name: B, value: open}}]
  tls: {{caSecretRef: {{name: ca, key: ca.crt}}}}
kind: MCPServer
metadata: {{name: two}}
spec: {{command: [x], env: [{{name: T, valueFrom: {{secretKeyRef: {{name: {two}}}}}}}]}}
"""


def config(read: Read, one: str = "s, key: a", two: str = "s, key: b", provider: str = "OpenAI") -> RuntimeConfig:
    manifests = read(MANIFESTS.format(one=one, two=two, provider=provider))
    return compile_agent(manifests.agents["default/desk"], manifests, agent_url=lambda namespace, name: "")


@given(st.text(max_size=12), st.text(max_size=12))
def test_a_variable_is_one_that_every_shell_can_set(name: str, key: str) -> None:
    found = variable(name, key)

    assert found.startswith("SAYSO_SECRET_")
    assert set(found) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def test_a_variable_is_made_of_name_and_key() -> None:
    assert variable("model-keys", "open.ai") == "SAYSO_SECRET_MODEL_KEYS_OPEN_AI"


def test_every_secret_that_a_process_needs_is_listed_once_with_what_it_is_for(read: Read) -> None:
    assert required_env(config(read, two="s, key: a")) == [
        ("SAYSO_SECRET_KEYS_MODEL", "the key of the model m"),
        ("SAYSO_SECRET_S_A", "header A of MCPServer default/one, variable T of MCPServer default/two"),
        ("SAYSO_SECRET_CA_CA_CRT", "the CA of MCPServer default/one"),
    ]


def test_a_scripted_model_needs_no_key(read: Read) -> None:
    names = [name for name, _ in required_env(config(read, provider="Scripted"))]

    assert names == ["SAYSO_SECRET_S_A", "SAYSO_SECRET_CA_CA_CRT", "SAYSO_SECRET_S_B"]


def test_what_is_unset_or_empty_is_missing(read: Read) -> None:
    environment = {"SAYSO_SECRET_S_A": "x", "SAYSO_SECRET_S_B": "", "SAYSO_SECRET_KEYS_MODEL": "k"}

    missing = missing_env(config(read), environment)

    assert [name for name, _ in missing] == ["SAYSO_SECRET_CA_CA_CRT", "SAYSO_SECRET_S_B"]


@pytest.mark.parametrize(
    ("provider", "usual", "enough"),
    [
        ("OpenAI", "OPENAI_API_KEY", True),
        ("Anthropic", "ANTHROPIC_API_KEY", True),
        ("Gemini", "GEMINI_API_KEY", True),
        ("Gemini", "GOOGLE_API_KEY", True),
        ("OpenAI", "GEMINI_API_KEY", False),
        ("LiteLLM", "OPENAI_API_KEY", False),
    ],
)
def test_the_providers_usual_variable_stands_in_for_the_models_key(
    provider: str, usual: str, enough: bool, read: Read
) -> None:
    names = [name for name, _ in missing_env(config(read, provider=provider), {usual: "k"})]

    assert ("SAYSO_SECRET_KEYS_MODEL" not in names) is enough


def test_the_usual_variable_does_not_stand_in_for_a_header(read: Read) -> None:
    same = config(read, one="keys, key: model")

    assert "SAYSO_SECRET_KEYS_MODEL" in [name for name, _ in missing_env(same, {"OPENAI_API_KEY": "k"})]


def test_two_secrets_in_one_variable_are_refused(read: Read) -> None:
    with pytest.raises(CompileError) as caught:
        config(read, one="a-b, key: c", two="a, key: b-c")

    (fault,) = caught.value.faults
    assert fault.path == "spec.tools[1].mcpServer"
    assert fault.found == (
        "key b-c of Secret default/a, whose variable SAYSO_SECRET_A_B_C already carries key c of Secret default/a-b"
    )
    assert "rename" in fault.fix


def test_one_name_in_two_namespaces_is_two_secrets(read: Read) -> None:
    manifests = read("""
        kind: Agent
        metadata: {name: desk}
        spec:
          instruction: Help.
          modelConfig: default
          tools: [{mcpServer: {name: theirs, namespace: tools}}]
        kind: ModelConfig
        metadata: {name: default}
        spec: {provider: OpenAI, model: m, apiKeySecretRef: {name: keys, key: k}}
        kind: MCPServer
        metadata: {name: theirs, namespace: tools}
        spec:
          url: https://theirs.test
          allowedNamespaces: All
          headers: [{name: A, valueFrom: {secretKeyRef: {name: keys, key: k}}}]
    """)

    with pytest.raises(CompileError, match="key k of Secret tools/keys, whose variable SAYSO_SECRET_KEYS_K"):
        compile_agent(manifests.agents["default/desk"], manifests, agent_url=lambda namespace, name: "")
