"""Parses the params of A2A requests into what the service takes, alike for both generations.

What differs between the generations (how a part is spelled, who a message is from, what "return at once" is called) is
the wire's; everything is checked here, and a fault is a JSON-RPC error that names the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sayso_runtime.interfaces.a2a.errors import INVALID_PARAMS, RpcError
from sayso_runtime.messages import DataPart, TextPart

#: Longest id that a client may choose, in characters. Ids become parts of key names.
MAX_ID = 256


class Spelling(Protocol):
    """How one generation spells what a client sends."""

    user_roles: frozenset[str]
    #: Whether `historyLength: 0` means *none*; in 0.3 it means *all*.
    zero_history_is_none: bool

    def read_part(self, raw: Mapping[str, Any], path: str) -> TextPart | DataPart: ...

    def read_blocking(self, configuration: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, slots=True)
class SendParams:
    """Params of a message. `blocking` False: the answer is the task as it is at once. `history` None: all of it.
    `extensions`: those that the message declares."""

    message_id: str
    parts: tuple[TextPart | DataPart, ...]
    context_id: str | None
    task_id: str | None
    metadata: Mapping[str, Any]
    blocking: bool
    history: int | None
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskParams:
    """Params of a request about one task."""

    task_id: str
    history: int | None


def read_send(params: Mapping[str, Any], spelling: Spelling) -> SendParams:
    """Raises `RpcError`: invalid params, or a kind of content that the agent does not take."""
    message = obj(params.get("message"), "message")
    role = message.get("role")
    if not isinstance(role, str) or role not in spelling.user_roles:
        raise invalid("message.role", f"has to be {' or '.join(sorted(spelling.user_roles))}")
    raw_parts = message.get("parts")
    if not isinstance(raw_parts, list) or not raw_parts:
        raise invalid("message.parts", "has to be a list of at least one part")
    parts = tuple(
        spelling.read_part(obj(raw, f"message.parts[{i}]"), f"message.parts[{i}]") for i, raw in enumerate(raw_parts)
    )
    configuration = optional_obj(params.get("configuration"), "configuration")
    return SendParams(
        message_id=identifier(message.get("messageId"), "message.messageId"),
        parts=parts,
        context_id=optional_identifier(message.get("contextId"), "message.contextId"),
        task_id=optional_identifier(message.get("taskId"), "message.taskId"),
        metadata=optional_obj(message.get("metadata"), "message.metadata"),
        blocking=spelling.read_blocking(configuration),
        history=history_length(configuration, "configuration.historyLength", spelling),
        extensions=texts(message.get("extensions"), "message.extensions"),
    )


def read_task(params: Mapping[str, Any], spelling: Spelling) -> TaskParams:
    """Raises `RpcError`: invalid params."""
    return TaskParams(identifier(params.get("id"), "id"), history_length(params, "historyLength", spelling))


def history_length(params: Mapping[str, Any], path: str, spelling: Spelling) -> int | None:
    """How many of the newest messages are wanted; None: all."""
    value = params.get("historyLength")
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise invalid(path, "has to be a whole number, 0 or more")
    return None if value == 0 and not spelling.zero_history_is_none else value


def flag(value: Any, path: str, default: bool) -> bool:
    """An optional boolean."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise invalid(path, "has to be true or false")
    return value


def text(value: Any, path: str) -> str:
    """A required text."""
    if not isinstance(value, str):
        raise invalid(path, "has to be a text")
    return value


def texts(value: Any, path: str) -> tuple[str, ...]:
    """A list of texts, empty where it is left out."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise invalid(path, "has to be a list of texts")
    return tuple(text(item, f"{path}[{index}]") for index, item in enumerate(value))


def obj(value: Any, path: str) -> Mapping[str, Any]:
    """A required object."""
    if not isinstance(value, dict):
        raise invalid(path, "has to be an object")
    return value


def optional_obj(value: Any, path: str) -> Mapping[str, Any]:
    """An object, empty where it is left out."""
    return {} if value is None else obj(value, path)


def identifier(value: Any, path: str) -> str:
    """A required id that a client chose."""
    if not isinstance(value, str) or not value:
        raise invalid(path, "has to be a text that is not empty")
    if len(value) > MAX_ID or not value.isprintable():
        raise invalid(path, f"has to be at most {MAX_ID} printable characters")
    return value


def optional_identifier(value: Any, path: str) -> str | None:
    """An id that may be left out; clients of typed languages send it empty then."""
    return None if value is None or value == "" else identifier(value, path)


def invalid(path: str, what: str) -> RpcError:
    """Invalid params, with the place and what belongs there."""
    return RpcError(INVALID_PARAMS, f"params.{path} {what}")
