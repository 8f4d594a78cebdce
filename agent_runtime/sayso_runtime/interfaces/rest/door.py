"""The REST door: it reads, hands on and renders; what a message or a decision means is the service's.

POST /api/v1/chat            says something, or resumes what waits: 200, 202, or a problem
GET  /api/v1/runs/{run_id}   a run as it is now
GET  /api/v1/pauses          the caller's runs that wait, oldest first, a page at a time
GET  /api/v1/openapi.json    all of this for machines
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import uuid
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs

from sayso_approvals.refusals import Refusal
from sayso_runtime import logs
from sayso_runtime.interfaces import strict_json
from sayso_runtime.interfaces.a2a.streams import KEEP_ALIVE_SECONDS, EventStream, result_or_gone, until_gone
from sayso_runtime.interfaces.answering import REQUEST, answered, check_taken_up
from sayso_runtime.interfaces.asgi import ClientGone, Request
from sayso_runtime.interfaces.boundaries import Boundaries
from sayso_runtime.interfaces.identity import Identify
from sayso_runtime.interfaces.metrics import Metrics
from sayso_runtime.interfaces.problems import Fault, explain, identifier, refuse, take_in, who
from sayso_runtime.interfaces.rest import rendering, streaming
from sayso_runtime.interfaces.rest.openapi import document
from sayso_runtime.interfaces.rest.reading import Chat, read_chat
from sayso_runtime.messages import Began, Ended, Inbound, Task
from sayso_runtime.service_api import Place, Run, Service

KEY = "Idempotency-Key"
MOST_PAUSES = 200


class RestDoor:
    """Answers REST clients of one agent."""

    def __init__(
        self, service: Service, namespace: str, name: str, metrics: Metrics, identify: Identify, release: str
    ) -> None:
        self._service = service
        self._agent = name
        self._names = (name, f"{namespace}/{name}")
        self._metrics = metrics
        self._identify = identify
        self._openapi = strict_json.dumps(document(name, release))

    # --- chat

    async def chat(self, request: Request) -> None:
        """One message or decision, answered completely. Raises `ClientGone`."""
        try:
            requester, parsed = await take_in(request, self._identify)
            chat = read_chat(parsed)
            self._check_agent(chat.agent)
            inbound = _inbound(chat, requester, _key(request))
            run = await self._service.send(inbound)
            try:
                logs.bind(session=run.task.context_id, run=run.task.run_id)
                if chat.stream:
                    return await self._stream(request, run, inbound)
                return await self._wait(request, run, inbound)
            finally:
                await answered(run)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  a door answers every request
            await refuse(request, error, self._metrics)

    def _check_agent(self, agent: str | None) -> None:
        if agent is not None and agent not in self._names:
            raise Refusal("not_found", f"agent {agent!r} does not answer here, {self._names[1]} does", ids=(agent,))

    async def _wait(self, request: Request, run: Run, inbound: Inbound) -> None:
        task = await result_or_gone(request, asyncio.ensure_future(run.result()))
        check_taken_up(task, inbound, self._agent, KEY)
        failed = rendering.model_failed(task, self._agent)
        if failed is not None:
            return await refuse(request, failed, self._metrics)
        return await request.respond_json(rendering.status_of(task), rendering.run(task, self._agent))

    async def _stream(self, request: Request, run: Run, inbound: Inbound) -> None:
        """What is raised before anything is sent goes to the caller; later it is the last event."""
        stream, boundaries = EventStream(request), Boundaries()
        try:
            async with aclosing(until_gone(request, run.events(), KEEP_ALIVE_SECONDS)) as events:
                async for event in events:
                    if event is None:
                        if stream.started:
                            await stream.comment()
                        continue
                    if isinstance(event, Began):
                        check_taken_up(event.task, inbound, self._agent, KEY)
                        await stream.write(streaming.chunk([streaming.started(event.task, self._agent)]))
                        continue
                    out = [one for step in boundaries.steps(event) for one in streaming.step(step)]
                    if isinstance(event, Ended):
                        out.append(self._end(event.task))
                    if out:
                        await stream.write(streaming.chunk(out), last=isinstance(event, Ended))
                    if isinstance(event, Ended):
                        return
            raise RuntimeError("a run stopped without an end")
        except ClientGone:
            raise
        except Exception as error:
            if not stream.started:
                raise
            out = [one for step in boundaries.close() for one in streaming.step(step)]
            out.append(streaming.problem(explain(error, self._metrics)[1]))
            await stream.write(streaming.chunk(out), last=True)

    def _end(self, task: Task) -> streaming.Event:
        failed = rendering.model_failed(task, self._agent)
        if failed is not None and not task.interruptions:
            return streaming.problem(explain(failed, self._metrics)[1])
        return streaming.ended(task, self._agent)

    # --- looking

    async def run(self, request: Request) -> None:
        """A run as it is now, by the last segment of the path."""
        try:
            requester = who(request, self._identify)
            task = await self._service.run(request.scope["path"].rpartition("/")[2], requester=requester)
            await request.respond_json(200, rendering.run(task, self._agent))
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  a door answers every request
            await refuse(request, error, self._metrics)

    async def pauses(self, request: Request) -> None:
        """A page of the caller's runs that wait."""
        try:
            requester = who(request, self._identify)
            limit, after = _page(request.scope.get("query_string", b""))
            found, following = await self._service.pauses(requester=requester, after=after, limit=limit)
            answer: dict[str, Any] = {"pauses": [rendering.run(task, self._agent) for task in found]}
            if following is not None:
                answer["next_cursor"] = _cursor(following)
            await request.respond_json(200, answer)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001  a door answers every request
            await refuse(request, error, self._metrics)

    async def openapi(self, request: Request) -> None:
        """The description."""
        await request.respond(200, self._openapi)


