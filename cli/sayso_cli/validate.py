"""`sayso validate`: files alone, and with `--online` what the tool servers say about the names in them."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sayso_api.faults import Fault, report
from sayso_api.globs import matches
from sayso_api.manifests import Manifests
from sayso_api.runtimeconfig import McpBinding, RuntimeConfig
from sayso_cli.compiling import check, compiled
from sayso_cli.errors import USAGE
from sayso_cli.output import Format, document, parse_format, safe


def run(files: Sequence[Path], *, online: bool, output: str) -> int:
    """The command. Exit code 0: no fault; 2: at least one, and every one is printed."""
    form = parse_format(output, (Format.TABLE, Format.JSON))
    manifests, faults = check(files)
    if online and not faults and manifests is not None:
        configs = compiled(files, lambda namespace, name: f"http://{name}.{namespace}")
        faults = asyncio.run(ask_servers(configs, os.environ))
    if form is Format.JSON:
        found = {"valid": not faults, "faults": [fault.as_dict() for fault in faults]}
        sys.stdout.write(document(found | {"skipped": list(manifests.skipped) if manifests else []}, form))
    elif faults:
        sys.stderr.write(safe(report("in these manifests", faults), lines=True) + "\n")
    elif manifests is not None:
        sys.stdout.write(praise(manifests, online))
    return USAGE if faults else 0


def praise(manifests: Manifests, online: bool) -> str:
    """What was found to be well, and what was passed over."""
    counts = (
        ("Agent", manifests.agents),
        ("ModelConfig", manifests.model_configs),
        ("MCPServer", manifests.mcp_servers),
    )
    parts = [f"{len(found)} {kind}{'' if len(found) == 1 else 's'}" for kind, found in counts if found]
    text = f"{', '.join(parts) or 'nothing'}: no faults"
    text += "; every name is offered by its server\n" if online else "\n"
    for skipped in manifests.skipped:
        text += f"passed over: {safe(skipped)}\n"
    return text


async def ask_servers(configs: Mapping[str, RuntimeConfig], environment: Mapping[str, str]) -> list[Fault]:
    """What the tool servers of these agents say against their manifests."""
    faults: list[Fault] = []
    for path, config in configs.items():
        faults.extend(await _ask(path, config, environment))
    return faults


async def _ask(path: str, config: RuntimeConfig, environment: Mapping[str, str]) -> list[Fault]:
    # The runtime's own way to its tools, so that what is said here is what will happen there.
    from sayso_runtime.tools.outcome import ConfigProblem
    from sayso_runtime.tools.toolbox import Toolbox

    # What it would log is in the faults.
    logging.getLogger("sayso_runtime").addHandler(logging.NullHandler())
    logging.getLogger("sayso_runtime").propagate = False
    try:
        toolbox = Toolbox(config, environment)
    except ConfigProblem as error:
        return [Fault(str(error), "tools that can be loaded", kind="Agent", name=path)]
    try:
        await toolbox.start()
        unreachable = [
            Fault(problem.why, "a tool server that answers", "start it, or correct its url", kind="MCPServer", name=key)
            for problem in toolbox.problems()
            for key in (problem.server,)
        ]
        return unreachable + unmatched(path, config, toolbox.offered())
    finally:
        await toolbox.close()


def unmatched(path: str, config: RuntimeConfig, offered: Mapping[str, set[str] | None]) -> list[Fault]:
    """Entries of `toolNames` and `requireApproval` that match nothing their server offers.

    `offered` is None for a server that could not be asked: nothing is said about its names.
    """
    faults = []
    nodes = [("spec", config.root)]
    nodes += [(f"spec.subAgents[{index}]", node) for index, node in enumerate(config.root.sub_agents)]
    for place, node in nodes:
        for index, binding in enumerate(node.tools):
            names = offered.get(binding.server) if isinstance(binding, McpBinding) else None
            if not isinstance(binding, McpBinding) or names is None:
                continue
            fields = (("toolNames", binding.tool_names or ()), ("requireApproval", binding.require_approval))
            for field, entries in fields:
                for number, entry in enumerate(entries):
                    if any(matches(entry, name) for name in names):
                        continue
                    faults.append(
                        Fault(
                            f"{entry!r}, which matches nothing that MCPServer {binding.server} offers",
                            f"one of {', '.join(sorted(names)) or 'nothing: it has no tools'}",
                            "correct the entry, or remove it",
                            path=f"{place}.tools[{index}].mcpServer.{field}[{number}]",
                            kind="Agent",
                            name=path,
                        )
                    )
    return faults
