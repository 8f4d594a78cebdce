"""The names of the environment variables that carry secrets into an agent's process.

Only names are handled here; no configuration ever holds a secret's value. This module reads no files and imports
nothing but the contract, so an agent's process can use it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sayso_api.runtimeconfig import NamedValue, RuntimeConfig

PREFIX = "SAYSO_SECRET_"

PROVIDER_VARIABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Gemini": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "OpenAI": ("OPENAI_API_KEY",),
        "Anthropic": ("ANTHROPIC_API_KEY",),
    }
)
"""Where the providers' own libraries look for a key. LiteLLM depends on the model, Scripted needs none."""


def variable(name: str, key: str) -> str:
    """The variable for `key` of the Secret `name`: upper case, and `_` for all but A-Z and 0-9.

    Different secrets can get the same variable; whoever uses more than one has to check for that.
    """
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", f"{name}_{key}".upper())


def required_env(config: RuntimeConfig) -> list[tuple[str, str]]:
    """The variables that a process with this configuration needs, each once and with what it is for.

    The model's key may come in the provider's usual variable instead; `missing_env` takes that into account.
    """
    needed: dict[str, list[str]] = {}
    for name, why in _uses(config):
        needed.setdefault(name, []).append(why)
    return [(name, ", ".join(dict.fromkeys(reasons))) for name, reasons in needed.items()]


def missing_env(config: RuntimeConfig, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Those of `required_env` that are unset or empty, and have no substitute in `environment`."""
    usual = PROVIDER_VARIABLES.get(config.model.provider, ())
    replaced = config.model.api_key_env if any(environment.get(name) for name in usual) else None
    others = {name for name, _ in _server_uses(config)}
    return [
        (name, why)
        for name, why in required_env(config)
        if not environment.get(name) and (name != replaced or name in others)
    ]


def _uses(config: RuntimeConfig) -> Iterator[tuple[str, str]]:
    if config.model.api_key_env is not None:
        yield config.model.api_key_env, f"the key of the model {config.model.model or config.model.provider}"
    yield from _server_uses(config)


def _server_uses(config: RuntimeConfig) -> Iterator[tuple[str, str]]:
    for server in config.servers:
        yield from _named(server.headers, f"header {{}} of MCPServer {server.key}")
        yield from _named(server.env, f"variable {{}} of MCPServer {server.key}")
        if server.tls.ca_env is not None:
            yield server.tls.ca_env, f"the CA of MCPServer {server.key}"


def _named(values: tuple[NamedValue, ...], why: str) -> Iterator[tuple[str, str]]:
    for value in values:
        if value.from_env is not None:
            yield value.from_env, why.format(value.name)
