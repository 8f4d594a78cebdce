"""Pages on what is seen from outside: refusals, metrics and the names of Redis keys."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap

from prometheus_client.metrics import MetricWrapperBase

from markdown import code, table
from sayso_approvals.keys import Keys, short
from sayso_approvals.records import AgentId
from sayso_approvals.refusals import STATUS, Code
from sayso_runtime.interfaces.metrics import Metrics

#: What each refusal means for whoever sent the request. A code that is missing here fails the generation.
MEANING: dict[Code, str] = {
    "malformed_decision": "The decision is not well formed: two verdicts for one call, an unknown word, nothing "
    "decided, a foreign session. Correct it and send it again.",
    "unknown_call": "An id names nothing that is pending here. The message was refused as a whole.",
    "already_decided": "Somebody decided first; the answer says who, when and what.",
    "expired": "The time limit passed before anybody decided.",
    "superseded": "A newer message replaced the pause.",
    "cancelled": "The call was cancelled: nobody decided.",
    "not_found": "There is no such run, task or session, or it belongs to another caller.",
    "paused": "The session waits for a decision; the open interruptions are in the answer.",
    "busy": "Too many messages already wait for this session. Try again shortly.",
    "not_an_approver": "The caller may not decide this call.",
    "integrity": "The record was changed outside of Sayso, or the tool server is another one now. Nothing ran; the "
    "call can only be cancelled.",
    "agent_gone": "The agent that paused is not there any more.",
    "engine_changed": "The agent now runs on another framework than the one that paused.",
    "model_failed": "The model could not be reached. What a tool returned is kept; sending the same decision again "
    "goes on from there.",
    "tool_server_unreachable": "A tool server could not be reached, and nothing was sent to it.",
    "store_unreachable": "Redis could not be reached. Nothing was changed.",
}

#: What a session's own keys hold; their names come from `Keys.session`.
SESSION_PARTS = {
    "session": ("hash", "the session: its owner, who holds its turn and until when, its newest task"),
    "live": ("hash", "pauses that are not done, with the state of each of their calls"),
    "events": ("list", "the conversation; appended to, never rewritten"),
    "waiting": ("zset", "messages that wait for the session's turn, in order of arrival"),
    "answering": ("zset", "decisions whose answer is still going out"),
}

EXAMPLE = AgentId("shop", "refund-desk")


def refusals() -> str:
    """Every refusal with its HTTP status."""
    rows = [(code(name), str(status), MEANING[name]) for name, status in STATUS.items()]
    return "\n\n".join(
        [
            "# Refusals",
            "A refused request has changed nothing. Every door gives the same document, the problem details of RFC "
            "9457, with a `code` that stays the same across versions, the `ids` in question and, where something was "
            "decided, `decidedBy`, `decidedAt`, `verdict` and `reason`. A2A carries it as the `data` of a JSON-RPC "
            "error.",
            table(("code", "HTTP status", "meaning"), rows),
        ]
    )


def redis_keys() -> str:
    """Every key of an agent, with its type and purpose as `Keys` states them."""
    keys = Keys(EXAMPLE)
    source = textwrap.dedent(inspect.getsource(Keys))
    fixed = [
        (code(str(getattr(keys, name))), *_type_and_purpose(comment))
        for name, comment in re.findall(r"self\.(\w+) = [^#\n]+# (.+)", source)
    ]
    derived = []
    for method in ast.walk(ast.parse(source)):
        if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
            continue
        said = ast.get_docstring(method) or ""
        if re.match(r"\w+: ", said):
            arguments = [argument.arg.removesuffix("_id") for argument in method.args.args[1:]]
            name = f"{keys.prefix}{method.name}:<{' and '.join(arguments)}, hashed>"
            derived.append((code(name), *_type_and_purpose(said)))
    own = [name.removeprefix(keys.prefix).split(":")[0] for name in keys.session("x") if name.endswith(short("x"))]
    derived += [(code(f"{keys.prefix}{part}:<session, hashed>"), *SESSION_PARTS[part]) for part in own]
    if not fixed or not derived or not own:
        raise SystemExit("sayso_approvals.keys no longer says what its keys are for: see tools/wire_pages.py")
    return "\n\n".join(
        [
            "# Redis keys",
            inspect.getdoc(inspect.getmodule(Keys)) or "",
            f"The keys of Agent {code(str(EXAMPLE))}:",
            table(("key", "type", "holds"), [*fixed, *derived]),
        ]
    )


def _type_and_purpose(comment: str) -> tuple[str, str]:
    kind, _, purpose = comment.partition(": ")
    head, comma, more = kind.partition(", ")
    return head.lower(), f"{purpose.removesuffix('.')}{comma and f' ({more})'}"


def metrics() -> str:
    """Every metric with its type, labels and meaning, from a fresh registry."""
    rows = []
    for value in vars(Metrics()).values():
        if isinstance(value, MetricWrapperBase):
            family = next(iter(value.describe()))
            name = family.name + ("_total" if family.type == "counter" else "")
            rows.append((code(name), family.type, ", ".join(map(code, value._labelnames)), family.documentation))
    if not rows:
        raise SystemExit("sayso_runtime.interfaces.metrics no longer keeps its metrics as attributes")
    return "\n\n".join(
        [
            "# Metrics",
            "Each agent process shows them at `/metrics` in Prometheus' text format. Times are in seconds; a histogram "
            "also has `_bucket`, `_sum` and `_count`.",
            table(("metric", "type", "labels", "meaning"), rows),
        ]
    )
