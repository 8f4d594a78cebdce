"""The custom resources of `sayso.dev/v1alpha1` as pydantic models, and what is derived from them alone.

The public names below are imported when they are first used: an agent's process reads `sayso_api.runtimeconfig`
only, and must not pay for YAML and the models at its start.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sayso_api.agent import Agent
    from sayso_api.compile import compile_agent, missing_env, required_env, validate
    from sayso_api.faults import CompileError, Fault, ManifestError, SaysoError
    from sayso_api.manifests import Manifests, from_objects, load
    from sayso_api.mcpserver import MCPServer
    from sayso_api.modelconfig import ModelConfig
    from sayso_api.runtimeconfig import RuntimeConfig

__all__ = [
    "Agent",
    "CompileError",
    "Fault",
    "MCPServer",
    "ManifestError",
    "Manifests",
    "ModelConfig",
    "RuntimeConfig",
    "SaysoError",
    "compile_agent",
    "from_objects",
    "load",
    "missing_env",
    "required_env",
    "validate",
]

_MODULES = {
    "Agent": "agent",
    "CompileError": "faults",
    "Fault": "faults",
    "MCPServer": "mcpserver",
    "ManifestError": "faults",
    "Manifests": "manifests",
    "ModelConfig": "modelconfig",
    "RuntimeConfig": "runtimeconfig",
    "SaysoError": "faults",
    "compile_agent": "compile",
    "from_objects": "manifests",
    "load": "manifests",
    "missing_env": "compile",
    "required_env": "compile",
    "validate": "compile",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
