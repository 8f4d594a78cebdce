"""`Agent`: instruction, model, tools with the calls that need a person's approval, sub-agents and pod settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from sayso_api.agent_rules import (
    gates_within_tools,
    sub_agents_named_apart,
    tools_differ,
    tools_differ_cel,
)
from sayso_api.base import Part, Rule, Text, Violation, exactly_one, peek, unique
from sayso_api.deployment import DeploymentSpec
from sayso_api.meta import (
    AllowedNamespaces,
    ConfigMapKeyRef,
    DnsLabel,
    Duration,
    Flag,
    HttpUrl,
    LongText,
    ObjectStatus,
    Resource,
    ShortText,
    StatusPart,
    ToolGlob,
)

Instruction = Annotated[str, Text(131_072, "an instruction", shortest=1)]
_SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
# An API server drops a null, or puts the default in its place, before anyone can object, unless the field may be
# null: then it is kept, and the operator, which reads objects as strictly as files, refuses the Agent.
_NULL_IS_KEPT: dict[str, Any] = {"nullable": True}


def _map_by(key: str) -> dict[str, Any]:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


class InstructionSource(Part):
    """Where the instruction is kept when it is not written out."""

    config_map_key_ref: ConfigMapKeyRef = Field(description="The value of a ConfigMap. Required.")


class McpServerTools(Part):
    """Tools of one MCP server."""

    rules = (gates_within_tools, unique("toolNames"), unique("requireApproval"))

    name: DnsLabel = Field(description="The MCPServer's name. Required.")
    namespace: DnsLabel | None = Field(
        None, description="Its namespace, which must allow it. Left out: the Agent's own."
    )
    # The limits, and those of the lists around them, keep the rules within what an API server spends on one.
    tool_names: tuple[ToolGlob, ...] | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="Tools that the agent may call: names or globs with * and ?. Left out: all that the server offers.",
        json_schema_extra=_SET,
    )
    require_approval: tuple[ToolGlob, ...] = Field(
        (),
        max_length=50,
        description='Tools whose calls wait for a person: names or globs, "*" for all. Each must match some tool. '
        "Left out: none by this list.",
        json_schema_extra=_SET | _NULL_IS_KEPT,
    )


class AgentTool(Part):
    """Another agent, called over A2A."""

    @staticmethod
    def _named_or_addressed(data: Mapping[str, Any]) -> Iterator[Violation]:
        url, namespace = peek(data, "url"), peek(data, "namespace")
        if url is None and peek(data, "name") is None:
            yield Violation((), "none of them", "name or url", "name an Agent, or give the url of one elsewhere")
        if url is not None and namespace is not None:
            yield Violation(("namespace",), "namespace beside url", "namespace only for an Agent", "remove it")

    rules = (
        Rule(
            _named_or_addressed,
            "has(self.name) || has(self.url)",
            "expected name (of an Agent) or url",
        ),
        Rule(lambda data: (), "!has(self.url) || !has(self.__namespace__)", "expected namespace only without url"),
    )

    name: DnsLabel | None = Field(
        None,
        description="The Agent's name; beside url, what to call the agent there. Left out: url's host names it.",
    )
    namespace: DnsLabel | None = Field(
        None, description="The Agent's namespace, which must allow it. Left out: this Agent's own."
    )
    url: HttpUrl | None = Field(
        None, description="Where an A2A agent answers that is no Agent of this cluster. Left out: name is an Agent's."
    )
    require_approval: Flag = Field(
        False,
        description="Whether each call waits for a person. Left out: not by this field.",
        json_schema_extra=_NULL_IS_KEPT,
    )


class FunctionTool(Part):
    """A Python function in the agent's image."""

    ref: Annotated[
        str,
        Text(
            256,
            "module:attribute, such as shop_tools:send_voucher",
            r"[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*",
        ),
    ] = Field(description="Where the function is, as module:attribute. Required.")
    require_approval: Flag = Field(
        False,
        description="Whether each call waits for a person. Left out: not by this field.",
        json_schema_extra=_NULL_IS_KEPT,
    )
    idempotent: Flag = Field(
        False, description="Whether it is safe to call again when an outcome is unknown. Left out: no."
    )


class Tool(Part):
    """Something that the agent can call."""

    rules = (exactly_one("mcpServer", "agent", "function"),)

    mcp_server: McpServerTools | None = Field(
        None, description="Tools of an MCP server. Left out: the tool is of another kind."
    )
    agent: AgentTool | None = Field(None, description="Another agent. Left out: the tool is of another kind.")
    function: FunctionTool | None = Field(None, description="A Python function. Left out: the tool is of another kind.")


Tools = Annotated[tuple[Tool, ...], Field(max_length=50)]


class SubAgent(Part):
    """An agent in the same process, to which the conversation can be handed over."""

    rules = (exactly_one("instruction", "instructionFrom"), tools_differ_cel)

    name: DnsLabel = Field(description="Its name, unlike that of any other here. Required.")
    description: LongText = Field(
        "", description="What it is for; others hand over by this. Left out: its name must say it."
    )
    instruction: Instruction | None = Field(
        None, description="What it is told to do. Left out: instructionFrom has it."
    )
    instruction_from: InstructionSource | None = Field(
        None, description="Where that is kept. Left out: instruction says it."
    )
    tools: Tools = Field((), description="What it can call, at most 50. Left out: nothing.")


