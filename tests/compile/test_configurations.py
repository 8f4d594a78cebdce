"""What an Agent and all that it refers to become: the configuration of its process."""

from __future__ import annotations

from collections.abc import Callable

from sayso_api import runtimeconfig as rc
from sayso_api.compile import compile_agent, validate
from sayso_api.manifests import Manifests

Read = Callable[[str], Manifests]

REFUND_DESK = """
kind: Agent
metadata: {name: refund-desk, namespace: shop}
spec:
  description: Answers refund questions and issues refunds.
  instruction: You help customers of the shop.
  modelConfig: default
  tools:
    - mcpServer:
        name: orders
        toolNames: [get_order, refund, cancel_order]
        requireApproval: [refund, "cancel_*"]
    - agent:
        name: shipping
    - function:
        ref: shop_tools:send_voucher
        requireApproval: true
kind: Agent
metadata: {name: shipping, namespace: shop}
spec: {instruction: You know where parcels are., modelConfig: default}
kind: ModelConfig
metadata: {name: default, namespace: shop}
spec: {provider: Gemini, model: gemini-2.5-flash, apiKeySecretRef: {name: model-keys, key: gemini}}
kind: MCPServer
metadata: {name: orders, namespace: shop}
spec:
  url: http://orders.shop:8000/mcp
  headers: [{name: Authorization, valueFrom: {secretKeyRef: {name: orders, key: token}}}]
"""


def url(namespace: str, name: str) -> str:
    return f"http://{name}.{namespace}:8080"


def test_the_refund_desk_becomes_one_configuration(read: Read) -> None:
    manifests = read(REFUND_DESK)

    config = compile_agent(manifests.agents["shop/refund-desk"], manifests, agent_url=url, uid="u-1", generation=3)

    assert config == rc.RuntimeConfig(
        agent=rc.AgentIdentity(namespace="shop", name="refund-desk", uid="u-1"),
        generation=3,
        root=rc.AgentNode(
            name="refund-desk",
            description="Answers refund questions and issues refunds.",
            instruction="You help customers of the shop.",
            tools=(
                rc.McpBinding(
                    server="shop/orders",
                    tool_names=("get_order", "refund", "cancel_order"),
                    require_approval=("refund", "cancel_*"),
                ),
                rc.AgentBinding(name="shipping", namespace="shop", url="http://shipping.shop:8080"),
                rc.FunctionBinding(ref="shop_tools:send_voucher", require_approval=True),
            ),
        ),
        model=rc.ModelSettings(
            provider="Gemini", model="gemini-2.5-flash", api_key_env="SAYSO_SECRET_MODEL_KEYS_GEMINI"
        ),
        servers=(
            rc.ToolServer(
                key="shop/orders",
                url="http://orders.shop:8000/mcp",
                headers=(rc.NamedValue(name="Authorization", from_env="SAYSO_SECRET_ORDERS_TOKEN"),),
            ),
        ),
    )
    assert validate(manifests) == []


def test_a_configuration_survives_being_written_and_read(read: Read) -> None:
    manifests = read(REFUND_DESK)
    config = compile_agent(manifests.agents["shop/refund-desk"], manifests, agent_url=url)

    assert rc.RuntimeConfig.model_validate_json(config.model_dump_json()) == config


def test_the_same_manifests_compile_to_the_same_configuration(read: Read) -> None:
    one, other = read(REFUND_DESK), read(REFUND_DESK)

    assert compile_agent(one.agents["shop/refund-desk"], one, agent_url=url) == compile_agent(
        other.agents["shop/refund-desk"], other, agent_url=url
    )