def _inbound(chat: Chat, requester: str, key: str | None) -> Inbound:
    """What the service takes. A message under a key that names no session gets the session that the key stands for:
    were it a new one, its repetition would not find the first answer."""
    session_id = chat.session_id
    if session_id is None and key is not None:
        session_id = hashlib.sha256(f"{requester}\0{key}".encode()).hexdigest()[:32]
    return Inbound(
        requester=requester,
        message_id=key or uuid.uuid4().hex,
        parts=(chat.part,),
        context_id=session_id,
        run_id=chat.run_id,
        decision=chat.decision,
        metadata={REQUEST: chat.fingerprint},
    )


def _key(request: Request) -> str | None:
    keys = request.headers(b"idempotency-key")
    if not keys:
        return None
    if len(keys) > 1:
        raise Fault(422, "there are two Idempotency-Key headers", (KEY,))
    return identifier(keys[0], KEY)


def _page(query: bytes) -> tuple[int, Place | None]:
    """`limit` and the decoded `cursor`. Raises `Fault`."""
    try:
        given = parse_qs(query.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict")
    except (UnicodeDecodeError, ValueError) as error:
        raise Fault(422, "the query cannot be read") from error
    limits, cursors = given.get("limit", ["50"]), given.get("cursor", [])
    limit = limits[0]
    if len(limits) > 1 or not (limit.isascii() and limit.isdecimal()) or not 1 <= int(limit[:9]) <= MOST_PAUSES:
        raise Fault(422, f"limit is one whole number from 1 to {MOST_PAUSES}", ("limit",))
    if len(cursors) > 1:
        raise Fault(422, "one cursor at a time", ("cursor",))
    return int(limit), _place(cursors[0]) if cursors else None


def _cursor(place: Place) -> str:
    text = json.dumps(place, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _place(cursor: str) -> Place:
    wrong = Fault(422, "cursor is what next_cursor of the page before says, as it stands there", ("cursor",))
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        opened, name = strict_json.loads(text).value
    except (ValueError, TypeError) as error:
        raise wrong from error
    if not isinstance(opened, int) or isinstance(opened, bool) or not 0 <= opened < 2**53 or not isinstance(name, str):
        raise wrong
    return opened, name
