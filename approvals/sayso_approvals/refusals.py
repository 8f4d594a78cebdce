"""Refusals: what a client is told when its request changes nothing.

    Refusal                one per stable code, rendered as problem details (RFC 9457) by every door

A refusal is an answer, not a failure of the program: it says what is wrong, about which ids, and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Code = Literal[
    "malformed_decision",
    "unknown_call",
    "already_decided",
    "expired",
    "superseded",
    "cancelled",
    "not_found",
    "paused",
    "busy",
    "not_an_approver",
    "integrity",
    "agent_gone",
    "engine_changed",
    "model_failed",
    "tool_server_unreachable",
    "store_unreachable",
]

#: HTTP status of each code, for doors that speak HTTP.
STATUS: dict[Code, int] = {
    "malformed_decision": 422,
    "unknown_call": 422,
    "already_decided": 409,
    "expired": 410,
    "superseded": 410,
    "cancelled": 410,
    "not_found": 404,
    "paused": 409,
    "busy": 429,
    "not_an_approver": 403,
    "integrity": 409,
    "agent_gone": 410,
    "engine_changed": 409,
    "model_failed": 502,
    "tool_server_unreachable": 503,
    "store_unreachable": 503,
}


@dataclass(eq=False)
class Refusal(Exception):  # noqa: N818  the domain's word for it, in every door
    """A request that changed nothing. `extra` carries what else a client can use (a pause's parts, a task id)."""

    code: Code
    detail: str
    ids: tuple[str, ...] = ()
    decided_by: str | None = None
    decided_at: float | None = None
    verdict: str | None = None
    reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def status(self) -> int:
        """The HTTP status that goes with the code."""
        return STATUS[self.code]

    def problem(self) -> dict[str, Any]:
        """The problem details document. `decidedAt` is RFC 3339 in UTC."""
        from datetime import UTC, datetime

        document: dict[str, Any] = {
            "type": f"https://sayso.dev/problems/{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "ids": list(self.ids),
        }
        if self.decided_by is not None:
            document["decidedBy"] = self.decided_by
        if self.decided_at is not None:
            at = datetime.fromtimestamp(self.decided_at, UTC)
            document["decidedAt"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.verdict is not None:
            document["verdict"] = self.verdict
        if self.reason:
            document["reason"] = self.reason
        return document | self.extra
