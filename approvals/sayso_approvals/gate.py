"""Judging a tool call: may it run, or does somebody have to say so first?

Pure: a `RuntimeConfig` is compiled once into a `Gate`, which answers from names alone. Whatever it does not know, or
fails to judge, asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sayso_api.globs import first_match, matches
from sayso_api.runtimeconfig import AgentBinding, AgentNode, FunctionBinding, McpBinding, RuntimeConfig

Action = Literal["allow", "ask", "deny"]

#: The server of in-process functions, and that of other agents: the tool is then the binding's `ref` or `name`.
FUNCTION, AGENT = "function", "agent"


@dataclass(frozen=True, slots=True)
class Judgement:
    """`gated_by` names whose rule asks for the say-so; `why` is one sentence for people."""

    action: Action
    gated_by: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A name or glob of one binding that stands for no tool at all. `field` is `requireApproval` or `toolNames`."""

    node: str
    server: str
    field: Literal["requireApproval", "toolNames"]
    pattern: str


@dataclass(frozen=True, slots=True)
class Row:
    """One tool of one node and whether it asks, for people and for an Agent's status."""

    node: str
    server: str
    name: str
    gate: Literal["Allow", "RequireApproval"]
    by: str


@dataclass(frozen=True, slots=True)
class _Rule:
    """One binding: the names it covers and, of these, what asks."""

    server: str
    covers: tuple[str, ...]
    asks: tuple[str, ...]
    globs: bool  # of an MCP server; a function's or an agent's one name is meant literally


class Gate:
    """The rules of one agent and of the agents inside it, by node and server."""

    def __init__(self, agent: str, rules: Mapping[str, tuple[_Rule, ...]]) -> None:
        self._by = (f"Agent {agent}",)
        self._rules = rules

    def judge(self, node: str, server: str, tool: str, arguments: Any) -> Judgement:
        """Whether `tool` of `server`, called by the agent `node`, may run. Never raises: what it cannot judge asks."""
        try:
            return self._judge(node, server, tool)
        except Exception as error:  # noqa: BLE001  an error while judging must never become a yes
            return self._ask(f"it could not be judged ({type(error).__name__}: {error})")

    def _judge(self, node: str, server: str, tool: str) -> Judgement:
        rules = self._rules.get(node)
        if rules is None:
            return self._ask(f"no agent {node!r} is known here")
        of_server = [rule for rule in rules if rule.server == server]
        if not of_server:
            return self._ask(f"agent {node!r} has no tools of {server!r}")
        for rule in of_server:
            if (entry := _first(rule, rule.asks, tool)) is not None:
                return self._ask(f"requireApproval {entry!r} covers {tool!r} of {server}")
        if not any(_first(rule, rule.covers, tool) is not None for rule in of_server):
            return self._ask(f"{tool!r} is not among the tools of {server} that agent {node!r} may call")
        return Judgement("allow", (), f"no rule asks for a say-so for {tool!r} of {server}")

    def _ask(self, why: str) -> Judgement:
        return Judgement("ask", self._by, why)

    def unmatched(self, offered: Mapping[str, Collection[str] | None]) -> list[Entry]:
        """Entries that match nothing of what the servers offer. A server that is None, or not named, is not reached
        yet: nothing is known about its entries."""
        found = []
        for node, rule in self._each():
            tools = offered.get(rule.server) if rule.globs else None
            if tools is None:
                continue
            covered = [tool for tool in tools if _first(rule, rule.covers, tool) is not None]
            found += [
                Entry(node, rule.server, "toolNames", pattern)
                for pattern in rule.covers
                if not any(matches(pattern, tool) for tool in tools)
            ]
            found += [
                Entry(node, rule.server, "requireApproval", pattern)
                for pattern in rule.asks
                if not any(matches(pattern, tool) for tool in covered)
            ]
        return found

    def table(self, offered: Mapping[str, Collection[str] | None]) -> list[Row]:
        """Every tool that can be called, with its gate; those of servers that are not reached yet are left out."""
        rows = []
        for node, rule in self._each():
            tools = sorted(offered.get(rule.server) or ()) if rule.globs else rule.covers
            for tool in tools:
                if _first(rule, rule.covers, tool) is None:
                    continue
                judged = self.judge(node, rule.server, tool, None)
                gate: Literal["Allow", "RequireApproval"] = "Allow" if judged.action == "allow" else "RequireApproval"
                rows.append(Row(node, rule.server, tool, gate, ", ".join(judged.gated_by)))
        return list(dict.fromkeys(rows))

    def _each(self) -> Iterator[tuple[str, _Rule]]:
        for node, rules in self._rules.items():
            for rule in rules:
                yield node, rule


def compile_gate(config: RuntimeConfig) -> Gate:
    """The gate of an agent. Two nodes of one name share the rules of both: whatever either gates, asks."""
    rules: dict[str, tuple[_Rule, ...]] = {}
    for node in _nodes(config.root):
        rules[node.name] = rules.get(node.name, ()) + tuple(_rule(binding) for binding in node.tools)
    return Gate(config.agent.path, rules)


def _nodes(node: AgentNode) -> Iterator[AgentNode]:
    yield node
    for below in node.sub_agents:
        yield from _nodes(below)


def _rule(binding: McpBinding | FunctionBinding | AgentBinding) -> _Rule:
    match binding:
        case McpBinding():
            covers = ("*",) if binding.tool_names is None else binding.tool_names
            return _Rule(binding.server, covers, binding.require_approval, globs=True)
        case FunctionBinding(ref=name):
            server = FUNCTION
        case AgentBinding(name=name):
            server = AGENT
    return _Rule(server, (name,), (name,) if binding.require_approval else (), globs=False)


def _first(rule: _Rule, entries: tuple[str, ...], tool: str) -> str | None:
    if rule.globs:
        return first_match(entries, tool)
    return next((entry for entry in entries if entry == tool), None)
