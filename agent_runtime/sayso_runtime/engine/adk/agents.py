"""From a `RuntimeConfig`'s tree of nodes to ADK agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm

from sayso_api.runtimeconfig import AgentNode


def adk_name(name: str) -> str:
    """ADK wants identifiers: hyphens and dots become underscores; `user` is ADK's own."""
    identifier = re.sub(r"\W", "_", name)
    if identifier[:1].isdigit() or identifier == "user":
        identifier = f"agent_{identifier}"
    return identifier


def node_names(root: AgentNode) -> dict[str, str]:
    """ADK agent name -> node name. Raises ValueError when two nodes would share a name."""
    names: dict[str, str] = {}

    def walk(node: AgentNode) -> None:
        name = adk_name(node.name)
        if name in names:
            raise ValueError(f"agents {names[name]!r} and {node.name!r} of one tree need different names")
        names[name] = node.name
        for child in node.sub_agents:
            walk(child)

    walk(root)
    return names


def build(root: AgentNode, model: BaseLlm, tools_for: Callable[[AgentNode], list[Any]]) -> LlmAgent:
    """The ADK agents of a tree. `tools_for` gives each node its tools or toolsets."""
    return LlmAgent(
        name=adk_name(root.name),
        description=root.description,
        # a callable: ADK then takes the text as it is and does not look for {placeholders} in it
        instruction=_literal(root.instruction),
        model=model,
        tools=tools_for(root),
        sub_agents=[build(child, model, tools_for) for child in root.sub_agents],
    )


def _literal(text: str) -> Callable[[Any], str]:
    def instruction(_: Any) -> str:
        return text

    return instruction


Names = Mapping[str, str]
