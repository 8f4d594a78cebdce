"""Rules between the fields of an `Agent` that need more than one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sayso_api import globs
from sayso_api.base import Rule, Violation, items, peek
from sayso_api.faults import Path, did_you_mean, listing, quote
from sayso_api.meta import DEFAULT_NAMESPACE


def _gates_within_tools(data: Mapping[str, Any]) -> Iterator[Violation]:
    """A gate entry that can meet none of the given tools guards nothing; most often it is misspelt."""
    tools = [entry for _, entry in items(data, "toolNames") if isinstance(entry, str)]
    if not tools:
        return
    for index, entry in items(data, "requireApproval"):
        if isinstance(entry, str) and not any(globs.intersects(entry, tool) for tool in tools):
            found = f"{quote(entry)}, which matches none of toolNames"
            fix = did_you_mean(entry, tools) or "add the tool to toolNames, or remove the entry"
            yield Violation(("requireApproval", index), found, listing(tools), fix)


# An API server compares names; an entry or tool with a wildcard is left to the operator, which judges it too.
_GLOB = "{0}.contains('*') || {0}.contains('?')"
gates_within_tools = Rule(
    _gates_within_tools,
    "!has(self.toolNames) || !has(self.requireApproval) || "
    f"self.toolNames.exists(tool, {_GLOB.format('tool')}) || "
    f"self.requireApproval.all(entry, {_GLOB.format('entry')} || entry in self.toolNames)",
    "expected each requireApproval entry to match one of toolNames",
)


def tools_differ(data: Mapping[str, Any]) -> Iterator[Violation]:
    """Two entries for one server, agent or function name could disagree about what needs approval."""
    home = peek(data, "metadata", "namespace") or DEFAULT_NAMESPACE
    places: list[Path] = [("spec",), *(("spec", "subAgents", i) for i, _ in items(data, "spec", "subAgents"))]
    for place in places:
        seen: dict[tuple[str, ...], int] = {}
        for index, tool in items(data, *place, "tools"):
            for identity, at, what in _identities(tool, home):
                first = seen.setdefault(identity, index)
                if first != index:
                    found = f"{what}, which tools[{first}] names already"
                    fix = "put all that is said of it into one entry"
                    yield Violation((*place, "tools", index, *at), found, "each only once", fix)


def _identities(tool: object, home: str) -> Iterator[tuple[tuple[str, ...], Path, str]]:
    name, namespace = peek(tool, "mcpServer", "name"), peek(tool, "mcpServer", "namespace")
    if isinstance(name, str):
        yield ("mcp", str(namespace or home), name), ("mcpServer", "name"), f"MCPServer {quote(name)}"
    name, namespace = peek(tool, "agent", "name"), peek(tool, "agent", "namespace")
    url, ref = peek(tool, "agent", "url"), peek(tool, "function", "ref")
    if isinstance(url, str):
        yield ("url", url), ("agent", "url"), f"url {quote(url)}"
    elif isinstance(name, str):
        yield ("agent", str(namespace or home), name), ("agent", "name"), f"Agent {quote(name)}"
    if isinstance(ref, str):
        attribute = ref.rpartition(":")[2]
        yield ("function", attribute), ("function", "ref"), f"function {quote(attribute)}"


_SAME = "has({0}.{1}) && {0}.{1}.name == {2}.{1}.name && has({0}.{1}.__namespace__) == has({2}.{1}.__namespace__)"
_SAME_SPACE = "(!has({0}.{1}.__namespace__) || {0}.{1}.__namespace__ == {2}.{1}.__namespace__)"
_SERVER = f"{_SAME.format('b', 'mcpServer', 'a')} && {_SAME_SPACE.format('b', 'mcpServer', 'a')}"
tools_differ_cel = Rule(
    lambda data: (),
    "!has(self.tools) || self.tools.all(a, "
    f"(!has(a.mcpServer) || self.tools.exists_one(b, {_SERVER})) && "
    "(!has(a.__function__) || self.tools.exists_one(b, has(b.__function__) && "
    "b.__function__.ref == a.__function__.ref)))",
    "expected each server and function in only one entry of tools",
)


def _sub_agents_named_apart(data: Mapping[str, Any]) -> Iterator[Violation]:
    own = peek(data, "metadata", "name")
    for index, sub in items(data, "spec", "subAgents"):
        name = peek(sub, "name")
        if isinstance(name, str) and name == own:
            found = f"{quote(name)}, which is the Agent's own name"
            yield Violation(("spec", "subAgents", index, "name"), found, "a name of its own", "rename one of the two")


sub_agents_named_apart = Rule(
    _sub_agents_named_apart,
    "!has(self.spec.subAgents) || self.spec.subAgents.all(sub, sub.name != self.metadata.name)",
    "expected sub-agents to have other names than the Agent",
)
