"""What an Agent refers to: found or missing, allowed or not, and never in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from sayso_api.agent import Agent, AgentTool, McpServerTools, Tool
from sayso_api.faults import Fault, Path, did_you_mean, listing, quote
from sayso_api.manifests import Manifests
from sayso_api.mcpserver import MCPServer
from sayso_api.meta import ConfigMapKeyRef
from sayso_api.modelconfig import ModelConfig

T = TypeVar("T")


class Referrer:
    """Resolves the references of one Agent and collects the faults, each at the field that refers.

    `cycles` holds the circles that were reported already, so that a set of Agents hears of each once.
    """

    def __init__(self, agent: Agent, manifests: Manifests, cycles: set[frozenset[str]]) -> None:
        self._agent, self._manifests, self._cycles = agent, manifests, cycles
        self.faults: list[Fault] = []

    def fault(self, path: Path, found: str, expected: str, fix: str = "") -> None:
        """Note a fault of the Agent."""
        self.faults.append(self._manifests.fault("Agent", self._agent.key, path, found, expected, fix))

    def model_config(self, name: str, at: Path) -> ModelConfig | None:
        """The ModelConfig of that name in the Agent's namespace."""
        return self._find(self._manifests.model_configs, "ModelConfig", self._agent.metadata.namespace, name, at)

    def mcp_server(self, ref: McpServerTools, at: Path) -> MCPServer | None:
        """The MCPServer, if it is there and may be referred to."""
        namespace = ref.namespace or self._agent.metadata.namespace
        server = self._find(self._manifests.mcp_servers, "MCPServer", namespace, ref.name, (*at, "name"))
        return server if server is not None and self._allowed(server, at) else None

    def agent_of(self, ref: AgentTool, at: Path) -> Agent | None:
        """The other Agent, if it is there, may be called, and does not lead back here."""
        namespace = ref.namespace or self._agent.metadata.namespace
        other = self._find(self._manifests.agents, "Agent", namespace, ref.name or "", (*at, "name"))
        if other is None or not self._allowed(other, at):
            return None
        self._no_circle(other, at)
        return other

    def text(self, ref: ConfigMapKeyRef, at: Path) -> str:
        """What a ConfigMap of the Agent's namespace holds under a key; empty after a fault."""
        at = (*at, "configMapKeyRef")
        namespace = self._agent.metadata.namespace
        config_map = self._find(self._manifests.config_maps, "ConfigMap", namespace, ref.name, (*at, "name"))
        if config_map is None:
            return ""
        text = config_map.data.get(ref.key, "")
        if not text.strip():
            found = "no such key" if ref.key not in config_map.data else "an empty text"
            fix = did_you_mean(ref.key, config_map.data) or f"add data.{ref.key} to the ConfigMap"
            self.fault((*at, "key"), found, f"key {quote(ref.key)} in ConfigMap {config_map.key}", fix)
        return text

    def _find(self, among: Mapping[str, T], kind: str, namespace: str, name: str, at: Path) -> T | None:
        found = among.get(f"{namespace}/{name}")
        if found is None:
            elsewhere = [key for key in among if key.endswith(f"/{name}")]
            near = did_you_mean(name, (key.rpartition("/")[2] for key in among if key.startswith(f"{namespace}/")))
            fix = near or f"add {kind} {namespace}/{name} to the manifests"
            if elsewhere and not near:
                fix += f"; there is one at {listing(elsewhere, last='and')}"
            wanted = f"no {kind} {namespace}/{name}"
            self.fault(at, wanted, f"a {kind} that is among the manifests", fix)
        return found

    def _allowed(self, target: MCPServer | Agent, at: Path) -> bool:
        """Whether `target` lets Agents of this one's namespace refer to it."""
        own, allowed = self._agent.metadata.namespace, target.spec.allowed_namespaces
        if target.metadata.namespace == own or allowed == "All":
            return True
        kind = type(target).__name__
        if not isinstance(allowed, str):
            if allowed.selector.chooses(self._manifests.namespace_labels(own)):
                return True
            expected = f"a namespace whose labels the selector of {kind} {target.key} chooses"
            fix = f"give Namespace {own} the labels (its manifest counts), or widen allowedNamespaces there"
        else:
            expected = f"an Agent of namespace {target.metadata.namespace}: {kind} {target.key} allows Same only"
            fix = f"have the owner of {kind} {target.key} set allowedNamespaces"
        self.fault((*at, "namespace"), f"a reference from namespace {own}", expected, fix)
        return False

    def _no_circle(self, other: Agent, at: Path) -> None:
        """Agents that call each other in a circle would wait for one another, and for approvals, without end."""
        own = self._agent.key
        if other.key == own:
            self.fault((*at, "name"), "the Agent itself", "another Agent", "remove the tool")
            return
        way = self._way(other.key, own)
        if way and frozenset(way) not in self._cycles:
            self._cycles.add(frozenset(way))
            found = f"a circle: {' → '.join([own, *way])}"
            self.fault((*at, "name"), found, "Agents that do not lead back", "remove one of these references")

    def _way(self, start: str, goal: str) -> list[str]:
        """The shortest way along `agent` tools, both ends included; empty when there is none."""
        came_from: dict[str, str] = {start: ""}
        waiting = [start]
        for key in waiting:
            if key == goal:
                way = [key]
                while came_from[way[-1]]:
                    way.append(came_from[way[-1]])
                return way[::-1]
            for following in self._calls(key):
                if following not in came_from:
                    came_from[following] = key
                    waiting.append(following)
        return []

    def _calls(self, key: str) -> Iterator[str]:
        agent = self._manifests.agents.get(key)
        if agent is None:
            return
        tools: list[Tool] = [*agent.spec.tools, *(tool for sub in agent.spec.sub_agents for tool in sub.tools)]
        for tool in tools:
            if tool.agent is not None and tool.agent.url is None:
                yield f"{tool.agent.namespace or agent.metadata.namespace}/{tool.agent.name}"
