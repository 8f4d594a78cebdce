"""Manifests to configurations: one Agent and all that it refers to become the `RuntimeConfig` of its process.

Pure: the same manifests give the same configuration, on a cluster and locally. Every fault is collected before any
is raised, and an Agent with a fault gets no configuration at all; a half-resolved agent could lack a gate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from sayso_api import runtimeconfig as rc
from sayso_api.agent import Agent, AgentSpec, AgentTool, McpServerTools, SubAgent, Tool
from sayso_api.faults import CompileError, Fault, Path
from sayso_api.manifests import Manifests
from sayso_api.mcpserver import MCPServer
from sayso_api.meta import EnvVar, Header, SecretKeyRef
from sayso_api.modelconfig import ModelConfig, ScriptedTurnSpec
from sayso_api.references import Referrer
from sayso_api.secretenv import missing_env, required_env, variable

__all__ = ["compile_agent", "missing_env", "required_env", "validate"]

AgentUrl = Callable[[str, str], str | tuple[str, ...]]
"""Where the agent of a namespace and name answers A2A: one URL, or one for each of its replicas."""


def compile_agent(
    agent: Agent, manifests: Manifests, *, agent_url: AgentUrl, uid: str = "", generation: int = 0
) -> rc.RuntimeConfig:
    """What the process of `agent` is told. Raises CompileError with every fault.

    `uid` and `generation` are the API server's; locally they are left out.
    """
    compiler = _Compiler(agent, manifests, agent_url)
    config = compiler.config(uid, generation)
    if config is None:
        raise CompileError(_once(compiler.faults))
    return config


def validate(manifests: Manifests) -> list[Fault]:
    """Every fault between the manifests, in the order of the Agents; empty when they fit together."""
    faults: list[Fault] = []
    cycles: set[frozenset[str]] = set()
    for agent in manifests.agents.values():
        compiler = _Compiler(agent, manifests, lambda namespace, name: f"http://{name}.{namespace}", cycles)
        compiler.config("", 0)
        faults.extend(compiler.faults)
    return _once(faults)


def _once(faults: Iterable[Fault]) -> list[Fault]:
    return list(dict.fromkeys(faults))


class _Compiler:
    """One Agent's way to its configuration. `referrer` collects what is wrong."""

    def __init__(
        self, agent: Agent, manifests: Manifests, agent_url: AgentUrl, cycles: set[frozenset[str]] | None = None
    ) -> None:
        self.agent, self.manifests, self.agent_url = agent, manifests, agent_url
        self.referrer = Referrer(agent, manifests, set() if cycles is None else cycles)
        self.servers: dict[str, rc.ToolServer] = {}
        self.secrets: dict[str, tuple[str, str, str]] = {}

    @property
    def faults(self) -> list[Fault]:
        """What has been found so far."""
        return self.referrer.faults

    def config(self, uid: str, generation: int) -> rc.RuntimeConfig | None:
        """The configuration, or None when there are faults."""
        meta, spec = self.agent.metadata, self.agent.spec
        model = self._model(spec)
        root = self._node(meta.name, spec, ("spec",))
        below = tuple(self._node(sub.name, sub, ("spec", "subAgents", i)) for i, sub in enumerate(spec.sub_agents))
        if self.faults or model is None:
            return None
        approval = spec.approval
        return rc.RuntimeConfig(
            agent=rc.AgentIdentity(namespace=meta.namespace, name=meta.name, uid=uid),
            generation=generation,
            root=root.model_copy(update={"sub_agents": below}),
            model=model,
            servers=tuple(self.servers.values()),
            ask_user=spec.ask_user,
            while_paused=spec.while_paused,
            approval=rc.ApprovalSettings(
                timeout_seconds=approval.timeout.total_seconds(),
                on_timeout=approval.on_timeout,
                hint=approval.hint,
                editable_arguments=approval.editable_arguments,
            ),
            skills=tuple(rc.Skill(**skill.model_dump(by_alias=False)) for skill in spec.skills),
        )

    def _node(self, name: str, spec: AgentSpec | SubAgent, at: Path) -> rc.AgentNode:
        """The agent at `at`, without its sub-agents. After a fault, what it holds is not used."""
        bindings: list[rc.Binding] = []
        named: dict[str, int] = {}
        for index, tool in enumerate(spec.tools):
            binding = self._binding(tool, (*at, "tools", index))
            if binding is None:
                continue
            if isinstance(binding, rc.AgentBinding):
                self._agent_named_once(binding, named, (*at, "tools", index, "agent"), index)
            bindings.append(binding)
        return rc.AgentNode(
            name=name,
            description=spec.description,
            instruction=self._instruction(spec, at),
            tools=tuple(bindings),
        )

    def _agent_named_once(self, binding: rc.AgentBinding, named: dict[str, int], at: Path, index: int) -> None:
        identity = binding.name if binding.namespace is None else f"{binding.namespace}/{binding.name}"
        first = named.setdefault(identity, index)
        if first != index:
            found = f"an agent called {identity}, as tools[{first}] is"
            self.referrer.fault(at, found, "names that differ", "give one of them a name of its own")

    def _instruction(self, spec: AgentSpec | SubAgent, at: Path) -> str:
        if spec.instruction_from is None:
            return spec.instruction or ""
        return self.referrer.text(spec.instruction_from.config_map_key_ref, (*at, "instructionFrom"))

    def _binding(self, tool: Tool, at: Path) -> rc.Binding | None:
        if tool.mcp_server is not None:
            return self._mcp(tool.mcp_server, (*at, "mcpServer"))
        if tool.agent is not None:
            return self._agent(tool.agent, (*at, "agent"))
        if tool.function is not None:
            return rc.FunctionBinding(**tool.function.model_dump(by_alias=False))
        return None

    def _mcp(self, tools: McpServerTools, at: Path) -> rc.McpBinding | None:
        server = self.referrer.mcp_server(tools, at)
        if server is None:
            return None
        if server.key not in self.servers:
            self.servers[server.key] = self._server(server, at)
        return rc.McpBinding(server=server.key, tool_names=tools.tool_names, require_approval=tools.require_approval)

    def _agent(self, tool: AgentTool, at: Path) -> rc.AgentBinding | None:
        if tool.url is not None:
            name = tool.name or _name_of_host(tool.url)
            return rc.AgentBinding(name=name, url=tool.url, require_approval=tool.require_approval)
        other = self.referrer.agent_of(tool, at)
        if other is None:
            return None
        meta = other.metadata
        found = self.agent_url(meta.namespace, meta.name)
        first, *more = (found,) if isinstance(found, str) else found
        return rc.AgentBinding(
            name=meta.name,
            namespace=meta.namespace,
            url=first,
            more_urls=tuple(more),
            description=other.spec.description,
            require_approval=tool.require_approval,
        )

    def _server(self, server: MCPServer, at: Path) -> rc.ToolServer:
        spec, namespace = server.spec, server.metadata.namespace
        tls = rc.TlsSettings()
        if spec.tls is not None:
            ca = spec.tls.ca_secret_ref
            tls = rc.TlsSettings(
                ca_env=None if ca is None else self._secret(namespace, ca, at),
                insecure_skip_verify=spec.tls.insecure_skip_verify,
            )
        return rc.ToolServer(
            key=server.key,
            url=spec.url,
            transport=spec.transport,
            command=spec.command or (),
            env=self._values(namespace, spec.env or (), at),
            headers=self._values(namespace, spec.headers or (), at),
            timeout_seconds=spec.timeout_seconds,
            tls=tls,
            idempotent_tools=spec.idempotent_tools,
            trust_annotations=spec.trust_annotations,
        )

    def _values(self, namespace: str, values: Iterable[EnvVar | Header], at: Path) -> tuple[rc.NamedValue, ...]:
        return tuple(
            rc.NamedValue(name=value.name, value=value.value)
            if value.value_from is None
            else rc.NamedValue(name=value.name, from_env=self._secret(namespace, value.value_from.secret_key_ref, at))
            for value in values
        )

    def _secret(self, namespace: str, ref: SecretKeyRef, at: Path) -> str:
        """The variable for a secret; two secrets in one variable are a fault, for one would be sent as the other."""
        name = variable(ref.name, ref.key)
        this = (namespace, ref.name, ref.key)
        first = self.secrets.setdefault(name, this)
        if first != this:
            one, two = (f"key {key} of Secret {space}/{secret}" for space, secret, key in (first, this))
            found = f"{two}, whose variable {name} already carries {one}"
            self.referrer.fault(at, found, "a variable for each secret", "rename one of the Secrets or keys")
        return name

    def _model(self, spec: AgentSpec) -> rc.ModelSettings | None:
        config = self.referrer.model_config(spec.model_config_name, ("spec", "modelConfig"))
        return None if config is None else self._settings(config)

    def _settings(self, config: ModelConfig) -> rc.ModelSettings:
        spec, key = config.spec, config.spec.api_key_secret_ref
        return rc.ModelSettings(
            provider=spec.provider,
            model=spec.model or "",
            base_url=spec.base_url,
            # A scripted model has no key; asking for one would only stop a demonstration from starting.
            api_key_env=None
            if key is None or spec.provider == "Scripted"
            else self._secret(config.metadata.namespace, key, ("spec", "modelConfig")),
            turns=tuple(map(_turn, spec.scripted.turns if spec.scripted is not None else ())),
            **spec.parameters.model_dump(by_alias=False),
        )


def _turn(turn: ScriptedTurnSpec) -> rc.ScriptedTurn:
    return rc.ScriptedTurn(**turn.model_dump(by_alias=False))


def _name_of_host(url: str) -> str:
    """What an agent elsewhere is called that was given no name: its host, as a DNS label."""
    return re.sub(r"[^a-z0-9]+", "-", (urlsplit(url).hostname or "").lower()).strip("-")[:63] or "agent"
