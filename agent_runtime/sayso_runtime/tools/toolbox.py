"""All tools of one agent's process: the connections to its servers, and what each agent of its tree may call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset

from sayso_api.globs import first_match, is_glob
from sayso_api.runtimeconfig import AgentBinding, AgentNode, FunctionBinding, McpBinding, RuntimeConfig
from sayso_approvals import questions
from sayso_runtime.tools.agent_talk import AGENT
from sayso_runtime.tools.aliases import Target, agent_alias, assign
from sayso_runtime.tools.ask_user import AskUserTool
from sayso_runtime.tools.functions import FUNCTION_SERVER, load_function
from sayso_runtime.tools.mcp_server import McpConnection
from sayso_runtime.tools.mcp_tool import McpTool
from sayso_runtime.tools.outcome import ConfigProblem
from sayso_runtime.tools.remote_agent import RemoteAgentTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.readonly_context import ReadonlyContext

#: The questions of an agent, as calls that wait name them.
ASK_USER: Target = (questions.SERVER, questions.TOOL)
#: alias -> (server key, the server's own name of the tool), of calls that wait
Pins = Mapping[str, Target]


@dataclass(frozen=True, slots=True)
class Problem:
    """A server that cannot be used now: its key and why, with what to do."""

    server: str
    why: str


class Toolbox:
    """Owns the connections. Raises ConfigProblem at once for what can never work (a function that is not there)."""

    def __init__(self, config: RuntimeConfig, env: Mapping[str, str]) -> None:
        self.version = 0  # grows whenever the tools may have changed
        self._connections = {server.key: McpConnection(server, env, self._changed) for server in config.servers}
        self._functions: dict[str, BaseTool] = {}
        self._me = config.agent
        self._asks = config.ask_user
        self._agents: dict[AgentBinding, RemoteAgentTool] = {}
        for node in nodes(config.root):
            self._check(node)

    async def start(self) -> None:
        """Connect to all servers at once. A server that cannot be reached does not stop the others: see `problems`."""
        await asyncio.gather(*(connection.start() for connection in self._connections.values()))

    async def close(self) -> None:
        """Close all connections. Calls that are still under way end with an unknown outcome."""
        await asyncio.gather(
            *(connection.close() for connection in self._connections.values()),
            *(tool.peer.close() for tool in self._agents.values()),
        )

    def problems(self) -> list[Problem]:
        """The servers that are not connected now."""
        return [
            Problem(key, connection.status) for key, connection in self._connections.items() if not connection.connected
        ]

    def offered(self) -> dict[str, set[str] | None]:
        """What each server offers, by its own names; None while it has never been reached."""
        return {
            key: None if connection.tools is None else set(connection.tools)
            for key, connection in self._connections.items()
        }

    def endpoint(self, server: str) -> str | None:
        """Where a server is now, in the form that digests cover; None for what is no server of this agent."""
        connection = self._connections.get(server)
        return connection.server.endpoint if connection else None

    @property
    def calls_agents(self) -> bool:
        """Whether any agent of the tree may call an agent elsewhere."""
        return bool(self._agents)

    def agent(self, endpoint: str) -> RemoteAgentTool | None:
        """The agent that a paused call was made to, as long as this one may call it."""
        return next((tool for tool in self._agents.values() if tool.endpoint == endpoint), None)

    def tools_for(self, node: AgentNode, pinned: Pins | None = None) -> list[BaseTool]:
        """The tools that `node` may call now, under the names that the model uses.

        `pinned` aliases stay with their tool, which is there even while its server is out of reach: a call that
        waits for a say-so must still find it. Only tools that the node's bindings cover are pinned.
        """
        found, expected = self._resolve(node)
        held = {alias: target for alias, target in (pinned or {}).items() if _covers(node, target)}
        targets = [*found, *(target for target in held.values() if target not in found)]
        agents = [self._agents[binding] for binding in node.tools if isinstance(binding, AgentBinding)]
        # an agent's name is fixed: other tools keep out of its way
        taken = {agent.name: (AGENT, agent.path) for agent in agents} | held
        aliases = assign(targets, expected=expected, pinned=taken)
        tools = [self._tool(node, target, aliases[target]) for target in targets]
        # a question that waits has to find its tool, though the agent may ask no more
        asking = self._asks or ASK_USER in (pinned or {}).values()
        return [*tools, *agents, *([AskUserTool()] if asking else [])]

    def find(self, node: AgentNode, alias: str, pinned: Pins | None = None) -> BaseTool | None:
        """The tool that the model calls `alias` in `node`."""
        return next((tool for tool in self.tools_for(node, pinned) if tool.name == alias), None)

    def _resolve(self, node: AgentNode) -> tuple[dict[Target, None], list[Target]]:
        """Tools in the order of the bindings, and those that are named but not offered now."""
        found: dict[Target, None] = {}
        expected: list[Target] = []
        for binding in node.tools:
            match binding:
                case McpBinding():
                    offered = self._connections[binding.server].tools or {}
                    found |= {
                        (binding.server, name): None
                        for name in offered
                        if binding.tool_names is None or first_match(binding.tool_names, name) is not None
                    }
                    exact = (name for name in binding.tool_names or () if not is_glob(name))
                    expected += [(binding.server, name) for name in exact if name not in offered]
                case FunctionBinding():
                    found[(FUNCTION_SERVER, self._functions[binding.ref].name)] = None
        return found, expected

    def _tool(self, node: AgentNode, target: Target, alias: str) -> BaseTool:
        server, name = target
        if server == FUNCTION_SERVER:
            for binding in node.tools:
                if isinstance(binding, FunctionBinding) and self._functions[binding.ref].name == name:
                    return _renamed(self._functions[binding.ref], alias)
            raise ConfigProblem(f"agent {node.name}: the function {name} is not one of its tools any more")
        connection = self._connections[server]
        offered = (connection.tools or {}).get(name)
        idempotent = first_match(connection.server.idempotent_tools, name) is not None
        return McpTool(connection, offered, name, alias, idempotent=idempotent)

    def _check(self, node: AgentNode) -> None:
        names: dict[str, str] = {}
        for binding in node.tools:
            match binding:
                case McpBinding() if binding.server not in self._connections:
                    raise ConfigProblem(f"agent {node.name}: MCP server {binding.server} is not in its configuration")
                case AgentBinding():
                    alias = agent_alias(binding.namespace, binding.name)
                    self._agents.setdefault(binding, RemoteAgentTool(self._me, binding, alias))
                case FunctionBinding():
                    tool = self._functions.setdefault(binding.ref, load_function(binding))
                    other = names.setdefault(tool.name, binding.ref)
                    if other != binding.ref:
                        raise ConfigProblem(
                            f"agent {node.name}: functions {other} and {binding.ref} are both called {tool.name}; "
                            "rename one of them"
                        )

    def _changed(self) -> None:
        self.version += 1


class AdkToolset(BaseToolset):
    """A node's tools, looked up anew for every model call, so that servers that come up later are seen.

    `pins` gives the aliases of calls that wait now.
    """

    def __init__(self, toolbox: Toolbox, node: AgentNode, pins: Callable[[], Pins] = dict) -> None:
        super().__init__()
        self._use_invocation_cache = False  # one invocation can last for days here
        self._toolbox = toolbox
        self._node = node
        self._pins = pins
        self._known: tuple[int, dict[str, Target], list[BaseTool]] | None = None

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools as of now; the same objects while nothing has changed."""
        pins = dict(self._pins())
        if self._known is None or self._known[:2] != (self._toolbox.version, pins):
            self._known = (self._toolbox.version, pins, self._toolbox.tools_for(self._node, pins))
        return self._known[2]


def nodes(root: AgentNode) -> Iterator[AgentNode]:
    """The agents of a tree, parents first."""
    yield root
    for child in root.sub_agents:
        yield from nodes(child)


def _covers(node: AgentNode, target: Target) -> bool:
    server, name = target
    return any(
        isinstance(binding, McpBinding)
        and binding.server == server
        and (binding.tool_names is None or first_match(binding.tool_names, name) is not None)
        for binding in node.tools
    )


def _renamed(tool: BaseTool, alias: str) -> BaseTool:
    if tool.name == alias:
        return tool
    import copy

    renamed = copy.copy(tool)
    renamed.name = alias
    declare = renamed._get_declaration

    def declaration() -> object:
        declared = declare()
        if declared is not None:
            declared.name = alias
        return declared

    renamed.__dict__["_get_declaration"] = declaration
    return renamed
