"""The agent that tests run as processes: every tool of `held_tools.py`, and a script for a model."""

from __future__ import annotations

from typing import Any

from sayso_api.runtimeconfig import (
    AgentIdentity,
    AgentNode,
    FunctionBinding,
    McpBinding,
    ModelSettings,
    RuntimeConfig,
    ScriptedTurn,
    ToolServer,
)
from sayso_approvals.records import AgentId

AGENT = AgentId("shop", "desk")
SERVER = "shop/till"


def script(*turns: ScriptedTurn) -> ModelSettings:
    """A model that replies from a script, once each, without trying again."""
    return ModelSettings(provider="Scripted", turns=turns, retries=0)


def config_of(model: ModelSettings, tools_url: str | None, *, tool_seconds: float = 5.0) -> RuntimeConfig:
    """An agent with every tool of `held_tools.py`: all but `look` need a say-so."""
    bindings: list[Any] = [
        FunctionBinding(ref="support.held_tools:refund", require_approval=True),
        FunctionBinding(ref="support.held_tools:slow", require_approval=True),
        FunctionBinding(ref="support.held_tools:again", require_approval=True, idempotent=True),
        FunctionBinding(ref="support.held_tools:look"),
    ]
    servers: tuple[ToolServer, ...] = ()
    if tools_url is not None:
        servers = (ToolServer(key=SERVER, url=tools_url, timeout_seconds=tool_seconds),)
        bindings.append(McpBinding(server=SERVER, tool_names=("charge",), require_approval=("charge",)))
    return RuntimeConfig(
        agent=AgentIdentity(namespace=AGENT.namespace, name=AGENT.name),
        root=AgentNode(name="desk", instruction="Help.", tools=tuple(bindings)),
        model=model,
        servers=servers,
    )
