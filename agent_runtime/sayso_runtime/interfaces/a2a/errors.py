"""JSON-RPC errors as A2A numbers them, and refusals turned into them.

    RpcError       what the answer's `error` says

Codes -32001 to -32009 are A2A's own; clients show fixed texts for them, so refusals whose reason a person has to read
travel under -32050.
"""

from __future__ import annotations

from typing import Any

from sayso_approvals.refusals import Refusal

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
TASK_NOT_FOUND = -32001
PUSH_NOT_SUPPORTED = -32003
UNSUPPORTED_OPERATION = -32004
CONTENT_TYPE_NOT_SUPPORTED = -32005
NO_EXTENDED_CARD = -32007
VERSION_NOT_SUPPORTED = -32009
REFUSED = -32050


class RpcError(Exception):
    """An error answer. `status` is its HTTP status where errors have one of their own (the 0.3 stream)."""

    def __init__(self, code: int, message: str, data: Any = None, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status

    def body(self) -> dict[str, Any]:
        """The `error` member of the answer."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def refusal_code(refusal: Refusal, *, lookup: bool) -> int:
    """The JSON-RPC code of a refusal. `lookup`: the request named a task to read or cancel and nothing else."""
    if refusal.code in ("malformed_decision", "unknown_call"):
        return INVALID_PARAMS
    if refusal.code == "not_found" and lookup:
        return TASK_NOT_FOUND
    return REFUSED
