"""What the model calls the tools: one name per tool and agent, the same on every replica.

Pure functions. A tool keeps its server's name for it unless another server of the same agent offers that name too, or
the model could not use it; then it is `<server>_<tool>`. Names already given to a call that waits are never given to
another tool.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping

LONGEST = 64  # characters: the strictest of the providers
#: Names that the engine itself puts before the model.
RESERVED = frozenset(
    {
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
        "ask_user",
        "finish_task",
        "set_model_response",
        "transfer_to_agent",
    }
)
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")

#: (server key, the server's own name of the tool)
Target = tuple[str, str]


def usable(name: str) -> bool:
    """Whether every provider takes this as a tool's name: letters, digits, `_`, `-`; a letter or `_` first."""
    return (
        0 < len(name) <= LONGEST
        and not _REFUSED.search(name)
        and (name[0].isalpha() or name[0] == "_")
        and name not in RESERVED
    )


def agent_alias(namespace: str | None, name: str) -> str:
    """What the model calls another agent, in the form that chat windows of kagent know."""
    spoken = name if namespace is None else f"{namespace}__NS__{name}"
    return _free(spoken.replace("-", "_"), (namespace or "", name), set())


def assign(
    offered: Iterable[Target], *, expected: Iterable[Target] = (), pinned: Mapping[str, Target] | None = None
) -> dict[Target, str]:
    """An alias for each of `offered`.

    `expected` are tools that are named but not offered now (their server is down): they count as collisions, so that
    aliases do not change when it comes back. `pinned` maps aliases to the tools that hold them.
    """
    targets = sorted(set(offered))
    held = {target: alias for alias, target in (pinned or {}).items()}
    taken = set(pinned or {})
    count = Counter(tool for _, tool in set(targets) | set(expected))
    short = Counter(key.rpartition("/")[2] for key in {key for key, _ in (*targets, *expected)})
    result: dict[Target, str] = {}
    for target in targets:
        key, tool = target
        if target in held:
            result[target] = held[target]
            continue
        name = tool
        if count[tool] > 1 or not usable(tool) or tool in taken:
            server = key.rpartition("/")[2]
            name = f"{server if short[server] == 1 else key}_{tool}"
        result[target] = _free(name, target, taken)
        taken.add(result[target])
    return result


def _free(name: str, target: Target, taken: set[str]) -> str:
    clean = _REFUSED.sub("_", name)
    if not (clean[:1].isalpha() or clean[:1] == "_"):
        clean = f"_{clean}"
    if usable(clean) and clean not in taken:
        return clean
    # Too long, or two names became one: a mark made from the tool itself, so that every replica finds the same.
    mark = hashlib.sha256("\0".join(target).encode()).hexdigest()[:8]
    return f"{clean[: LONGEST - 9]}_{mark}"
