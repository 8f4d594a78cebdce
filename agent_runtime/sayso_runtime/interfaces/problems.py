"""What doors that speak plain HTTP answer when they answer no: problem details (RFC 9457) with a stable `code`.

    Fault          the request itself cannot be taken; a door's own, where a `Refusal` is the service's

A refusal's code is the service's. A fault's code is one of `malformed_request`, `not_identified`, `too_large`,
`too_slow`, `unsupported_media_type` and `internal_error`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from sayso_approvals.records import Kind
from sayso_approvals.refusals import Refusal
from sayso_runtime import tasks
from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.asgi import PROBLEM, ClientGone, Request, Unreadable
from sayso_runtime.interfaces.identity import Identify, NotIdentified
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.messages import Interruption, Task
from sayso_runtime.nested import spread

_log = logging.getLogger(__name__)

#: Longest id that a client may choose, in characters.
MAX_ID = 256
_TITLES = {
    400: "malformed request",
    403: "not identified",
    408: "too slow",
    413: "too large",
    415: "unsupported media type",
    422: "malformed request",
    500: "internal error",
}
_KINDS = {Kind.TOOL_CALL: "tool_call", Kind.CONFIRMATION: "confirmation", Kind.CONTINUE: "confirmation"}


class Fault(Exception):  # noqa: N818  it describes the request
    """The request cannot be taken, and nothing of it was. `ids`: fields or ids concerned. `closing`: the connection
    cannot be used again."""

    def __init__(self, status: int, detail: str, ids: Iterable[str] = (), *, closing: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.ids = tuple(ids)
        self.closing = closing

    @property
    def code(self) -> str:
        """The stable name of the fault."""
        return _TITLES[self.status].replace(" ", "_")

    def problem(self) -> dict[str, Any]:
        """The problem details document."""
        return {
            "type": f"https://sayso.dev/problems/{self.code}",
            "title": _TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "ids": list(self.ids),
        }


async def take_in(request: Request, identify: Identify) -> tuple[str, strict_json.Parsed]:
    """Who asks, and the JSON that was sent. Raises `Fault` and `ClientGone`."""
    requester = who(request, identify)
    # Asking for JSON's type is also what makes browsers ask first before they post for a foreign page.
    media = (request.header(b"content-type") or "application/json").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Fault(415, "send application/json")
    try:
        body = await request.body()
    except Unreadable as error:
        if not error.status:
            raise ClientGone from error
        raise Fault(error.status, error.detail, closing=True) from error
    try:
        return requester, strict_json.loads(body)
    except strict_json.NotJson as error:
        raise Fault(400, f"the body is not JSON: {error}") from error


def who(request: Request, identify: Identify) -> str:
    """Who asks. Raises `Fault`."""
    try:
        return identify(request.scope)
    except NotIdentified as error:
        raise Fault(403, str(error)) from error


def identifier(value: Any, name: str) -> str:
    """An id that a client chose. Raises `Fault`."""
    if not isinstance(value, str) or not value:
        raise Fault(422, f"{name} has to be a text that is not empty", (name,))
    if len(value) > MAX_ID or not value.isprintable():
        raise Fault(422, f"{name} has to be at most {MAX_ID} printable characters", (name,))
    return value


def explain(error: Exception, metrics: Metrics) -> tuple[int, dict[str, Any]]:
    """Status and problem document of any failure. Refusals are counted here, faults of ours are logged, not shown."""
    match error:
        case Fault():
            return error.status, error.problem()
        case Refusal():
            metrics.refused(error.code)
            _log.info("refused: %s", error, extra={"code": error.code, "ids": list(error.ids)})
            return error.status, {key: _plain(value) for key, value in error.problem().items()}
        case _:
            _log.error("a request failed", exc_info=error)
            return 500, Fault(500, "the agent failed to answer; its log says why").problem()


async def refuse(request: Request, error: Exception, metrics: Metrics) -> None:
    """Answers with a problem document. Raises `ClientGone`."""
    status, document = explain(error, metrics)
    headers: list[tuple[bytes, bytes]] = []
    if isinstance(error, Fault) and error.closing:
        headers.append((b"connection", b"close"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    await request.respond(status, strict_json.dumps(document), PROBLEM, headers)


def interruption(one: Interruption) -> dict[str, Any]:
    """What waits for a person, as wire C has it; `arguments` is a JSON text."""
    return {
        "id": one.id,
        "kind": kind(one),
        "tool_name": one.name,
        "arguments": json.dumps(one.arguments, ensure_ascii=False),
        "message": one.hint,
        "payload": one.payload,
        "opened_at": tasks.stamp(one.opened_at),
        "expires_at": tasks.stamp(one.expires_at),
    }


def kind(one: Interruption) -> str:
    """`tool_call`, `confirmation` or `input_required`."""
    return _KINDS.get(one.kind, "input_required")


def paused(task: Task, agent: str) -> Refusal:
    """The answer to a message that came while something waits."""
    return Refusal(
        "paused",
        f"{tasks.sentence(task.interruptions)} Decide that first.",
        ids=tuple(one.id for one in spread(task.interruptions)),
        extra={
            "run_id": task.run_id,
            "agent": agent,
            "session_id": task.context_id,
            "interruptions": [interruption(one) for one in spread(task.interruptions)],
        },
    )


def _plain(value: Any) -> Any:
    match value:
        case Interruption():
            return interruption(value)
        case Task():
            return {"run_id": value.run_id, "session_id": value.context_id, "state": value.state.value}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value
