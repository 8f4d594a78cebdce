"""`RuntimeConfig`: the whole contract between whoever compiles an Agent and the process that runs it.

The operator (on a cluster) and `sayso dev` (locally) compile the same manifests into the same document; the
agent's process reads nothing else of Kubernetes. Secrets are never in it: a value that comes from a Secret is
named by the environment variable that carries it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A part of the contract: unknown fields are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentIdentity(Strict):
    """Which Agent this is. `uid` tells an Agent from a later one of the same name; empty in local mode."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def path(self) -> str:
        """`<namespace>/<name>`, as people write it."""
        return f"{self.namespace}/{self.name}"


class NamedValue(Strict):
    """A header or variable: either a literal `value`, or the environment variable `from_env` that holds it."""

    name: str
    value: str | None = None
    from_env: str | None = None


class ScriptedCall(Strict):
    """One tool call of a scripted model's reply. Without `id` the engine makes one."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None


class ScriptedTurn(Strict):
    """One reply of a scripted model: calls, text, or both; `fail` raises `fail_times` times before replying."""

    calls: tuple[ScriptedCall, ...] = ()
    text: str | None = None
    fail: str | None = None
    fail_times: int = 1
    delay_seconds: float = 0.0


class ModelSettings(Strict):
    """The model to call. `api_key_env` names the variable with the key; None: the provider's own default."""

    provider: Literal["Gemini", "OpenAI", "Anthropic", "LiteLLM", "Scripted"]
    model: str = ""
    base_url: str | None = None
    api_key_env: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    timeout_seconds: float = 60.0
    retries: int = 2
    turns: tuple[ScriptedTurn, ...] = ()


class TlsSettings(Strict):
    """How an MCP server's certificate is checked. `ca_file_env` names the variable with the PEM text of the CA."""

    ca_env: str | None = None
    insecure_skip_verify: bool = False


class ToolServer(Strict):
    """An MCP server: exactly one of `url` and `command`. `key` is `<namespace>/<name>`."""

    key: str
    url: str | None = None
    transport: Literal["StreamableHTTP", "SSE"] = "StreamableHTTP"
    command: tuple[str, ...] = ()
    env: tuple[NamedValue, ...] = ()
    headers: tuple[NamedValue, ...] = ()
    timeout_seconds: float = 30.0
    tls: TlsSettings = TlsSettings()
    idempotent_tools: tuple[str, ...] = ()
    trust_annotations: bool = False

    @property
    def endpoint(self) -> str:
        """What the digest of a call covers beside the key: the URL, or the command as one JSON-free string."""
        return self.url if self.url is not None else "command:" + "\x1f".join(self.command)


class McpBinding(Strict):
    """Tools of one server that an agent may call. `tool_names` None: all that the server offers."""

    kind: Literal["mcp"] = "mcp"
    server: str
    tool_names: tuple[str, ...] | None = None
    require_approval: tuple[str, ...] = ()


class FunctionBinding(Strict):
    """A Python function in the agent's image, `module:attribute`."""

    kind: Literal["function"] = "function"
    ref: str
    require_approval: bool = False
    idempotent: bool = False


class AgentBinding(Strict):
    """Another agent, called over A2A at `url`, or at one of `more_urls` when that is down.

    `name` is what gates and people call it. With a `namespace` it is an Agent of the same manifests, without one it is
    whatever answers at `url`. `timeout_seconds` is how long it may go without a sign of life.
    """

    kind: Literal["agent"] = "agent"
    name: str
    namespace: str | None = None
    url: str
    more_urls: tuple[str, ...] = ()
    description: str = ""
    require_approval: bool = False
    timeout_seconds: float = 300.0


Binding = Annotated[McpBinding | FunctionBinding | AgentBinding, Field(discriminator="kind")]


class AgentNode(Strict):
    """One agent of the in-process tree: the root is the Agent itself, below it are its `subAgents`."""

    name: str
    description: str = ""
    instruction: str
    tools: tuple[Binding, ...] = ()
    sub_agents: tuple[AgentNode, ...] = ()


class ApprovalSettings(Strict):
    """For calls that only the agent's own lists gate."""

    timeout_seconds: float = 86_400.0
    on_timeout: Literal["Cancel", "Reject"] = "Cancel"
    hint: str = ""
    editable_arguments: tuple[str, ...] = ()


class Skill(Strict):
    """An entry of the A2A card."""

    id: str
    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class RuntimeConfig(Strict):
    """Everything an agent's process is told. `generation` is the Agent's; 0 in local mode."""

    version: Literal[1] = 1
    agent: AgentIdentity
    generation: int = 0
    root: AgentNode
    model: ModelSettings
    servers: tuple[ToolServer, ...] = ()
    ask_user: bool = True
    while_paused: Literal["Refuse", "CancelPause"] = "Refuse"
    approval: ApprovalSettings = ApprovalSettings()
    skills: tuple[Skill, ...] = ()
