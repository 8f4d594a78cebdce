"""JSON-RPC's envelope, and which A2A method means what in which generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from sayso_runtime.interfaces.a2a.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NO_EXTENDED_CARD,
    PUSH_NOT_SUPPORTED,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    RpcError,
)
from sayso_runtime.interfaces.a2a.v03 import V03
from sayso_runtime.interfaces.a2a.v10 import V10, V10Hitl

Generation = V03 | V10


class _Absent:
    """The id of a request that has none."""


ABSENT: Final = _Absent()
RequestId = str | int | float | None | _Absent


class Operation(Enum):
    """What a method asks for."""

    SEND = auto()
    STREAM = auto()
    GET = auto()
    CANCEL = auto()


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `id` goes back exactly as it came."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


_V03, _V10, _V10_HITL = V03(), V10(), V10Hitl()
METHODS: Mapping[str, tuple[Generation, Operation]] = {
    "message/send": (_V03, Operation.SEND),
    "message/stream": (_V03, Operation.STREAM),
    "tasks/get": (_V03, Operation.GET),
    "tasks/cancel": (_V03, Operation.CANCEL),
    "SendMessage": (_V10, Operation.SEND),
    "SendStreamingMessage": (_V10, Operation.STREAM),
    "GetTask": (_V10, Operation.GET),
    "CancelTask": (_V10, Operation.CANCEL),
}
#: Methods of A2A that this agent does not offer, and the code that says so.
_NOT_OFFERED = {
    "tasks/resubscribe": UNSUPPORTED_OPERATION,
    "tasks/list": UNSUPPORTED_OPERATION,
    "SubscribeToTask": UNSUPPORTED_OPERATION,
    "ListTasks": UNSUPPORTED_OPERATION,
    "agent/getAuthenticatedExtendedCard": NO_EXTENDED_CARD,
    "GetExtendedAgentCard": NO_EXTENDED_CARD,
}


def request_id(document: Any) -> RequestId:
    """The id of whatever was sent, as far as it has a legal one; None otherwise."""
    if not isinstance(document, dict):
        return None
    value = document.get("id", ABSENT)
    if value is None or value is ABSENT or (isinstance(value, str | int | float) and not isinstance(value, bool)):
        return value
    return None


def read_call(document: Any) -> Call:
    """The request in a JSON document. Raises `RpcError`."""
    if isinstance(document, list):
        raise RpcError(INVALID_REQUEST, "batches are not supported: send one request at a time")
    if not isinstance(document, dict) or document.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'a request is an object with "jsonrpc": "2.0"')
    if request_id(document) is None and document.get("id") is not None:
        raise RpcError(INVALID_REQUEST, "id has to be a string, a number or null")
    method = document.get("method")
    if not isinstance(method, str) or not method:
        raise RpcError(INVALID_REQUEST, "method has to be a text")
    params = document.get("params")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params has to be an object")
    return Call(request_id(document), method, params or {})


def resolve(method: str, version: str | None, extended: bool = False) -> tuple[Generation, Operation]:
    """What a method means. `extended`: the client asks for kagent's extension, which 1.0 alone speaks.

    The name alone tells the generation; the A2A-Version header only has to name one that is spoken here, since clients
    keep a default header for both. Raises `RpcError`.
    """
    if version and version.strip().partition(".")[0] not in ("0", "1"):
        raise RpcError(
            VERSION_NOT_SUPPORTED, f"A2A version {version[:20]!r} is not supported, versions 1.0 and 0.3 are"
        )
    found = METHODS.get(method)
    if found is not None:
        wire, operation = found
        return (_V10_HITL, operation) if extended and wire is _V10 else found
    if method in _NOT_OFFERED:
        raise RpcError(_NOT_OFFERED[method], f"this agent does not offer {method}")
    if "PushNotificationConfig" in method or method.startswith("tasks/pushNotificationConfig/"):
        raise RpcError(PUSH_NOT_SUPPORTED, "this agent sends no push notifications")
    raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:60]!r}; known are {', '.join(METHODS)}")


def answer(call_id: RequestId, result: Any) -> dict[str, Any]:
    """A success document."""
    return _with_id(call_id, {"jsonrpc": "2.0", "result": result})


def failure(call_id: RequestId, error: RpcError) -> dict[str, Any]:
    """An error document."""
    return _with_id(call_id, {"jsonrpc": "2.0", "error": error.body()})


def _with_id(call_id: RequestId, document: dict[str, Any]) -> dict[str, Any]:
    return document if call_id is ABSENT else {"id": call_id, **document}
