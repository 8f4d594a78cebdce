"""The agent card, readable by clients of both generations.

Its URLs follow the request's own host: ADK's remote agents refuse a card that points to another origin than the one it
was fetched from.
"""

from __future__ import annotations

import re
from typing import Any

from sayso_api.runtimeconfig import RuntimeConfig, Skill
from sayso_runtime.interfaces.a2a import hitl

_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*\.?"
    r"|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
)
_MODES = ["text/plain", "application/json"]


def valid_host(host: str) -> bool:
    """Whether a Host header is a name or address with an optional port, and so may stand in a URL of ours."""
    return len(host) <= 255 and _HOST.fullmatch(host) is not None


def agent_card(config: RuntimeConfig, *, scheme: str, host: str, version: str) -> dict[str, Any]:
    """The card as JSON. `host` is checked by the caller."""
    url = f"{scheme}://{host}/"
    return {
        "name": config.agent.name,
        "description": config.root.description,
        "version": version,
        "protocolVersion": "0.3.0",
        "url": url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extensions": [{"uri": hitl.URI, "description": hitl.DESCRIPTION, "required": False}],
        },
        "defaultInputModes": _MODES,
        "defaultOutputModes": _MODES,
        "skills": [_skill(skill) for skill in config.skills] or [_default_skill(config)],
    }


def _skill(skill: Skill) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description or skill.name,
        "tags": list(skill.tags),
    }
    if skill.examples:
        document["examples"] = list(skill.examples)
    return document


def _default_skill(config: RuntimeConfig) -> dict[str, Any]:
    """Cards need a skill; an agent without a list of its own has the one that its description tells."""
    return {
        "id": config.agent.name,
        "name": config.agent.name,
        "description": config.root.description or config.agent.name,
        "tags": ["sayso"],
    }
