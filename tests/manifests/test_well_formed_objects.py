"""What well-formed manifests mean: defaults, round trips, and how the models are used from Python."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

import sayso_api
from sayso_api.agent import Agent, AgentSpec, McpServerTools, Tool
from sayso_api.manifests import from_objects, load
from sayso_api.mcpserver import MCPServer
from sayso_api.meta import ObjectMeta
from sayso_api.modelconfig import ModelConfig

EVERYTHING = """
apiVersion: sayso.dev/v1alpha1
kind: Agent
metadata: {name: refund-desk, namespace: shop, labels: {team: a}, annotations: {note: b}}
spec:
  description: Answers questions.
  instructionFrom: {configMapKeyRef: {name: prompts, key: refund}}
  modelConfig: default
  tools:
    - mcpServer: {name: orders, namespace: tools, toolNames: [get_order, "cancel_*"], requireApproval: ["*_order"]}
    - agent: {name: shipping, namespace: shop, requireApproval: true}
    - agent: {url: "https://elsewhere.test/a2a"}
    - function: {ref: "shop_tools:send_voucher", requireApproval: true, idempotent: true}
  subAgents:
    - name: polite
      description: Is polite.
      instruction: Be polite.
      tools: [{mcpServer: {name: orders, namespace: tools}}]
  askUser: false
  whilePaused: CancelPause
  allowedNamespaces:
    selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: NotIn, values: [d]}]}
  approval: {timeout: 1h30m, onTimeout: Reject, hint: Look twice., editableArguments: [amount]}
  skills: [{id: refunds, name: Refunds, description: Refunds., tags: [shop], examples: ["Where is it?"]}]
  deployment:
    replicas: 2
    image: registry.test/shop:1
    resources: {requests: {cpu: 1, memory: 64Mi}, limits: {memory: 1Gi, example.test/gpu: "1"}}
    env: [{name: X, value: ""}, {name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}]
    nodeSelector: {disk: ssd}
    tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
    serviceAccountName: desk
    labels: {a: b}
    annotations: {c: d}
    imagePullSecrets: [{name: pull}]
