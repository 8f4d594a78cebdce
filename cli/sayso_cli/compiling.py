"""Manifests from files to one configuration for each agent, with every fault in one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sayso_api.compile import AgentUrl, compile_agent, missing_env
from sayso_api.compile import validate as faults_between
from sayso_api.faults import Fault, ManifestError, SaysoError, report
from sayso_api.manifests import Manifests, load
from sayso_api.runtimeconfig import RuntimeConfig
from sayso_cli.errors import USAGE, CliError
from sayso_cli.output import safe


def check(files: Sequence[Path]) -> tuple[Manifests | None, list[Fault]]:
    """The manifests in `files` and everything that is wrong with them; None where they cannot even be read."""
    try:
        manifests = load(files)
    except ManifestError as error:
        return None, list(error.faults)
    return manifests, faults_between(manifests)


def compiled(files: Sequence[Path], agent_url: AgentUrl) -> dict[str, RuntimeConfig]:
    """A configuration for each agent by `<namespace>/<name>`, in the order of the files.

    CliError (usage) with all faults, and where there is no agent at all.
    """
    manifests, faults = check(files)
    if manifests is None or faults:
        raise CliError(safe(report("in these manifests", faults), lines=True), USAGE)
    if not manifests.agents:
        raise CliError(f"there is no Agent in {', '.join(map(str, files))}; name the files that have one", USAGE)
    try:
        return {path: compile_agent(agent, manifests, agent_url=agent_url) for path, agent in manifests.agents.items()}
    except SaysoError as error:
        raise CliError(safe(str(error), lines=True), USAGE) from error


def agent_names(files: Sequence[Path]) -> list[str]:
    """The agents in the order of the files. CliError as `compiled`."""
    return list(compiled(files, lambda namespace, name: f"http://{name}.{namespace}"))


def missing_secrets(configs: Mapping[str, RuntimeConfig], environment: Mapping[str, str]) -> str:
    """Every variable that is needed and not set, with what for; empty where nothing is missing."""
    lines = [
        f"  {name}  {safe(why)} (Agent {path})"
        for path, config in configs.items()
        for name, why in missing_env(config, environment)
    ]
    if not lines:
        return ""
    return "\n".join(["secrets are missing; set these environment variables:", *lines])
