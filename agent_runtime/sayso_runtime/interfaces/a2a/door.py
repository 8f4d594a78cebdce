"""The A2A door: one POST path, both generations, JSON and server-sent events.

It reads, hands on and renders; what a message or a decision means is the service's. Every run that the service
accepted is told when its answer is out or its client gone, whatever happens on the way.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from sayso_approvals.refusals import Refusal
from sayso_runtime import logs
from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.a2a import hitl, reading, rpc
from sayso_runtime.interfaces.a2a.decisions import read_decision
from sayso_runtime.interfaces.a2a.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    RpcError,
    refusal_code,
)
from sayso_runtime.interfaces.a2a.rpc import Call, Generation, Operation, RequestId
from sayso_runtime.interfaces.a2a.streams import (
    KEEP_ALIVE_SECONDS,
    EventStream,
    result_or_gone,
    until_gone,
)
from sayso_runtime.interfaces.a2a.wire import interruption_summary
from sayso_runtime.interfaces.asgi import ClientGone, Request, Unreadable
from sayso_runtime.interfaces.identity import Identify, NotIdentified
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.messages import Began, Ended, Inbound, Interruption, Task, TextPart
from sayso_runtime.service_api import Run, Service

_log = logging.getLogger(__name__)


class A2ADoor:
    """Answers the POSTs of A2A clients."""

    def __init__(self, service: Service, metrics: Metrics, identify: Identify) -> None:
        self._service = service
        self._metrics = metrics
        self._identify = identify

    async def __call__(self, request: Request) -> None:
        """One request, answered completely. Raises `ClientGone`."""
        # Asking for JSON's type is also what makes browsers ask first before they post for a foreign page.
        content_type = request.header(b"content-type")
        if content_type is not None and not _is_json(content_type):
            return await _fail(request, None, 415, RpcError(INVALID_REQUEST, "send application/json"))
        try:
            requester = self._identify(request.scope)
            body = await request.body()
        except NotIdentified as error:
            return await _fail(request, None, 403, RpcError(INVALID_REQUEST, str(error)))
        except Unreadable as error:
            if not error.status:
                raise ClientGone from error
            refused = rpc.failure(None, RpcError(INVALID_REQUEST, error.detail))
            # What is left of the body is not read: the connection cannot be used again.
            return await request.respond(error.status, strict_json.dumps(refused), headers=[(b"connection", b"close")])
        try:
            parsed = strict_json.loads(body)
        except strict_json.NotJson as error:
            return await _fail(request, None, 200, RpcError(PARSE_ERROR, f"the body is not JSON: {error}"))
        return await self._answer(request, parsed, requester)

    async def _answer(self, request: Request, parsed: strict_json.Parsed, requester: str) -> None:
        call_id = rpc.request_id(parsed.value)
        by_status = lookup = False
        try:
            call = rpc.read_call(parsed.value)
            wire, operation = rpc.resolve(
                call.method, request.header(b"a2a-version"), hitl.asked_for(request.headers(hitl.HEADER))
            )
            by_status = operation is Operation.STREAM and wire.refuses_streams_by_status
            lookup = operation in (Operation.GET, Operation.CANCEL)
            if lookup:
                _refuse_duplicates(parsed.duplicates)
                return await self._lookup(request, call, wire, operation, requester)
            params, inbound = _inbound(call, wire, parsed.duplicates, requester)
            run = await self._service.send(inbound)
            try:
                logs.bind(session=run.task.context_id, run=run.task.run_id)
                if operation is Operation.STREAM:
                    return await _stream(request, call, wire, run, params, self._error)
                return await _send(request, call, wire, run, params)
            finally:
                await _answered(run)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  a door answers every request
            fault = self._error(error, lookup=lookup)
            await _fail(request, call_id, fault.status if by_status else 200, fault)

    async def _lookup(
        self, request: Request, call: Call, wire: Generation, operation: Operation, requester: str
    ) -> None:
        params = reading.read_task(call.params, wire)
        if operation is Operation.GET:
            task = await self._service.get(params.task_id, requester=requester)
        else:
            task = await self._service.cancel(params.task_id, requester=requester)
        await _respond(request, call, wire, wire.task(task, params.history))

    def _error(self, error: Exception, *, lookup: bool = False) -> RpcError:
        """Any failure as what the client is told. Refusals are counted here, faults of ours are logged, not shown."""
        match error:
            case RpcError():
                return error
            case Refusal():
                self._metrics.refused(error.code)
                _log.info("refused: %s", error, extra={"code": error.code, "ids": list(error.ids)})
                return RpcError(refusal_code(error, lookup=lookup), error.detail, _problem(error), status=error.status)
            case _:
                _log.error("a request failed", exc_info=error)
                return RpcError(INTERNAL_ERROR, "the agent failed to answer; its log says why", status=500)


async def _send(request: Request, call: Call, wire: Generation, run: Run, params: reading.SendParams) -> None:
    """Answers with the task: at the end of the run, or at once for clients that will ask again."""
    task = run.task
    if params.blocking:
        task = await result_or_gone(request, asyncio.ensure_future(run.result()))
    await _respond(request, call, wire, wire.streamed_task(wire.task(task, params.history)))


async def _respond(request: Request, call: Call, wire: Generation, result: dict[str, Any]) -> None:
    await request.respond(200, strict_json.dumps(rpc.answer(call.id, result)), headers=_spoken(wire))


def _spoken(wire: Generation) -> list[tuple[bytes, bytes]]:
    """The header that tells which extensions the answer speaks."""
    return [(hitl.HEADER, name.encode()) for name in wire.extensions]


async def _stream(
    request: Request,
    call: Call,
    wire: Generation,
    run: Run,
    params: reading.SendParams,
    error_of: Callable[[Exception], RpcError],
) -> None:
    """Answers with a stream. What is raised before anything is sent goes to the caller; later it is the last event."""
    stream = EventStream(request, _spoken(wire))
    task = run.task
    known: frozenset[str] = frozenset()
    try:
        async with aclosing(until_gone(request, run.events(), KEEP_ALIVE_SECONDS)) as events:
            async for event in events:
                if event is None:
                    # A 0.3 client hears of a refusal by the status alone: until there is an event, say nothing.
                    if stream.started or not wire.refuses_streams_by_status:
                        await stream.comment()
                elif isinstance(event, Began):
                    task = event.task
                    if not task.state.terminal:
                        known = frozenset(artifact.artifact_id for artifact in task.artifacts)
                    await stream.send([rpc.answer(call.id, wire.began(task, params.history))])
                else:
                    updates = [rpc.answer(call.id, update) for update in wire.updates(event, task, known, time.time())]
                    last = isinstance(event, Ended)
                    await stream.send(updates, last=last)
                    if last:
                        return
        raise RuntimeError("a run stopped without an end")
    except ClientGone:
        raise
    except Exception as error:
        if not stream.started:
            raise
        await stream.send([rpc.failure(call.id, error_of(error))], last=True)


def _inbound(
    call: Call, wire: Generation, duplicates: Sequence[str], requester: str
) -> tuple[reading.SendParams, Inbound]:
    """A message's params as the service takes them. Raises `RpcError` and `Refusal`."""
    params = reading.read_send(call.params, wire)
    decision = read_decision(params.parts, duplicates)
    answered = hitl.read_response(params.metadata, params.extensions)
    if answered is not None and not all(isinstance(part, TextPart) for part in params.parts):
        raise Refusal("malformed_decision", "beside a decision only text (a label) may be sent. Nothing was decided.")
    _refuse_duplicates(duplicates)
    return params, Inbound(
        requester=requester,
        message_id=params.message_id,
        parts=params.parts,
        context_id=params.context_id,
        task_id=params.task_id,
        decision=answered or decision,
        metadata=params.metadata,
    )