status:
  observedGeneration: 3
  conditions: [{type: Ready, status: "True", reason: Up, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  tools: [{server: orders, name: refund, gate: RequireApproval, by: Agent shop/refund-desk}]
  openPauses: 2
  url: http://refund-desk.shop:8080
  writtenByANewerOperator: true
---
apiVersion: sayso.dev/v1alpha1
kind: ModelConfig
metadata: {name: default, namespace: shop}
spec:
  provider: Scripted
  model: none
  baseUrl: https://models.test/v1
  apiKeySecretRef: {name: model-keys, key: gemini}
  parameters: {temperature: 0.2, maxOutputTokens: 2048, timeoutSeconds: 60, retries: 0}
  scripted:
    turns:
      - calls: [{name: get_order, args: {order_id: A-1, at: 12:30, none: null}, id: c1}]
      - {fail: 503 overloaded, failTimes: 2, text: Recovered.}
      - {delaySeconds: 2, text: Late.}
---
apiVersion: sayso.dev/v1alpha1
kind: MCPServer
metadata: {name: orders, namespace: tools}
spec:
  url: http://orders.shop:8000/mcp
  transport: SSE
  headers: [{name: Authorization, valueFrom: {secretKeyRef: {name: orders, key: token}}}]
  timeoutSeconds: 12.5
  tls: {caSecretRef: {name: ca, key: ca.crt}, insecureSkipVerify: false}
  allowedNamespaces: All
  idempotentTools: [get_*]
  trustAnnotations: true
---
apiVersion: sayso.dev/v1alpha1
kind: MCPServer
metadata: {name: local, namespace: tools}
spec: {command: [python, -m, orders_server], env: [{name: X, value: y}]}
"""


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    file = tmp_path / "everything.yaml"
    file.write_text(EVERYTHING)
    return file


def test_every_field_of_every_kind_is_read_and_written_back_the_same(everything: Path) -> None:
    read = load([everything])
    objects = [*read.agents.values(), *read.model_configs.values(), *read.mcp_servers.values()]

    written = [found.model_dump(mode="json", exclude_none=True) for found in objects]

    again = from_objects(written)
    assert again.agents == read.agents
    assert again.model_configs == read.model_configs
    assert again.mcp_servers == read.mcp_servers


def test_what_was_written_is_what_a_person_wrote(everything: Path) -> None:
    source = {doc["kind"] + doc["metadata"]["name"]: doc for doc in yaml.safe_load_all(EVERYTHING)}
    agent = load([everything]).agents["shop/refund-desk"]

    written = agent.model_dump(mode="json", exclude_unset=True)

    wanted = source["Agentrefund-desk"]
    del wanted["status"]["writtenByANewerOperator"]
    wanted["spec"]["deployment"]["resources"]["requests"]["cpu"] = "1"
    assert written == wanted


def test_free_arguments_of_a_scripted_call_are_kept_as_they_are(everything: Path) -> None:
    (turn, *_) = load([everything]).model_configs["shop/default"].spec.scripted.turns

    assert turn.calls[0].args == {"order_id": "A-1", "at": "12:30", "none": None}


def test_what_is_left_out_has_the_documented_default() -> None:
    found = from_objects(
        [
            {"apiVersion": "sayso.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
            for kind, spec in {
                "Agent": {"instruction": "Help.", "modelConfig": "m", "tools": [{"mcpServer": {"name": "o"}}]},
                "ModelConfig": {"provider": "OpenAI", "model": "m"},
                "MCPServer": {"url": "http://o.test"},
            }.items()
        ]
    )
    agent = found.agents["default/x"].spec
    server, model = found.mcp_servers["default/x"].spec, found.model_configs["default/x"].spec

    assert (agent.ask_user, agent.while_paused, agent.allowed_namespaces) == (True, "Refuse", "Same")
    assert (agent.approval.timeout, agent.approval.on_timeout) == (timedelta(hours=24), "Cancel")
    assert agent.deployment.replicas is None
    assert agent.deployment.resources.requests == {"cpu": "50m", "memory": "128Mi"}
    assert agent.deployment.resources.limits == {"memory": "512Mi"}
    assert agent.tools[0].mcp_server is not None
    assert agent.tools[0].mcp_server.tool_names is None
    assert agent.tools[0].mcp_server.require_approval == ()
    assert (server.transport, server.timeout_seconds, server.allowed_namespaces) == ("StreamableHTTP", 30.0, "Same")
    assert (server.idempotent_tools, server.trust_annotations, server.tls) == ((), False, None)
    assert (model.parameters.timeout_seconds, model.parameters.retries) == (60.0, 2)
    assert (model.parameters.temperature, model.parameters.max_output_tokens) == (None, None)


def test_a_gate_may_name_a_tool_that_only_a_glob_of_tool_names_brings_in() -> None:
    tools = McpServerTools(name="o", tool_names=["get_order", "cancel_*"], require_approval=["cancel_all", "*l_a*"])

    assert tools.require_approval == ("cancel_all", "*l_a*")


def test_models_are_built_from_python_by_python_names_under_the_same_rules() -> None:
    spec = AgentSpec(instruction="Help.", model_config_name="m", tools=[Tool(mcp_server=McpServerTools(name="orders"))])
    agent = Agent(metadata=ObjectMeta(name="desk"), spec=spec, status=None)

    assert agent.key == "default/desk"
    assert agent.model_dump(mode="json", exclude_unset=True)["spec"]["modelConfig"] == "m"
    with pytest.raises(ValidationError, match="exactly one of instruction and instructionFrom"):
        AgentSpec(model_config_name="m")
    with pytest.raises(ValidationError, match="names already"):
        Agent(metadata=agent.metadata, spec=spec.model_copy(update={"tools": spec.tools * 2}))


def test_a_model_once_read_does_not_change(everything: Path) -> None:
    agent = load([everything]).agents["shop/refund-desk"]

    with pytest.raises(ValidationError, match="frozen"):
        agent.spec.ask_user = True


def test_what_the_api_server_counts_is_known_where_it_was_given() -> None:
    assert (ObjectMeta(name="x").uid, ObjectMeta(name="x").generation) == ("", 0)
    meta = ObjectMeta.model_validate({"name": "x", "uid": "u-1", "generation": 3, "creationTimestamp": None})
    assert (meta.uid, meta.generation) == ("u-1", 3)


def test_every_public_name_is_there_and_no_other() -> None:
    assert {name: getattr(sayso_api, name).__name__ for name in sayso_api.__all__} == {
        name: name for name in sayso_api.__all__
    }
    assert (sayso_api.Agent, sayso_api.MCPServer, sayso_api.ModelConfig) == (Agent, MCPServer, ModelConfig)
    with pytest.raises(AttributeError, match="no attribute 'Agnt'"):
        _ = sayso_api.Agnt


def test_an_agents_process_does_not_pay_for_yaml_and_the_models() -> None:
    code = "import sys, sayso_api.runtimeconfig, sayso_api.secretenv, sayso_api.globs; print(*sorted(sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "yaml" not in loaded
    ours = [name for name in loaded if name.startswith("sayso_api.")]
    assert ours == ["sayso_api.globs", "sayso_api.runtimeconfig", "sayso_api.secretenv"]