def test_every_field_that_a_process_needs_reaches_it(read: Read) -> None:
    manifests = read("""
        kind: Agent
        metadata: {name: desk, namespace: shop}
        spec:
          instructionFrom: {configMapKeyRef: {name: prompts, key: desk}}
          modelConfig: script
          tools:
            - mcpServer: {name: remote, namespace: tools, requireApproval: ["*"]}
            - agent: {url: "https://partner.test:8443/a2a", requireApproval: true}
            - agent: {url: "https://partner.test/other", name: partner}
            - function: {ref: "m.n:f", idempotent: true}
          subAgents:
            - name: polite
              description: Is polite.
              instructionFrom: {configMapKeyRef: {name: prompts, key: polite}}
              tools:
                - mcpServer: {name: remote, namespace: tools, toolNames: [a]}
                - mcpServer: {name: local}
          askUser: false
          whilePaused: CancelPause
          approval: {timeout: 1h30m, onTimeout: Reject, hint: Look twice., editableArguments: [amount]}
          skills: [{id: r, name: R, description: D, tags: [t], examples: [e]}]
        kind: ConfigMap
        metadata: {name: prompts, namespace: shop}
        data: {desk: Be a desk., polite: Be polite.}
        kind: ModelConfig
        metadata: {name: script, namespace: shop}
        spec:
          provider: Scripted
          apiKeySecretRef: {name: keys, key: unused}
          baseUrl: http://models.test/v1
          parameters: {temperature: 0.5, maxOutputTokens: 7, timeoutSeconds: 1.5, retries: 0}
          scripted:
            turns:
              - calls: [{name: a, args: {x: [1, null]}, id: c1}, {name: b}]
              - {text: Recovered., fail: 503 overloaded, failTimes: 2, delaySeconds: 0.5}
        kind: MCPServer
        metadata: {name: local, namespace: shop}
        spec:
          command: [python, -m, server]
          env: [{name: X, value: y}, {name: T, valueFrom: {secretKeyRef: {name: s.t, key: k}}}]
        kind: MCPServer
        metadata: {name: remote, namespace: tools}
        spec:
          url: https://remote.test/sse
          transport: SSE
          timeoutSeconds: 5
          tls: {caSecretRef: {name: ca, key: ca.crt}}
          allowedNamespaces: All
          idempotentTools: [get_*]
          trustAnnotations: true
    """)

    config = compile_agent(manifests.agents["shop/desk"], manifests, agent_url=url)

    assert config.root == rc.AgentNode(
        name="desk",
        instruction="Be a desk.",
        tools=(
            rc.McpBinding(server="tools/remote", require_approval=("*",)),
            rc.AgentBinding(name="partner-test", url="https://partner.test:8443/a2a", require_approval=True),
            rc.AgentBinding(name="partner", url="https://partner.test/other"),
            rc.FunctionBinding(ref="m.n:f", idempotent=True),
        ),
        sub_agents=(
            rc.AgentNode(
                name="polite",
                description="Is polite.",
                instruction="Be polite.",
                tools=(rc.McpBinding(server="tools/remote", tool_names=("a",)), rc.McpBinding(server="shop/local")),
            ),
        ),
    )
    assert config.servers == (
        rc.ToolServer(
            key="tools/remote",
            url="https://remote.test/sse",
            transport="SSE",
            timeout_seconds=5.0,
            tls=rc.TlsSettings(ca_env="SAYSO_SECRET_CA_CA_CRT"),
            idempotent_tools=("get_*",),
            trust_annotations=True,
        ),
        rc.ToolServer(
            key="shop/local",
            command=("python", "-m", "server"),
            env=(rc.NamedValue(name="X", value="y"), rc.NamedValue(name="T", from_env="SAYSO_SECRET_S_T_K")),
        ),
    )
    assert config.model == rc.ModelSettings(
        provider="Scripted",
        base_url="http://models.test/v1",
        temperature=0.5,
        max_output_tokens=7,
        timeout_seconds=1.5,
        retries=0,
        turns=(
            rc.ScriptedTurn(
                calls=(rc.ScriptedCall(name="a", args={"x": [1, None]}, id="c1"), rc.ScriptedCall(name="b"))
            ),
            rc.ScriptedTurn(text="Recovered.", fail="503 overloaded", fail_times=2, delay_seconds=0.5),
        ),
    )
    assert (config.ask_user, config.while_paused) == (False, "CancelPause")
    assert config.approval == rc.ApprovalSettings(
        timeout_seconds=5400.0, on_timeout="Reject", hint="Look twice.", editable_arguments=("amount",)
    )
    assert config.skills == (rc.Skill(id="r", name="R", description="D", tags=("t",), examples=("e",)),)