def _refuse_duplicates(duplicates: Sequence[str]) -> None:
    if duplicates:
        names = ", ".join(repr(key) for key in duplicates)
        raise RpcError(INVALID_PARAMS, f"an object says each thing once, but {names} is there twice")


def _problem(refusal: Refusal) -> dict[str, Any]:
    """The refusal's problem details, with tasks and interruptions in it as JSON."""
    return {key: _plain(value) for key, value in refusal.problem().items()}


def _plain(value: Any) -> Any:
    match value:
        case Interruption():
            return interruption_summary(value)
        case Task():
            return {"id": value.id, "contextId": value.context_id, "state": value.state.value}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


async def _answered(run: Run) -> None:
    # Awaited as it is, in the same step as the last write: were it a task of its own, other work could come first, and
    # a client that reads the answer and decides again at once, on another replica, would be taken for a late one.
    try:
        await run.answered()
    except Exception:  # noqa: BLE001  the answer is out, nobody is left to tell
        _log.exception("a run could not be told that its answer is out")


async def _fail(request: Request, call_id: RequestId, status: int, error: RpcError) -> None:
    await request.respond_json(status, rpc.failure(call_id, error))


def _is_json(content_type: str) -> bool:
    media = content_type.partition(";")[0].strip().lower()
    return media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