class ApprovalSpec(Part):
    """How calls wait that only this agent's own lists hold back."""

    rules = (unique("editableArguments"),)

    timeout: Duration = Field(
        timedelta(hours=24),
        description="How long a call waits for a decision, such as 24h or 1h30m. Left out: 24h.",
        # pydantic would write this default as ISO 8601.
        json_schema_extra={"default": "24h"},
    )
    on_timeout: Literal["Cancel", "Reject"] = Field(
        "Cancel",
        description="What an undecided call then becomes: cancelled, or denied. Left out: Cancel.",
    )
    hint: ShortText = Field("", description="A sentence for whoever decides. Left out: none.")
    editable_arguments: tuple[Annotated[str, Text(256, "an argument's name", shortest=1)], ...] = Field(
        (),
        max_length=50,
        description="Arguments that an approver may change. Left out: none.",
        json_schema_extra=_SET,
    )


class SkillSpec(Part):
    """A skill on the agent's A2A card."""

    id: Annotated[str, Text(128, "an id", shortest=1)] = Field(description="Its id, unlike the others'. Required.")
    name: Annotated[str, Text(256, "a name", shortest=1)] = Field(description="Its name for people. Required.")
    description: LongText = Field("", description="What it is. Left out: its name must say it.")
    tags: tuple[Annotated[str, Text(64)], ...] = Field((), max_length=20, description="Key words. Left out: none.")
    examples: tuple[ShortText, ...] = Field((), max_length=20, description="Example questions. Left out: none.")


class AgentSpec(Part):
    """What the agent is and may do."""

    rules = (
        exactly_one("instruction", "instructionFrom"),
        unique("subAgents", "name"),
        unique("skills", "id"),
        tools_differ_cel,
    )

    description: LongText = Field("", description="What the agent is for. Left out: its card says nothing.")
    instruction: Instruction | None = Field(
        None, description="What the agent is told to do. Left out: instructionFrom has it."
    )
    instruction_from: InstructionSource | None = Field(
        None, description="Where that is kept. Left out: instruction says it."
    )
    # pydantic keeps the name model_config for itself.
    model_config_name: DnsLabel = Field(
        alias="modelConfig", description="The ModelConfig in the same namespace. Required."
    )
    tools: Tools = Field((), description="What the agent can call, at most 50. Left out: nothing.")
    sub_agents: tuple[SubAgent, ...] = Field(
        (),
        max_length=8,
        description="Agents in the same process, one level deep. Left out: none.",
        json_schema_extra=_map_by("name"),
    )
    ask_user: Flag = Field(True, description="Whether the agent may ask the person a question. Left out: yes.")
    while_paused: Literal["Refuse", "CancelPause"] = Field(
        "Refuse",
        description="What a new message does while a call waits: it is refused, or cancels what waits. "
        "Left out: Refuse.",
    )
    allowed_namespaces: AllowedNamespaces = Field(
        "Same",
        description="Which namespaces' Agents may call this one: Same, All, or {selector: …} over the namespaces' "
        "labels. Left out: Same, its own only.",
    )
    approval: ApprovalSpec = Field(
        default_factory=ApprovalSpec,
        description="How calls wait that only this agent's lists hold back. Left out: each one's default.",
    )
    skills: tuple[SkillSpec, ...] = Field(
        (),
        max_length=50,
        description="Skills on the A2A card. Left out: one made of the description.",
        json_schema_extra=_map_by("id"),
    )
    deployment: DeploymentSpec = Field(
        default_factory=DeploymentSpec,
        description="How the pods are run; no effect locally. Left out: each one's default.",
    )


class GatedTool(StatusPart):
    """What happens when a tool is called."""

    server: Annotated[str, Text(127)] = Field("", description="The tool's server. Left out: it has none.")
    name: Annotated[str, Text(256)] = Field(description="The tool's name. Required.")
    gate: Annotated[str, Text(64)] = Field(description="Allow, Deny or RequireApproval. Required.")
    by: ShortText = Field("", description="What decides so. Left out: nothing in particular.")


class AgentStatus(ObjectStatus):
    """What is known of an agent."""

    tools: tuple[GatedTool, ...] = Field(
        (), max_length=2000, description="The tools and their gates. Left out: not known yet."
    )
    open_pauses: StrictInt | None = Field(
        None, ge=0, description="How many pauses wait for a decision. Left out: unknown."
    )
    url: Annotated[str, Text(2048)] = Field("", description="Where it answers. Left out: nowhere yet.")


class Agent(Resource):
    """An AI agent that asks before it acts."""

    rules = (Rule(tools_differ), sub_agents_named_apart)

    kind: Literal["Agent"] = Field("Agent", description="Agent. Required in manifests.")
    spec: AgentSpec = Field(description="What the agent is and may do. Required.")
    status: AgentStatus | None = Field(None, description="Written by the operator. Left out: not seen yet.")
